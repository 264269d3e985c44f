#include "mcp/gateway/watched_uris.h"

#include <string.h>

#include <algorithm>
#include <new>
#include <utility>

#include "base/charged.h"

namespace coir::mcp::detail {

WatchedUris::~WatchedUris() {
  for (Name* each : places_) free(each);
  while (dropped_ != nullptr) free(std::exchange(dropped_, dropped_->next));
}

WatchedUris::Name* WatchedUris::make(std::string_view offered, std::string_view own) noexcept {
  void* const memory = take_charged(account::mcp, sizeof(Name) + offered.size());
  if (memory == nullptr) return nullptr;
  auto* const made = new (memory) Name;
  made->size = static_cast<std::uint16_t>(offered.size());
  made->own_at = static_cast<std::uint16_t>(offered.size() - own.size());
  memcpy(made + 1, offered.data(), offered.size());
  return made;
}

void WatchedUris::free(Name* name) noexcept {
  if (name != nullptr) give_charged(account::mcp, name, sizeof(Name) + name->size);
}

WatchedUris::Name** WatchedUris::find(std::string_view own) noexcept {
  Name** const found =
      std::ranges::find_if(places_, [own](const Name* each) { return each != nullptr && each->own() == own; });
  return found != std::end(places_) ? found : nullptr;
}

WatchedUris::Name** WatchedUris::find_room(std::size_t bytes) noexcept {
  for (const Name* each : places_) bytes += each != nullptr ? each->own().size() : 0;
  Name** const free = std::ranges::find(places_, nullptr);
  return bytes <= kMostBytes && free != std::end(places_) ? free : nullptr;
}

void WatchedUris::drop(Name*& place) noexcept {
  place->next = std::exchange(dropped_, place);
  place = nullptr;
}

// drop_unwanted asks with the lock held, so that a client that begins to want a resource at that time either is seen, or
// adds it afterwards.
void WatchedUris::drop_unwanted() noexcept {
  if (!options_.wanted) return;
  for (Name*& each : places_) {
    const Locked locked(lock_);
    if (each != nullptr && !options_.wanted(each->offered())) drop(each);
  }
}

std::expected<bool, Error> WatchedUris::add(std::string_view offered, std::string_view own) noexcept {
  if (offered.size() > kMostBytes) return std::unexpected(ErrorCode::busy);
  Name* made = make(offered, own);
  if (made == nullptr) return std::unexpected(ErrorCode::no_memory);
  std::expected<bool, Error> is_new = std::unexpected(ErrorCode::busy);
  for (const bool is_last_try : {false, true}) {
    {
      const Locked locked(lock_);
      if (find(own) != nullptr) {
        is_new = false;
      } else if (Name** const room = find_room(own.size())) {
        made->number = ++added_;
        *room = std::exchange(made, nullptr);
        is_new = true;
      }
    }
    if (is_new || is_last_try) break;
    drop_unwanted();
  }
  free(made);
  return is_new;
}

std::span<const std::string_view> WatchedUris::current() noexcept {
  drop_unwanted();
  Name* dropped;
  std::size_t count = 0;
  {
    const Locked locked(lock_);
    dropped = std::exchange(dropped_, nullptr);
    if (!searches_) named_ = added_;
    for (const Name* each : places_) {
      if (each != nullptr && each->number <= named_) names_[count++] = each->own();
    }
  }
  while (dropped != nullptr) free(std::exchange(dropped, dropped->next));
  return std::span(names_).first(count);
}

std::string_view WatchedUris::offered(std::string_view own) noexcept {
  const Locked locked(lock_);
  Name** const found = find(own);
  return found != nullptr ? (*found)->offered() : std::string_view();
}

bool WatchedUris::set_newest_aside() noexcept {
  const Locked locked(lock_);
  std::uint32_t newest = 0;
  for (const Name* each : places_) {
    if (each != nullptr && each->number <= named_) newest = std::max(newest, each->number);
  }
  searches_ = newest != 0;
  if (searches_) named_ = newest - 1;
  return searches_;
}

bool WatchedUris::accepted() noexcept {
  const Locked locked(lock_);
  if (!std::exchange(searches_, false)) return false;
  bool has_others = false;
  for (Name*& each : places_) {
    if (each == nullptr || each->number <= named_) continue;
    if (each->number == named_ + 1) {
      drop(each);
    } else {
      has_others = true;
    }
  }
  return has_others;
}

}  // namespace coir::mcp::detail
