#pragma once

#include <coir/spinlock.h>

#include <cstddef>
#include <span>
#include <string_view>

namespace coir::mcp::detail {

// WatchedUris are the resources of one upstream that clients of ours want to hear of: by the names under which they are
// offered, and the upstream's own. Any fiber adds; all else is of the fiber that listens to the upstream, and what it is
// given lives until it calls `current` again. Charged to account::mcp.
class WatchedUris {
 public:
  static constexpr std::size_t kMost = 32;

  WatchedUris() noexcept = default;
  WatchedUris(const WatchedUris&) = delete;
  WatchedUris& operator=(const WatchedUris&) = delete;
  ~WatchedUris();

  // add adds a resource whose own name is the end of `offered`. False: it is there already, or there is no room for it.
  bool add(std::string_view offered, std::string_view own) noexcept;
  // current drops what nobody wants any more and returns the own names of the others.
  std::span<const std::string_view> current() noexcept;
  // offered is the name of an upstream's resource here; absent: nobody wants to hear of it.
  std::string_view offered(std::string_view own) noexcept;
  // drop is for a resource that nobody wants to hear of any more, drop_all for all.
  void drop(std::string_view own) noexcept;
  void drop_all() noexcept;

 private:
  struct Place {
    char* text = nullptr;
    std::uint16_t size = 0;
    std::uint16_t own_at = 0;
    bool dropped = false;

    std::string_view offered() const noexcept { return {text, size}; }
    std::string_view own() const noexcept { return offered().substr(own_at); }
  };

  Place* find(std::string_view own) noexcept;
  static void free(Place& place) noexcept;

  Spinlock lock_;
  Place places_[kMost];
  std::string_view names_[kMost];
};

}  // namespace coir::mcp::detail
