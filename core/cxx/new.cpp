#include <malloc.h>
#include <stdlib.h>

#include <cstddef>
#include <new>

#include "failure.h"
#include "heap_charges.h"

// operator new and operator delete in all their forms. coir/heap.h states the contract.

namespace coir {

namespace {

// The C library's addition to a block, about: its own words, and the rounding up to a size that it has.
constexpr std::size_t kOverhead = 16;

constexpr std::size_t kUsual = __STDCPP_DEFAULT_NEW_ALIGNMENT__;

// The C library knows a block's size: musl the one that was asked for, others one that may be larger.
bool charge_rest(void* block, std::size_t bytes) noexcept {
  const std::size_t usable = malloc_usable_size(block);
  return usable == bytes || charge_heap(usable - bytes);
}

void* allocate(std::size_t bytes, std::size_t alignment) noexcept {
  if (bytes == 0) bytes = 1;
  if (alignment > kUsual && __builtin_add_overflow(bytes, alignment - 1, &bytes)) return nullptr;
  if (alignment > kUsual) bytes &= ~(alignment - 1);  // a multiple, as aligned_alloc wants
  std::size_t charged;
  if (__builtin_add_overflow(bytes, kOverhead, &charged) || !charge_heap(charged)) return nullptr;
  void* const block = alignment > kUsual ? aligned_alloc(alignment, bytes) : malloc(bytes);
  if (block != nullptr && charge_rest(block, bytes)) [[likely]]
    return block;
  free(block);
  refund_heap(charged);
  return nullptr;
}

void* allocate_or_fail(std::size_t bytes, std::size_t alignment = kUsual) noexcept {
  void* const block = allocate(bytes, alignment);
  if (block == nullptr) [[unlikely]]
    fail_allocation("bytes for operator new", bytes);
  return block;
}

void deallocate(void* block) noexcept {
  if (block == nullptr) return;
  refund_heap(malloc_usable_size(block) + kOverhead);
  free(block);
}

}  // namespace

}  // namespace coir

using std::align_val_t;
using std::nothrow_t;
using std::size_t;

constinit const nothrow_t std::nothrow{};

void* operator new(size_t bytes) {
  return coir::allocate_or_fail(bytes);
}
void* operator new[](size_t bytes) {
  return coir::allocate_or_fail(bytes);
}
void* operator new(size_t bytes, align_val_t alignment) {
  return coir::allocate_or_fail(bytes, static_cast<size_t>(alignment));
}
void* operator new[](size_t bytes, align_val_t alignment) {
  return coir::allocate_or_fail(bytes, static_cast<size_t>(alignment));
}
void* operator new(size_t bytes, const nothrow_t&) noexcept {
  return coir::allocate(bytes, coir::kUsual);
}
void* operator new[](size_t bytes, const nothrow_t&) noexcept {
  return coir::allocate(bytes, coir::kUsual);
}
void* operator new(size_t bytes, align_val_t alignment, const nothrow_t&) noexcept {
  return coir::allocate(bytes, static_cast<size_t>(alignment));
}
void* operator new[](size_t bytes, align_val_t alignment, const nothrow_t&) noexcept {
  return coir::allocate(bytes, static_cast<size_t>(alignment));
}

void operator delete(void* block) noexcept {
  coir::deallocate(block);
}
void operator delete[](void* block) noexcept {
  coir::deallocate(block);
}
void operator delete(void* block, size_t) noexcept {
  coir::deallocate(block);
}
void operator delete[](void* block, size_t) noexcept {
  coir::deallocate(block);
}
void operator delete(void* block, align_val_t) noexcept {
  coir::deallocate(block);
}
void operator delete[](void* block, align_val_t) noexcept {
  coir::deallocate(block);
}
void operator delete(void* block, size_t, align_val_t) noexcept {
  coir::deallocate(block);
}
void operator delete[](void* block, size_t, align_val_t) noexcept {
  coir::deallocate(block);
}
void operator delete(void* block, const nothrow_t&) noexcept {
  coir::deallocate(block);
}
void operator delete[](void* block, const nothrow_t&) noexcept {
  coir::deallocate(block);
}
void operator delete(void* block, align_val_t, const nothrow_t&) noexcept {
  coir::deallocate(block);
}
void operator delete[](void* block, align_val_t, const nothrow_t&) noexcept {
  coir::deallocate(block);
}
