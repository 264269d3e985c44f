#include "proxy/forwarder.h"

#include <iterator>

#include "proxy/forward_keeper.h"
#include "proxy/forwarding.h"
#include "proxy/upstreams/upstream.h"

namespace coir::http {

std::expected<Forwarder, Error> Forwarder::create() noexcept {
  auto keeper = ForwardKeeper::create();
  if (!keeper) return std::unexpected(keeper.error());
  return Forwarder(**keeper);
}

Forwarder::~Forwarder() {
  if (keeper_ != nullptr) ForwardKeeper::destroy(keeper_);
}

void Forwarder::forward(Exchange& exchange, UpstreamGroup& group, const ForwardRules& rules,
                        const RequestRules& own) noexcept {
  Forwarding(exchange, *keeper_, group, rules, own).run();
}

ForwardFailure failure_of(Error error, bool connected, const UpstreamGroup& group) noexcept {
  using enum ForwardFailure;
  switch (error.code) {
    case ErrorCode::no_memory:
      return no_room;
    case ErrorCode::busy:
      return crowded;
    case ErrorCode::timed_out:
      return connected ? timeout : connect_timeout;
    case ErrorCode::limit:
      return connected ? head_too_long : group.state().answering == 0 ? all_down : no_room;
    case ErrorCode::protocol:
      return connected ? malformed : untrusted;
    case ErrorCode::untrusted:
    case ErrorCode::alert:
      return connected ? cut_off : untrusted;
    case ErrorCode::not_found:
    case ErrorCode::temporary:
      // A Unix socket that is not there has the kernel's number.
      return connected ? cut_off : error.sys == 0 ? unresolved : refused;
    default:
      return connected ? cut_off : refused;
  }
}

const char* word_of(ForwardFailure failure) noexcept {
  constexpr const char* kWords[] = {"refused", "unresolved",      "untrusted", "cut-off", "malformed", "all-down",
                                    "no-room", "connect-timeout", "timeout",   "loop",    "crowded",   "head-too-long"};
  static_assert(std::size(kWords) == kForwardFailures);
  return kWords[static_cast<std::size_t>(failure)];
}

ForwardCounters& Forwarder::counters() const noexcept {
  return keeper_->counters;
}

std::size_t Forwarder::waiting() const noexcept {
  return keeper_->answers.size();
}

std::size_t Forwarder::streams() const noexcept {
  return keeper_->size();
}

}  // namespace coir::http
