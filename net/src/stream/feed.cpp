#include <coir/http/feed.h>

#include "stream/feed_keeper.h"

namespace coir::http {

std::expected<Feed, Error> Feed::create(const FeedOptions& options) noexcept {
  auto keeper = FeedKeeper::create(options);
  if (!keeper) return std::unexpected(keeper.error());
  return Feed(*keeper);
}

Feed::~Feed() {
  if (keeper_ != nullptr) FeedKeeper::destroy(keeper_);
}

std::expected<void, Error> Feed::publish(const ServerEvent& event) noexcept {
  return keeper_->publish(event);
}

void Feed::subscribe(Exchange& exchange) noexcept {
  keeper_->subscribe(exchange);
}

std::size_t Feed::subscribers() const noexcept {
  return keeper_->size();
}

std::uint64_t Feed::fallen_off() const noexcept {
  return keeper_->fallen_off();
}

}  // namespace coir::http
