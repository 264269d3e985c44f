#include "base/buffer_pool.h"

#include <coir/detail/accounts.h>
#include <string.h>

#include <array>

#include "base/spare_mappings.h"

namespace coir {

namespace account {
constinit Account buffers("buffers");
}  // namespace account

namespace {

// The spare ones come to 160 KiB at most.
constinit std::array<SpareMappings, 5> g_pool = {{
    {account::buffers, Buffer::kLeast, 0, 16},
    {account::buffers, Buffer::kLeast << 2, 0, 2},
    {account::buffers, Buffer::kLeast << 4, 0, 1},
    {account::buffers, Buffer::kLeast << 6, 0, 0},
    {account::buffers, Buffer::kLeast << 8, 0, 0},
}};

}  // namespace

std::expected<Buffer, Error> Buffer::take(std::size_t bytes, bool may_relieve) noexcept {
  if (bytes > kMost) return std::unexpected(Error{ErrorCode::limit});
  std::uintptr_t number = 0;
  while (kLeast << 2 * number < bytes) ++number;
  void* const memory = g_pool[number].take(may_relieve);
  if (memory == nullptr) return std::unexpected(Error{ErrorCode::no_memory});
  return Buffer(reinterpret_cast<std::uintptr_t>(memory) | number);
}

std::expected<void, Error> Buffer::grow(std::size_t used, bool may_relieve) noexcept {
  auto larger = take(size() + 1, may_relieve);
  if (!larger) return std::unexpected(larger.error());
  if (used != 0) memcpy(larger->data(), data(), used);
  *this = std::move(*larger);
  return {};
}

void Buffer::give() noexcept {
  if (word_ == 0) return;
  const std::uintptr_t word = std::exchange(word_, 0);
  g_pool[word & kClass].give(reinterpret_cast<void*>(word & ~kClass));
}

std::size_t Buffer::spare_bytes() noexcept {
  std::size_t bytes = 0;
  for (SpareMappings& each : g_pool) bytes += each.spare_bytes();
  return bytes;
}

}  // namespace coir
