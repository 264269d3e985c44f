#include <__memory/shared_ptr.h>

// The compiled part of std::shared_ptr and std::weak_ptr. libc++ counts owners from -1: the value 0 is one owner. All
// shared owners together are one weak owner.

_LIBCPP_BEGIN_NAMESPACE_STD

__shared_count::~__shared_count() = default;
__shared_weak_count::~__shared_weak_count() = default;

void __shared_weak_count::__release_weak() noexcept {
  // acquire pairs with the release of other owners' decrements: what they did to the block comes before its end. The
  // only owner left needs no locked instruction.
  if (__atomic_load_n(&__shared_weak_owners_, __ATOMIC_ACQUIRE) == 0 ||
      __atomic_fetch_sub(&__shared_weak_owners_, 1, __ATOMIC_ACQ_REL) == 0) {
    __on_zero_shared_weak();
  }
}

// lock becomes one more shared owner, unless the last has gone.
__shared_weak_count* __shared_weak_count::lock() noexcept {
  long owners = use_count() - 1;
  while (owners != -1) {
    if (__atomic_compare_exchange_n(&__shared_owners_, &owners, owners + 1, true, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
      return this;
  }
  return nullptr;
}

// Without RTTI nobody can ask for a deleter by its type.
const void* __shared_weak_count::__get_deleter(const type_info&) const noexcept {
  return nullptr;
}

_LIBCPP_END_NAMESPACE_STD
