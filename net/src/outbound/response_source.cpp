// How the heads of responses are received. Declared in outbound/exchange.h.
#include <string.h>

#include "outbound/exchange.h"
#include "outbound/fault.h"

namespace coir::http {
namespace {

constexpr unsigned kMostInterim = 16;

std::unexpected<Error> bad(ClientFault fault) noexcept {
  return std::unexpected(client_error(ErrorCode::protocol, fault));
}

std::unexpected<Error> too_long() noexcept {
  return std::unexpected(client_error(ErrorCode::limit, ClientFault::head_too_long));
}

}  // namespace

void OutboundExchange::begin_anew(std::uint8_t interims) noexcept {
  sent_any = sent_whole = got_leave = got_head = hung_up_ = false;
  have = begin = seen_ = 0;
  interims_ = interims;
  heard_any = interims != 0;
}

OutboundExchange::Outcome OutboundExchange::grow(std::size_t used) noexcept {
  if (heads().size() >= most_head_) return too_long();
  auto larger = Buffer::take(room.size() + 1);
  if (!larger) return std::unexpected(larger.error());
  if (used != 0) memcpy(larger->data(), room.data(), used);
  memory = std::move(*larger);
  room = memory.bytes();
  return {};
}

// read_more reads once, behind what has come of a response.
OutboundExchange::Outcome OutboundExchange::read_more(Deadline until) noexcept {
  if (have == heads().size()) {
    if (auto grown = grow(have); !grown) return grown;
  }
  const auto got = read(heads().subspan(have), until);
  if (!got) {
    hung_up_ = !(got.error() == ErrorCode::timed_out);
    return std::unexpected(got.error());
  }
  have += static_cast<std::uint32_t>(*got);
  return {};
}

// took_head parses what has come. True: a final head, or one that switches protocols.
std::expected<bool, Error> OutboundExchange::took_head() noexcept {
  while (have != 0) {
    const std::span<char> last = room.last(room.size() / 4);
    const std::size_t off = -reinterpret_cast<std::uintptr_t>(last.data()) % alignof(Header);
    const std::span<Header> fields(reinterpret_cast<Header*>(last.data() + off), (last.size() - off) / sizeof(Header));
    const auto parsed = parse_response(room.first(have), seen_, fields, answers, response);
    seen_ = have;
    switch (parsed.state) {
      case ResponseState::incomplete:
        return false;
      case ResponseState::bad:
        return bad(ClientFault::bad_head);
      case ResponseState::too_many_fields:
        if (auto grown = grow(have); !grown) return std::unexpected(grown.error());
        seen_ = 0;
        continue;
      case ResponseState::complete:
        break;
    }
    if (response.status >= 200 || response.status == 101) {
      if (response.status == 101 && !asks_upgrade) return bad(ClientFault::unasked_upgrade);
      if (parsed.head_bytes > most_head_) return too_long();
      begin = parsed.head_bytes;
      return got_head = true;
    }
    if (++interims_ > kMostInterim) return bad(ClientFault::too_many_interim);
    if (response.status == 100) {
      got_leave = true;
    } else {
      heard_interim();
    }
    have -= parsed.head_bytes;
    memmove(room.data(), room.data() + parsed.head_bytes, have);
    seen_ = 0;
  }
  return false;
}

OutboundExchange::Outcome OutboundExchange::read_head(Deadline until) noexcept {
  for (;;) {
    const auto final = took_head();
    if (!final) return std::unexpected(final.error());
    if (*final) return {};
    if (auto read = read_more(until); !read) {
      if (have != 0 && read.error() == ErrorCode::end_of_stream) return std::unexpected(Error{ErrorCode::truncated});
      return read;
    }
  }
}

bool OutboundExchange::has_refusal(Error sending, Deadline until) noexcept {
  if (!(sending == ErrorCode::closed) || !sent_any || hung_up_) return false;
  sent_whole = false;
  // Its answer may be here already.
  stream().mark_readable();
  return read_head(until).has_value();
}

std::expected<bool, Error> OutboundExchange::hear() noexcept {
  stream().mark_readable();
  if (auto read = read_more(Deadline::now()); !read) {
    return read.error().is_late() ? std::expected<bool, Error>(false) : std::unexpected(read.error());
  }
  return took_head();
}

OutboundExchange::Outcome OutboundExchange::await_leave(Deadline patience) noexcept {
  while (!got_leave && !got_head) {
    if (auto read = read_more(patience); !read) return read.error().is_late() ? Outcome() : read;
    if (const auto final = took_head(); !final) return std::unexpected(final.error());
  }
  return {};
}

}  // namespace coir::http
