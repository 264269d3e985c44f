#pragma once

#include <coir/net/address.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "names/dns_message.h"

// The answers of name servers, kept for as long as they allow, "there is no such name" too (RFC 2308): kCacheBytes for all
// of the process, taken in a ring, where the newest answer takes the place of the oldest. From fibers and threads; nothing
// parks. Cost: a walk over the answers that are there, some 80 at most.
namespace coir::names {

inline constexpr std::size_t kCacheBytes = 4096;

// PackedAddresses is how addresses lie in messages and in the cache.
struct PackedAddresses {
  static std::size_t bytes(const Addresses& of) noexcept { return of.count_ * sizeof(Addresses::Entry); }
  static void store(const Addresses& from, unsigned char* to) noexcept;
  static void load(const unsigned char* from, std::uint8_t count, Deadline until, Addresses& into) noexcept;
  // add takes the four or sixteen bytes of a record, where there is room.
  static void add(Addresses& to, std::span<const unsigned char> bytes) noexcept;
  static void set_valid_until(Addresses& of, Deadline until) noexcept { of.valid_until_ = until; }
};

// recall finds the addresses of a name, whose number is 0 where there is no such name. False: it is not known, or not any
// more.
bool recall(const Name& name, Addresses& found) noexcept;

// remember keeps an answer for `seconds`, a day at most, and for nothing where that is 0.
void remember(const Name& name, const Addresses& found, std::uint32_t seconds) noexcept;

// forget_all is for tests, and for a machine whose network has changed.
void forget_all() noexcept;

}  // namespace coir::names
