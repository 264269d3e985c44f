// Output of an application. Declared in fastcgi/fastcgi_exchange.h.
#include <algorithm>
#include <cstring>

#include "fastcgi/fastcgi_exchange.h"
#include "http/session/engine.h"
#include "http/text/characters.h"
#include "outbound/fault.h"
#include "proxy/field_kind.h"

namespace coir::http {
namespace {

constexpr std::size_t kMostRoom = 16 * 1024;
// After so much without waiting others get their turn.
constexpr std::size_t kSlice = 512 * 1024;

}  // namespace

// take_output passes the response on as it comes, up to its end.
FastCgiExchange::Outcome FastCgiExchange::take_output() noexcept {
  const Deadline first_byte = Deadline::after(rules.first_byte);
  std::size_t slice = 0;
  while (!ended) {
    drop_input();
    Outcome read = std::unexpected(Error{ErrorCode::timed_out});
    if (!stream().drained()) read = read_more(Deadline::now());
    if (!read && read.error().is_late()) {
      slice = 0;
      if (responding) {
        if (auto flushed = exchange.flush(); !flushed) {
          client_left = true;
          return flushed;
        }
      }
      if (!heard_any) {
        // Most answers come so soon that a copy of the script does not pay.
        leave_scratch();
        const Deadline copied_at = leave_path() ? first_byte : std::min(first_byte, Deadline::after(kBeforeRest));
        auto begins = await(copied_at);
        if (!begins && begins.error().is_late() && copied_at != first_byte) {
          leave_memory();
          begins = await(first_byte);
        }
        if (!begins) return begins;
        continue;
      }
      read = read_more(Deadline::after(rules.idle));
    }
    if (!read) return read;
    if ((slice += records().size()) >= kSlice) {
      slice = 0;
      session.engine_.yield_turn();
    }
  }
  return {};
}

FastCgiExchange::Outcome FastCgiExchange::read_more(Deadline deadline) noexcept {
  if (room.empty()) {
    room = exchange.scratch();
    head = ScriptHead(room.subspan(quarter(), 2 * quarter()));
  }
  const auto got = read(records(), deadline);
  if (!got) return std::unexpected(got.error());
  std::span<char> bytes = records().first(*got);
  while (!ended) {
    const FastCgiEvent event = reader.next(bytes);
    switch (event.kind) {
      case FastCgiEvent::Kind::none:
        return {};
      case FastCgiEvent::Kind::bad:
        return std::unexpected(Error{ErrorCode::protocol});
      case FastCgiEvent::Kind::errors:
        take_errors(event.bytes);
        break;
      case FastCgiEvent::Kind::output:
        if (auto taken = take_piece(event.bytes); !taken) return taken;
        break;
      case FastCgiEvent::Kind::ended:
        if (auto taken = take_end(event.end); !taken) return taken;
        // Bytes behind the end are nobody's answer.
        lease.give_back(rules.keep && sent_whole && bytes.empty());
        break;
    }
  }
  return {};
}

FastCgiExchange::Outcome FastCgiExchange::take_piece(std::span<char> bytes) noexcept {
  while (!responding) {
    switch (head.take(bytes)) {
      case ScriptHead::State::incomplete:
        return {};
      case ScriptHead::State::too_long:
        if (room.size() >= kMostRoom) return std::unexpected(Error{ErrorCode::limit});
        // The input is in the session's memory meanwhile.
        if (auto grown = grow(kMostRoom); !grown) return grown;
        head.move(room.subspan(quarter(), 2 * quarter()));
        break;
      case ScriptHead::State::whole:
        if (auto begun = begin_response(); !begun) return begun;
        break;
    }
  }
  return pass_content(bytes);
}

FastCgiExchange::Outcome FastCgiExchange::begin_response() noexcept {
  lease.answered(sent_ns);
  ParsedResponse response;
  for (;;) {
    const std::span<char> last = room.last(quarter());
    const std::size_t off = -reinterpret_cast<std::uintptr_t>(last.data()) % alignof(Header);
    const std::span<Header> fields(reinterpret_cast<Header*>(last.data() + off), (last.size() - off) / sizeof(Header));
    const ResponseState state =
        head.parse(fields, request.method == Method::head ? AnswerTo::head : AnswerTo::other, response);
    if (state == ResponseState::complete) break;
    if (state != ResponseState::too_many_fields) return std::unexpected(Error{ErrorCode::protocol});
    if (room.size() >= kMostRoom) return std::unexpected(Error{ErrorCode::limit});
    if (auto grown = grow(kMostRoom); !grown) return grown;
    head.move(room.subspan(quarter(), 2 * quarter()));
  }
  ResponseHead& out = exchange.start(response.status);
  for (const Header& field : response.headers) {
    const FieldKind kind = kind_of(field.name);
    if (kind != FieldKind::passed && kind != FieldKind::via && kind < FieldKind::forwarded) continue;
    if (!equals_ignoring_case(field.name, "Status")) out.field(field.name, field.value);
  }
  no_content = request.method == Method::head || response.end == ContentEnd::none;
  const bool says_length = response.header("Content-Length").data() != nullptr;
  const auto begin = [&]() -> Outcome {
    if (response.status == 204 || response.status == 304) return exchange.begin_empty();
    if (request.method == Method::head && !says_length) return exchange.begin_empty();
    if (!says_length) return exchange.begin_chunked();
    has_length = !no_content;
    left = response.content_length;
    return exchange.begin_fixed(left);
  };
  if (auto begun = begin(); !begun) {
    client_left = !(begun.error() == ErrorCode::limit);
    return begun;
  }
  responding = true;
  count(&FastCgiCounters::answered);
  return {};
}

// pass_content passes on no more than the script has said that there is.
FastCgiExchange::Outcome FastCgiExchange::pass_content(std::span<char> bytes) noexcept {
  if (no_content) return {};
  if (has_length) {
    bytes = bytes.first(static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), left)));
    left -= bytes.size();
  }
  if (bytes.empty()) return {};
  auto written = exchange.write({bytes.data(), bytes.size()});
  if (!written) client_left = true;
  return written;
}

FastCgiExchange::Outcome FastCgiExchange::take_end(FastCgiEnd end) noexcept {
  if (end == FastCgiEnd::overloaded && !responding) return std::unexpected(Error{ErrorCode::busy});
  // No head at all, or half of one.
  if (end != FastCgiEnd::complete || !responding) return std::unexpected(Error{ErrorCode::protocol});
  if (has_length && left != 0) return std::unexpected(Error{ErrorCode::truncated});
  ended = true;
  return {};
}

// take_errors gathers stderr to lines.
void FastCgiExchange::take_errors(std::span<char> bytes) noexcept {
  if (!rules.complain) return;
  for (const char byte : bytes) {
    if (complaints >= FastCgiOptions::kMostComplaints) return;
    ++complaints;
    if (byte != '\n' && byte != '\r')
      line[line_bytes++] = static_cast<unsigned char>(byte) < 0x20 || byte == 0x7f ? '.' : byte;
    if (line_bytes == sizeof line || (byte == '\n' && line_bytes != 0)) complain();
  }
}

void FastCgiExchange::complain() noexcept {
  rules.complain({line, line_bytes});
  line_bytes = 0;
}

}  // namespace coir::http
