#pragma once

#include <coir/spinlock.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace coir::mcp {

// Rates bounds the requests of each principal a second; who was silent may make one second's at once. It remembers the
// latest kPlaces of them; of more, who comes back begins anew. No allocation.
class Rates {
 public:
  static constexpr std::size_t kPlaces = 64;

  explicit Rates(std::uint32_t per_second) noexcept : per_second_(per_second) {}

  bool limits() const noexcept { return per_second_ != 0; }
  // take is false where the principal has used up what it may.
  bool take(std::string_view who, std::int64_t now_ns) noexcept;

 private:
  struct Place {
    std::uint64_t who = 0;
    std::int64_t full_at_ns = 0;  // when all that was taken is given back
    std::int64_t used_ns = 0;
  };

  Spinlock lock_;
  const std::uint32_t per_second_;
  Place places_[kPlaces];
};

}  // namespace coir::mcp
