#include "fetch.h"

#include <coir/format.h>

#include "authorities.h"
#include "exit_status.h"
#include "progress.h"
#include "saving.h"

using coir::Error;
using coir::ErrorCode;
using coir::http::Client;
using coir::http::Response;

namespace {

int failed(Status status, std::string_view what, Error error) noexcept {
  say_error(what, coir::describe(error));
  return status;
}

// is_the_rest tells whether an answer is all that is missing, of the version that came before.
bool is_the_rest(const Response& response, const Saving& saving) noexcept {
  const auto range = response.content_range();
  if (!range || !range->size || range->first != saving.have() || range->last + 1 != *range->size) return false;
  const auto length = response.content_length();
  if (length && *length != *range->size - range->first) return false;
  return response.header("ETag") == saving.tag() && (!saving.total() || *saving.total() == *range->size);
}

// is_whole tells whether an answer of 416 says that all had come before.
bool is_whole(const Response& response, const Saving& saving) noexcept {
  char whole[40];
  const std::string_view tag = response.header("ETag");
  return response.header("Content-Range") == coir::format(whole, "bytes */", saving.have()) &&
         (tag.data() == nullptr || tag == saving.tag()) && (!saving.total() || *saving.total() == saving.have());
}

// save writes the content where it belongs.
int save(Response& response, Saving& saving, const FetchOptions& options) noexcept {
  const bool continues = response.status() == 206;
  const std::string_view name = options.output != nullptr ? options.output : "standard output";
  const auto length = response.content_length();
  std::optional<std::uint64_t> total = length;
  if (continues) total = response.content_range()->size;
  if (auto begun = saving.begin(continues, response.header("ETag"), total); !begun) {
    return failed(kFile, name, begun.error());
  }
  {
    Progress progress(!options.quiet && options.output != nullptr, saving.have(), total);
    static char buffer[16 * 1024];
    for (;;) {
      const auto got = response.read(buffer);
      if (!got && got.error() == ErrorCode::end_of_stream) break;
      if (!got) {
        const bool late = got.error() == ErrorCode::timed_out;
        return failed(late ? kTime : kResponse, options.url, got.error());
      }
      if (auto written = saving.write(std::span(buffer).first(*got)); !written)
        return failed(kFile, name, written.error());
      progress.add(*got);
    }
  }
  // Content in chunks may be another length than its range.
  if (continues && saving.have() != *total) {
    saving.forget();
    say_error(options.url, "the server has sent another range than it announced");
    return kResponse;
  }
  if (auto finished = saving.finish(); !finished) return failed(kFile, name, finished.error());
  return kDone;
}

}  // namespace

int fetch(const FetchOptions& options) noexcept {
  coir::http::ClientOptions policy;
  if (options.authorities != nullptr && !trust_file(options.authorities, policy)) return kTls;
  auto client = Client::create(policy);
  if (!client) return failed(kMachine, "fetch", client.error());
  static constinit Saving saving;  // too large for a fiber's stack
  if (auto opened = saving.open(options.output, options.resume); !opened) {
    return failed(kFile, options.output, opened.error());
  }
  coir::http::ClientRequest request{.deadline = options.timeout_s != 0
                                                    ? coir::Deadline::after(std::chrono::seconds(options.timeout_s))
                                                    : coir::Deadline::never(),
                                    .fields = {options.fields, options.field_count}};
  if (saving.have() != 0) {
    request.range = coir::http::ByteRange{.first = saving.have()};
    request.if_range = saving.tag();
  }
  auto response = client->get(options.url, request);
  if (!response) return failed(status_of(response.error()), options.url, response.error());
  if (saving.have() != 0 && response->status() == 416 && is_whole(*response, saving)) {
    if (auto begun = saving.begin(true, {}, {}); !begun) return failed(kFile, options.output, begun.error());
    if (auto finished = saving.finish(); !finished) return failed(kFile, options.output, finished.error());
    return kDone;
  }
  // A part that does not fit the earlier part is of another version, or the server errs: fetch the whole again.
  if (saving.have() != 0 &&
      (response->status() == 416 || (response->status() == 206 && !is_the_rest(*response, saving)))) {
    saving.forget();
    request.range.reset();
    request.if_range = {};
    *response = Response();
    response = client->get(options.url, request);
    if (!response) return failed(status_of(response.error()), options.url, response.error());
  }
  if (saving.have() == 0 && response->status() == 206) {
    say_error(options.url, "the server has sent a part of what it was asked for");
    return kResponse;
  }
  if (auto good = response->expect_success(); !good) {
    char why[128];
    say_error(options.url, coir::format(why, response->status(), " ", response->reason(), ": ", good.error()));
    return kServer;
  }
  return save(*response, saving, options);
}
