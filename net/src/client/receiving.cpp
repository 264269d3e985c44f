// How the heads of responses are received. Declared in client/transfer.h.
#include <string.h>

#include "client/transfer.h"
#include "http/message/characters.h"

namespace coir::http::detail {
namespace {

constexpr unsigned kMostInterim = 16;
constexpr std::size_t kMostHead = 64 * 1024;

// is_coded_by knows a coding by its old name too (RFC 9110, 8.4.1): "x-gzip".
bool is_coded_by(std::string_view field, std::string_view coding) noexcept {
  const std::string_view name = trim(field);
  return equals_ignoring_case(begins_ignoring_case(name, "x-") ? after(name, 2) : name, coding);
}

}  // namespace

// read_more reads once, behind what has come of a response.
Transfer::Outcome Transfer::read_more(Deadline until) noexcept {
  if (have == room().size()) {
    if (in.size() >= kMostHead) return std::unexpected(client_error(ErrorCode::limit, ClientFault::head_too_long));
    if (auto grown = in.grow(have); !grown) return grown;
  }
  const auto got = stream().read(room().subspan(have), until);
  if (!got) return std::unexpected(got.error());
  received_any = true;
  have += static_cast<std::uint32_t>(*got);
  return {};
}

std::expected<bool, Error> Transfer::took_head(AnswerTo to) noexcept {
  while (have != 0) {
    const std::size_t quarter = in.size() / 4;
    const std::span<Header> fields(reinterpret_cast<Header*>(in.data() + 3 * quarter), quarter / sizeof(Header));
    const auto parsed = parse_response(in.bytes().first(have), seen, fields, to, response);
    seen = have;
    switch (parsed.state) {
      case ResponseState::incomplete:
        return false;
      case ResponseState::bad:
        return std::unexpected(client_error(ErrorCode::protocol, ClientFault::bad_head));
      case ResponseState::too_many_fields:
        if (in.size() >= kMostHead) return std::unexpected(client_error(ErrorCode::limit, ClientFault::head_too_long));
        if (auto grown = in.grow(have); !grown) return std::unexpected(grown.error());
        seen = 0;
        continue;
      case ResponseState::complete:
        break;
    }
    if (response.status >= 200) {
      content_begin = parsed.head_bytes;
      got_head = true;
      reusable = response.keep_alive;
      return true;
    }
    if (response.status == 101) return std::unexpected(client_error(ErrorCode::protocol, ClientFault::unasked_upgrade));
    if (++interim > kMostInterim) {
      return std::unexpected(client_error(ErrorCode::protocol, ClientFault::too_many_interim));
    }
    have -= parsed.head_bytes;
    memmove(in.data(), in.data() + parsed.head_bytes, have);
    seen = 0;
  }
  return false;
}

Transfer::Outcome Transfer::read_head(Deadline until, AnswerTo to) noexcept {
  for (;;) {
    const auto final = took_head(to);
    if (!final) return std::unexpected(final.error());
    if (*final) return {};
    if (auto read = read_more(until); !read) {
      if (have != 0 && read.error() == ErrorCode::end_of_stream) return std::unexpected(Error{ErrorCode::truncated});
      return std::unexpected(of(Phase::first_byte, read.error()));
    }
  }
}

// begin_content follows a final head: what came behind it is content already, or nobody's.
Transfer::Outcome Transfer::begin_content() noexcept {
  raw = {in.data() + content_begin, have - content_begin};
  left = response.end == ContentEnd::length ? response.content_length : 0;
  chunks = ChunkedContent();
  if (response.end == ContentEnd::chunked && room().size() - content_begin < ChunkedContent::kLeastWindow) {
    auto taken = Buffer::take(Buffer::kLeast);
    if (!taken) return std::unexpected(taken.error());
    window = std::move(*taken);
  }
  coded = asks_coding && response.end != ContentEnd::none &&
          is_coded_by(response.header("Content-Encoding"), core.options.coding->name);
  if (response.end == ContentEnd::none) end_content();
  return {};
}

}  // namespace coir::http::detail
