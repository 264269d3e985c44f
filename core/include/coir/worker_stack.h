#pragma once

// A deep call runs on the worker's large stack.
//
//   coir::on_worker_stack([] { snprintf(buffer, sizeof buffer, "%.2f\n", 21.5); });

#include <coir/config.h>
#include <coir/detail/construct.h>

#include <concepts>
#include <new>
#include <type_traits>
#include <utility>

namespace coir {

namespace detail {

// call_on_worker_stack calls fn(argument) on the stack of the worker that runs the calling fiber; where no fiber runs,
// right here. A build without fibers has none.
void call_on_worker_stack(void (*fn)(void*), void* argument) noexcept;

}  // namespace detail

// on_worker_stack calls f on the stack of the worker's thread and returns what it returns: for calls that go deeper
// than a fiber's stack allows, as those of foreign libraries do. There are 256 KB at least, also
// in an Isolate; on the thread that has called `run`, and on a plain thread, there is what that thread has.
//
//   coir::on_worker_stack([&] { snprintf(line, sizeof line, "%s: %.2f\n", name, value); });
//   const int outcome = coir::on_worker_stack([&] { return mbedtls_ssl_read(&ssl, into, size); });
//
// The C library's printf family takes 9 KB for every format, more than a fiber's stack of 8 KB; coir/format.h does
// without.
//
// f must not wait: meanwhile no fiber runs on this worker, and what parks elsewhere answers `unsupported` here, a spawn
// into a full nursery too. The caller's scopes and cancellation are in force in f, and a fiber that f spawns is a child
// of the caller's nursery. Allowed anywhere: on a plain thread, inside another such call and in a build without fibers
// it is an ordinary call. Cost: two exchanges of the stack pointer, a few nanoseconds.
template <std::invocable F>
std::invoke_result_t<F&> on_worker_stack(F&& f) noexcept {
  using Result = std::invoke_result_t<F&>;
  if constexpr (COIR_NO_ASYNC) {
    return f();
  } else if constexpr (std::is_void_v<Result>) {
    detail::call_on_worker_stack([](void* closure) { (*static_cast<std::remove_reference_t<F>*>(closure))(); },
                                 std::addressof(f));
  } else {
    struct Call {
      std::remove_reference_t<F>& f;
      alignas(Result) unsigned char result[sizeof(Result)];
    } call{f, {}};
    detail::call_on_worker_stack(
        [](void* opaque) {
          auto& made = *static_cast<Call*>(opaque);
          ::new (made.result) Result(made.f());
        },
        &call);
    auto* const result = std::launder(reinterpret_cast<Result*>(call.result));
    Result returned = std::move(*result);
    std::destroy_at(result);
    return returned;
  }
}

}  // namespace coir
