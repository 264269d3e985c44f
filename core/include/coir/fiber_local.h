#pragma once

// A value for each fiber, at any depth of calls.
//
//   constinit coir::FiberLocal<const char*> g_user;       // the key, as a rule a global
//
//   void serve(const char* user) {
//     const coir::FiberLocal<const char*>::Binding bound(g_user, user);
//     if (auto* mine = g_user.get()) show(*mine);
//   }

#include <utility>

namespace coir {

namespace detail {

// LocalNode is one value that is bound for a fiber or a thread. Each has a list of them, the innermost first.
struct LocalNode {
  const void* key;
  LocalNode* outer = nullptr;
};

// find_local returns the caller's innermost node of that key, or null. bind_local puts a node before the others;
// unbind_local takes it off, and ends the process with a line if it is not the caller's innermost. fiber_local.cpp has
// them.
LocalNode* find_local(const void* key) noexcept;
void bind_local(LocalNode& node) noexcept;
void unbind_local(LocalNode& node) noexcept;

}  // namespace detail

// FiberLocal is a value that each fiber, or plain thread, may have of its own: any function that it calls finds the value
// without a parameter. It is to fibers what thread_local is to threads; all fibers of a worker share a thread_local variable.
//
// A Binding is a local variable and holds the value, on the stack of the fiber: nothing is allocated, and a fiber without
// values pays nothing. Values are not passed on to the fibers that it spawns, which may outlive them: their closures
// take what they need. In on_worker_stack they are the calling fiber's. Works without fibers, too. Any fiber or thread.
// Cost: get walks along the bindings of its caller, a few instructions for each.
template <class T>
class FiberLocal {
 public:
  constexpr FiberLocal() noexcept = default;
  FiberLocal(const FiberLocal&) = delete;
  FiberLocal& operator=(const FiberLocal&) = delete;

  // Binding gives its maker the value while it lives, in the place of one that was bound before. Bindings end in reverse
  // order, where they were made: anything else ends the process with a line.
  class Binding : detail::LocalNode {
   public:
    Binding(const FiberLocal& key, T value) : LocalNode{&key}, value_(std::move(value)) { detail::bind_local(*this); }
    ~Binding() { detail::unbind_local(*this); }
    Binding(const Binding&) = delete;
    Binding& operator=(const Binding&) = delete;

   private:
    friend class FiberLocal;
    T value_;
  };

  // get returns the caller's value, to read or to change, or null if it has none.
  T* get() const noexcept {
    detail::LocalNode* const found = detail::find_local(this);
    return found != nullptr ? &static_cast<Binding*>(found)->value_ : nullptr;
  }
};

}  // namespace coir
