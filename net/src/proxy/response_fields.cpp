// The heads of an upstream's responses as the client is sent them. Declared in proxy/forwarding.h.
#include "http/session/engine.h"
#include "proxy/forward_keeper.h"
#include "proxy/forwarding.h"

namespace coir::http {

void Forwarding::add_fields(ResponseHead& head) noexcept {
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
    head.field(field.name, field.value);
  }
}

// pass_interim passes an informational response on at once. A client of HTTP/1.0 knows none.
void Forwarding::heard_interim() noexcept {
  if (request.minor == 0 || session.phase_ != Session::Phase::none || session.broken_) return;
  if (session.output_room() < Session::kOutputBytes / 2 && !session.flush()) return;
  ResponseHead head({session.out_ + session.out_used_, session.output_room()});
  head.start(response.status, {});
  add_fields(head);
  const std::string_view text = head.finish();
  session.out_used_ += static_cast<std::uint32_t>(text.size());
  static_cast<void>(session.flush());
}

// begin_response begins the answer. False: it could not be begun, and has been answered otherwise.
bool Forwarding::begin_response() noexcept {
  if (!sent_whole) exchange.close_after();
  ResponseHead& head = exchange.start(response.status);
  add_fields(head);
  head.fixed(rules.response_lines);
  const auto begun = [&]() -> Outcome {
    switch (response.end) {
      case ContentEnd::length:
        left = response.content_length;
        return exchange.begin_fixed(left);
      case ContentEnd::chunked:
      case ContentEnd::close:
        return exchange.begin_chunked();
      case ContentEnd::none:
        break;
    }
    if (response.status == 204 || response.status == 304) return exchange.begin_empty();
    // What a GET would have been answered with.
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
    fail(begun.error());
  } else {
    leave();
  }
  return false;
}

}  // namespace coir::http
