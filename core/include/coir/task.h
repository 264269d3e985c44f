#pragma once

// A fiber with a result.
//
//   Task<std::string> page = spawn([] { return fetch("/"); });
//   ...
//   std::expected<std::string, Error> got = page.await(Deadline::after(2s));
//   if (!got && got.error() == ErrorCode::timed_out) static_cast<void>(page.cancel("too slow"));

#include <coir/port/needs_fibers.h>

#include <expected>
#include <utility>

#include <coir/detail/fiber_handle.h>

namespace coir {

// Task is the handle of a fiber whose body returns a T, or a std::expected<T, Error>, which fails if it returns an
// error. The result lies on the fiber's own stack, right below its control block: nothing is allocated for it, whatever
// its size, and it costs its page from the body's end until it is awaited or dropped.
//
// A failure belongs to whoever awaits it, so that its nursery does not report it again. A failure that nobody awaits
// passes to the nursery when the handle is dropped or the nursery's scope ends.
template <class T>
class [[nodiscard]] Task : public Fiber {
 public:
  using Fiber::Fiber;

  // await waits for the end, moves the result out and releases the fiber. Once: a second await is `stale`. After
  // timed_out and cancelled of the caller the task is untouched and may be awaited again.
  // Errors: as join; what the body returned comes as it is.
  [[nodiscard]] std::expected<T, Error> await(Deadline deadline = Deadline::never()) noexcept {
    if (auto ended = wait_ended(deadline); !ended) return std::unexpected(ended.error());
    auto* result = static_cast<std::expected<T, Error>*>(storage());
    std::expected<T, Error> value(std::move(*result));
    result->~expected();
    release();
    return value;
  }

 private:
  using Fiber::join;
};

}  // namespace coir
