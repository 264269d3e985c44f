#include "mcp/access/rates.h"

#include <algorithm>

namespace coir::mcp {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

std::uint64_t hash(std::string_view text) noexcept {
  // FNV-1a (Fowler, Noll, Vo); names are given by the program, not by clients.
  std::uint64_t value = 0xcbf29ce484222325;
  for (const char c : text) value = (value ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return value | 1;
}

}  // namespace

bool Rates::take(std::string_view who, std::int64_t now_ns) noexcept {
  const std::uint64_t wanted = hash(who);
  const std::int64_t each = kSecond / per_second_;
  Locked locked(lock_);
  Place* place = &places_[0];
  for (Place& one : places_) {
    if (one.who == wanted) {
      place = &one;
      break;
    }
    if (one.used_ns < place->used_ns) place = &one;
  }
  if (place->who != wanted) *place = {.who = wanted, .full_at_ns = now_ns, .used_ns = now_ns};
  place->used_ns = now_ns;
  const std::int64_t full_at = std::max(place->full_at_ns, now_ns) + each;
  if (full_at - now_ns > kSecond) return false;
  place->full_at_ns = full_at;
  return true;
}

}  // namespace coir::mcp
