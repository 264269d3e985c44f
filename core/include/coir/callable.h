#pragma once

#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

namespace coir {

// Callable<R(A...)> is anything that is called with such arguments: a function, a lambda with its captures, an object. It
// keeps a callable as a table of routes does: one that has a name by reference, which has to outlive it, and one without
// a name by value. It allocates nothing.
//
//   coir::Callable<void(int)> on_change = [](int value) { show(value); };   // kept inside: up to four words, copied as bytes
//   auto count = [total = 0](int value) mutable { total += value; };        // of any size
//   on_change = count;                                                      // refers to `count`
//
// An empty one must not be called. Copies are called from several threads at once if their callable may be.
template <class Signature>
class Callable;

template <class R, class... A>
class Callable<R(A...)> {
 public:
  static constexpr std::size_t kBytes = 4 * sizeof(void*);

  constexpr Callable() noexcept = default;
  constexpr Callable(std::nullptr_t) noexcept {}
  template <class F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, Callable> && std::is_invocable_r_v<R, F&, A...>)
  Callable(F&& callable) noexcept {
    using Kept = std::decay_t<F>;
    if constexpr (std::is_lvalue_reference_v<F> && std::is_class_v<Kept> && !std::is_empty_v<Kept>) {
      using Object = std::remove_reference_t<F>;
      ::new (static_cast<void*>(kept_)) Object*(&callable);
      call_ = [](const unsigned char* kept, A... arguments) -> R {
        return (**std::launder(reinterpret_cast<Object* const*>(kept)))(std::forward<A>(arguments)...);
      };
    } else {
      static_assert(sizeof(Kept) <= kBytes && std::is_trivially_copyable_v<Kept>,
                    "give a callable a name that is larger than four words, or not copied as bytes");
      ::new (static_cast<void*>(kept_)) Kept(callable);
      call_ = [](const unsigned char* kept, A... arguments) -> R {
        return (*std::launder(reinterpret_cast<const Kept*>(kept)))(std::forward<A>(arguments)...);
      };
    }
  }

  // False: it is empty.
  explicit operator bool() const noexcept { return call_ != nullptr; }

  R operator()(A... arguments) const { return call_(kept_, std::forward<A>(arguments)...); }

 private:
  alignas(void*) unsigned char kept_[kBytes] = {};
  R (*call_)(const unsigned char* kept, A... arguments) = nullptr;
};

}  // namespace coir
