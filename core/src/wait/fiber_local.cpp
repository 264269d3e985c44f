#include <coir/config.h>
#include <coir/detail/fatal.h>
#include <coir/fiber_local.h>

#if !COIR_NO_ASYNC
#include "wait/park.h"
#endif

namespace coir::detail {

namespace {

constinit thread_local LocalNode* t_innermost = nullptr;

// Not inlined, because a fiber may change threads between two calls.
[[gnu::noinline]] LocalNode*& innermost() noexcept {
#if !COIR_NO_ASYNC
  if (FiberControl* const self = acting_fiber(); self != nullptr) return self->locals;
#endif
  return t_innermost;
}

}  // namespace

LocalNode* find_local(const void* key) noexcept {
  LocalNode* node = innermost();
  while (node != nullptr && node->key != key) node = node->outer;
  return node;
}

void bind_local(LocalNode& node) noexcept {
  LocalNode*& first = innermost();
  node.outer = first;
  first = &node;
}

void unbind_local(LocalNode& node) noexcept {
  LocalNode*& first = innermost();
  if (first != &node) fatal("a fiber-local binding ends before one made later, or on another fiber or thread");
  first = node.outer;
}

}  // namespace coir::detail
