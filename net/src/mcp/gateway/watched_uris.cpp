#include "mcp/gateway/watched_uris.h"

#include <coir/mcp.h>
#include <string.h>

#include <algorithm>
#include <utility>

#include "base/charged.h"

namespace coir::mcp::detail {

namespace {

constexpr std::size_t kMostUri = 2048;

}  // namespace

WatchedUris::~WatchedUris() {
  for (Place& each : places_) free(each);
}

void WatchedUris::free(Place& place) noexcept {
  if (place.text != nullptr) give_charged(account::mcp, place.text, place.size);
  place = {};
}

WatchedUris::Place* WatchedUris::find(std::string_view own) noexcept {
  const auto is_it = [own](const Place& each) { return each.text != nullptr && each.own() == own; };
  Place* const found = std::ranges::find_if(places_, is_it);
  return found != std::end(places_) ? found : nullptr;
}

bool WatchedUris::add(std::string_view offered, std::string_view own) noexcept {
  if (own.empty() || offered.size() > kMostUri) return false;
  Place made{.text = static_cast<char*>(take_charged(account::mcp, offered.size())),
             .size = static_cast<std::uint16_t>(offered.size()),
             .own_at = static_cast<std::uint16_t>(offered.size() - own.size())};
  if (made.text == nullptr) return false;
  memcpy(made.text, offered.data(), offered.size());
  bool is_new = false;
  {
    const Locked locked(lock_);
    Place* const known = find(own);
    if (known != nullptr) {
      is_new = std::exchange(known->dropped, false);
    } else if (Place* const free = std::ranges::find(places_, nullptr, &Place::text); free != std::end(places_)) {
      *free = std::exchange(made, Place());
      is_new = true;
    }
  }
  free(made);
  return is_new;
}

std::span<const std::string_view> WatchedUris::current() noexcept {
  std::size_t count = 0;
  for (Place& each : places_) {
    Place gone;
    {
      const Locked locked(lock_);
      if (each.text == nullptr) continue;
      if (each.dropped) gone = std::exchange(each, Place());
    }
    if (gone.text != nullptr) {
      free(gone);
    } else {
      names_[count++] = each.own();
    }
  }
  return std::span(names_).first(count);
}

std::string_view WatchedUris::offered(std::string_view own) noexcept {
  const Locked locked(lock_);
  const Place* const found = find(own);
  return found != nullptr && !found->dropped ? found->offered() : std::string_view();
}

void WatchedUris::drop(std::string_view own) noexcept {
  const Locked locked(lock_);
  if (Place* const found = find(own)) found->dropped = true;
}

void WatchedUris::drop_all() noexcept {
  const Locked locked(lock_);
  for (Place& each : places_) each.dropped = true;
}

}  // namespace coir::mcp::detail
