// How the heads of an upstream's responses are received. Declared in proxy/forwarding.h.
#include <string.h>

#include "proxy/forwarding.h"

namespace coir::http {
namespace {

constexpr unsigned kMostInterim = 16;
constexpr std::size_t kMostHeadRoom = 16 * 1024;

constexpr std::unexpected<Error> kMalformedHead{Error{ErrorCode::protocol}};

}  // namespace

// read_more reads once, behind what has come of a response.
Forwarding::Outcome Forwarding::read_more(Deadline deadline) noexcept {
  if (have == heads().size()) {
    if (room.size() >= kMostHeadRoom) return std::unexpected(Error{ErrorCode::limit});
    if (auto grown = grow(kMostHeadRoom, have); !grown) return grown;
  }
  const auto got = upstream().read(heads().subspan(have), deadline);
  if (!got) {
    hung_up = !(got.error() == ErrorCode::timed_out);
    return std::unexpected(got.error());
  }
  heard_any = true;
  have += static_cast<std::uint32_t>(*got);
  return {};
}

// took_head parses what has come. True: a final head, or one that switches protocols.
std::expected<bool, Error> Forwarding::took_head() noexcept {
  while (have != 0) {
    const std::span<char> last = room.last(room.size() / 4);
    const std::size_t off = -reinterpret_cast<std::uintptr_t>(last.data()) % alignof(Header);
    const std::span<Header> fields(reinterpret_cast<Header*>(last.data() + off), (last.size() - off) / sizeof(Header));
    const auto parsed = parse_response(room.first(have), seen, fields,
                                       request.method == Method::head ? AnswerTo::head : AnswerTo::other, response);
    seen = have;
    switch (parsed.state) {
      case ResponseState::incomplete:
        return false;
      case ResponseState::bad:
        return kMalformedHead;
      case ResponseState::too_many_fields:
        if (room.size() >= kMostHeadRoom) return std::unexpected(Error{ErrorCode::limit});
        if (auto grown = grow(kMostHeadRoom, have); !grown) return std::unexpected(grown.error());
        seen = 0;
        continue;
      case ResponseState::complete:
        break;
    }
    if (response.status >= 200 || response.status == 101) {
      if (response.status == 101 && !asks_upgrade) return kMalformedHead;
      begin = parsed.head_bytes;
      got_head = true;
      return true;
    }
    if (++interim > kMostInterim) return kMalformedHead;
    if (response.status == 100) {
      // The client is told so when its content is read.
      got_leave = true;
    } else {
      pass_interim();
    }
    have -= parsed.head_bytes;
    memmove(room.data(), room.data() + parsed.head_bytes, have);
    seen = 0;
  }
  return false;
}

Forwarding::Outcome Forwarding::read_head(Deadline deadline) noexcept {
  for (;;) {
    const auto final = took_head();
    if (!final) return std::unexpected(final.error());
    if (*final) return {};
    if (auto read = read_more(deadline); !read) {
      if (have != 0 && read.error() == ErrorCode::end_of_stream) return std::unexpected(Error{ErrorCode::truncated});
      return read;
    }
  }
}

}  // namespace coir::http
