// The heads of an upstream's responses as the client is sent them. Declared in proxy/forwarding.h.
#include <algorithm>

#include "http/session/engine.h"
#include "proxy/forward_keeper.h"
#include "proxy/forwarding.h"

namespace coir::http {
namespace {

// The session adds fewer bytes to a head.
constexpr std::size_t kOwnFields = 256;

}  // namespace

void Forwarding::add_fields(ResponseHead& head, bool may_part) noexcept {
  bool names = false;
  for (const Header& field : response.headers) {
    if (kind_of(field.name) == FieldKind::connection) names = names || names_any(field.value);
  }
  for (const Header& field : response.headers) {
    const FieldKind kind = kind_of(field.name);
    const bool passes = kind == FieldKind::passed || kind == FieldKind::via || kind >= FieldKind::forwarded ||
                        (kind == FieldKind::trailer && response.end == ContentEnd::chunked) ||
                        (kind == FieldKind::upgrade && response.status == 101);
    if (!passes || (names && is_named(response.headers, field, kind))) continue;
    if (!rules.response_drops.empty() && is_among(field.name, rules.response_drops)) continue;
    if (may_part) {
      add_in_parts(head, field);
    } else {
      head.field(field.name, field.value);
    }
  }
}

// add_in_parts sends the client what there is of a head whose next field does not fit into the session's memory.
void Forwarding::add_in_parts(ResponseHead& head, const Header& field) noexcept {
  const std::size_t behind = rules.response_lines.size() + kOwnFields;
  const auto room = [&] {
    return session.output_room() - std::min(session.output_room(), head.lines().size() + behind);
  };
  if (field.name.size() + field.value.size() + 4 <= room() || behind > Session::kOutputBytes / 2)
    return head.field(field.name, field.value);
  for (std::string_view each : {field.name, std::string_view(": "), field.value, std::string_view("\r\n")}) {
    while (!each.empty() && !session.broken_) {
      if (room() == 0) {
        session.out_used_ += static_cast<std::uint32_t>(head.lines().size());
        sent_part = true;
        static_cast<void>(session.flush(true));
        head.forget_lines();
      }
      const std::string_view piece = each.substr(0, room());
      head.fixed(piece);
      each.remove_prefix(piece.size());
    }
  }
}

// pass_interim passes an informational response on at once. A client of HTTP/1.0 knows none.
void Forwarding::heard_interim() noexcept {
  resumed = false;
  if (request.minor == 0 || session.phase_ != Session::Phase::none || session.broken_) return;
  session.hold();
  if (session.output_room() < Session::kOutputBytes / 2 && !session.flush()) return;
  ResponseHead head({session.buffers->out + session.out_used_, session.output_room()});
  head.start(response.status, {});
  add_fields(head);
  const std::string_view text = head.finish();
  session.out_used_ += static_cast<std::uint32_t>(text.size());
  static_cast<void>(session.flush());
}

// begin_response begins the answer. False: it could not be begun, and has been answered otherwise.
bool Forwarding::begin_response() noexcept {
  if (!sent_whole) exchange.close_after();
  // Nothing is to lie in front of a head that may go out in parts.
  const bool is_long = begin > Session::kOutputBytes / 2 && session.flush();
  ResponseHead& head = exchange.start(response.status);
  add_fields(head, is_long && session.phase_ == Session::Phase::head);
  head.fixed(rules.response_lines);
  relayed.end = response.end;
  const auto begun = [&]() -> Outcome {
    switch (response.end) {
      case ContentEnd::length:
        relayed.left = response.content_length;
        return exchange.begin_fixed(relayed.left);
      case ContentEnd::chunked:
      case ContentEnd::close:
        return exchange.begin_chunked();
      case ContentEnd::none:
        break;
    }
    if (response.status == 204 || response.status == 304) return exchange.begin_empty();
    // The length of the answer to a GET.
    if (request.method == Method::head && response.header("Content-Length").data() == nullptr) {
      return exchange.begin_empty();
    }
    return exchange.begin_fixed(response.content_length);
  }();
  if (begun) {
    keeper.counters.forwarded.fetch_add(1, std::memory_order_relaxed);
    return true;
  }
  if (begun.error() == ErrorCode::limit) {
    sent_part ? cut(ForwardFailure::malformed) : fail(begun.error());
  } else {
    leave();
  }
  return false;
}

}  // namespace coir::http
