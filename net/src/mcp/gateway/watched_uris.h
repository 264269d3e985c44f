#pragma once

#include <coir/error.h>
#include <coir/mcp/gateway.h>
#include <coir/spinlock.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string_view>

namespace coir::mcp::detail {

// WatchedUris are the resources of one upstream that clients of ours want to hear of: by the names under which they are
// offered, and the upstream's own. A place is free again once GatewayOptions::wanted says that nobody wants its resource.
// Any fiber adds; all else is of the fiber that listens to the upstream, and what it is given lives until it calls
// `current` again. Charged to account::mcp.
class WatchedUris {
 public:
  // One request names them all, and so does its acknowledgement: McpServer accepts as many.
  static constexpr std::size_t kMost = 32;
  static constexpr std::size_t kMostBytes = 4096;

  explicit WatchedUris(const GatewayOptions& options) noexcept : options_(options) {}
  WatchedUris(const WatchedUris&) = delete;
  WatchedUris& operator=(const WatchedUris&) = delete;
  ~WatchedUris();

  // add adds a resource whose own name is the end of `offered`. False: it is there already. Errors: busy (there is no
  // place for it), no_memory.
  std::expected<bool, Error> add(std::string_view offered, std::string_view own) noexcept;
  // current frees the places of what nobody wants any more and returns the own names of the others, but for those that
  // are set aside.
  std::span<const std::string_view> current() noexcept;
  // offered is the name of an upstream's resource here; absent: it has no place.
  std::string_view offered(std::string_view own) noexcept;

  // A server that refuses what `current` names does not say which. set_newest_aside has `current` leave out the one that
  // was added last of those; false: there was none, and all are named again. accepted tells that the server takes the
  // rest: then the one that was set aside last frees its place, for it is the one that was refused, and all others are
  // named again. True: there are such.
  bool set_newest_aside() noexcept;
  bool accepted() noexcept;

 private:
  // Name is what a place holds; its text lies behind it.
  struct Name {
    std::string_view offered() const noexcept { return {reinterpret_cast<const char*>(this + 1), size}; }
    std::string_view own() const noexcept { return offered().substr(own_at); }

    Name* next = nullptr;  // of those that have no place any more
    std::uint16_t size = 0;
    std::uint16_t own_at = 0;
    std::uint32_t number = 0;  // counts what was added
  };

  static Name* make(std::string_view offered, std::string_view own) noexcept;
  static void free(Name* name) noexcept;
  Name** find(std::string_view own) noexcept;
  Name** find_room(std::size_t bytes) noexcept;
  void drop(Name*& place) noexcept;
  void drop_unwanted() noexcept;

  const GatewayOptions& options_;
  Spinlock lock_;
  Name* places_[kMost] = {};
  std::uint32_t added_ = 0;
  std::uint32_t named_ = 0;  // the last that `current` names
  bool searches_ = false;    // those behind it are set aside
  Name* dropped_ = nullptr;  // which the listening fiber may still have
  std::string_view names_[kMost];
};

}  // namespace coir::mcp::detail
