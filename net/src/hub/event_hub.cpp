#include <coir/events.h>

#include "hub/event_keeper.h"

namespace coir::http {

EventHub::EventHub(const EventHubOptions& options) noexcept : keeper_(EventKeeper::create(options)) {}

EventHub::~EventHub() {
  EventKeeper::destroy(keeper_);
}

std::expected<void, Error> EventHub::publish(const ServerEvent& event) noexcept {
  if (keeper_ == nullptr) return std::unexpected(Error{ErrorCode::no_memory});
  return keeper_->publish(event);
}

void EventHub::operator()(Exchange& exchange) noexcept {
  if (keeper_ == nullptr) return exchange.respond_status(503, "Retry-After: 5\r\n");
  keeper_->subscribe(exchange);
}

std::size_t EventHub::subscribers() const noexcept {
  return keeper_ != nullptr ? keeper_->size() : 0;
}

std::uint64_t EventHub::dropped() const noexcept {
  return keeper_ != nullptr ? keeper_->dropped_count() : 0;
}

}  // namespace coir::http
