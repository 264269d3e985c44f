#pragma once

#include <coir/atomic.h>
#include <coir/deadline.h>
#include <coir/spinlock.h>

#include <cstddef>
#include <cstdint>
#include <optional>

namespace coir::http {

// GuessLimits has each client address wait for its wrong passwords, and gives none of them all the places to wait in.
// Addresses are known by the keys of ClientLimits; the one that was seen last longest ago is forgotten first.
class GuessLimits {
 public:
  // So many addresses are known, at least one more than can wait at a time.
  static constexpr std::size_t kClients = 72;
  static constexpr std::size_t kMostWaiting = kClients - 1;
  using Place = std::uint8_t;

  explicit GuessLimits(std::size_t most_waiting) noexcept;

  // enter counts a request that waits for a check. Nothing is returned where it is one too many.
  std::optional<Place> enter(std::uint64_t client) noexcept;
  // leave ends the check. If the password was wrong, it may park the fiber until the client may be told.
  void leave(Place place, bool wrong) noexcept;

  // pause_after is how long the verdict on the `failures`th wrong password is held back.
  static std::chrono::milliseconds pause_after(unsigned failures) noexcept;

 private:
  struct Client {
    std::uint64_t key = 0;
    std::uint32_t seen_ms = 0;
    std::uint8_t waiting = 0;
    std::uint8_t failures = 0;
  };

  Client& find(std::uint64_t key, std::uint32_t now) noexcept;

  Spinlock lock_;
  const std::uint32_t most_;
  std::uint32_t waiting_ = 0;
  Atomic<std::uint32_t> held_back_ = 0;
  std::uint32_t used_ = 0;
  Client clients_[kClients];
};

}  // namespace coir::http
