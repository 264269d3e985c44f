#pragma once

#include <coir/atomic.h>

namespace coir {

class Waiter;

namespace detail {

// DescriptorNode is one wait's place in the reactor's list of those that wait for a descriptor and direction. It lies on
// the stack of the one that waits, and is the reactor's until it is detached or its waiter is woken.
struct alignas(8) DescriptorNode {
  DescriptorNode() noexcept = default;
  explicit DescriptorNode(Waiter& who) noexcept : waiter(&who) {}
  // A node is copied before it is attached, only.
  DescriptorNode(const DescriptorNode& other) noexcept : waiter(other.waiter) {}

  Waiter* waiter = nullptr;
  Atomic<DescriptorNode*> next{nullptr};  // those that came before
};

}  // namespace detail
}  // namespace coir
