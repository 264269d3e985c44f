#include "proxy/forwarder.h"

#include <iterator>

#include "proxy/forward_keeper.h"
#include "proxy/forwarding.h"

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

const char* word_of(ForwardFailure failure) noexcept {
  constexpr const char* kWords[] = {"refused", "unresolved",      "untrusted", "cut-off", "malformed", "all-down",
                                    "no-room", "connect-timeout", "timeout",   "loop",    "crowded"};
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
