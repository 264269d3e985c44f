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
  say_error(what, coir::http::describe_client(error));
  return status;
}

// save writes the content where it belongs.
int save(Response& response, Saving& saving, const FetchOptions& options) noexcept {
  const bool continues = response.status() == 206;
  if (continues) {
    const auto range = response.content_range();
    if (!range || range->first != saving.have()) {
      say_error(options.url, "the server has sent another range than it was asked for");
      return kResponse;
    }
  }
  const std::string_view name = options.output != nullptr ? options.output : "standard output";
  if (auto begun = saving.begin(continues, response.header("ETag")); !begun) return failed(kFile, name, begun.error());
  const auto length = response.content_length();
  const std::optional<std::uint64_t> total = length ? std::optional(saving.have() + *length) : std::nullopt;
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
  // All of it had come before: the validator says that it is still the same.
  if (saving.have() != 0 && response->status() == 416) {
    const auto size = response->header("Content-Range");
    char whole[40];
    if (size == coir::format(whole, "bytes */", saving.have())) {
      if (auto begun = saving.begin(true, {}); !begun) return failed(kFile, options.output, begun.error());
      if (auto finished = saving.finish(); !finished) return failed(kFile, options.output, finished.error());
      return kDone;
    }
  }
  if (auto good = response->expect_success(); !good) {
    char why[128];
    say_error(options.url, coir::format(why, response->status(), " ", response->reason(), ": ",
                                        coir::http::describe_client(good.error())));
    return kServer;
  }
  return save(*response, saving, options);
}
