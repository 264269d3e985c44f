#pragma once

// Fibers that end before their scope does.
//
//   Nursery nursery{{.limit = 10}};
//   for (const char* path : {"/a", "/b"}) nursery.start([path] { return fetch(path); });
//   if (auto outcome = nursery.join(); !outcome) return complain(outcome.error());  // the first; it cancelled the rest

#include <coir/port/needs_fibers.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <new>
#include <source_location>
#include <type_traits>
#include <utility>

#include <coir/detail/nursery_base.h>
#include <coir/detail/started.h>
#include <coir/error.h>
#include <coir/fiber.h>

namespace coir {

// NurseryOptions: `limit` is how many children may run at a time; 0 is any number.
struct NurseryOptions {
  std::uint32_t limit = 0;
};

// Nursery is a scope that owns fibers: it is left only when all of them have ended.
//
// Every fiber runs in one. If none is named, spawn uses the caller's: the innermost that the caller has open, else
// the one that the caller is a child of, at any depth of calls and of spawns. The outermost is the root, which is there
// before main's body runs and is left when the run ends; its first failure cancels every fiber and is what run returns.
//
// A child fails by returning a std::expected<T, Error> that holds an error. The awaiter or joiner takes the
// failure over. A failure that nobody takes is the nursery's: at once if the child's handle was dropped; when the owner
// joins, if the owner still holds it; when no child runs any more, if another fiber holds it. The first cancels the
// other children and the owner's own waits in the scope, and join reports it, once. A cancelled child that returns
// `cancelled` has not failed. A nursery is a cancel scope, too.
//
// A local variable of a fiber or a plain thread, which alone may join it; any fiber inside may spawn and cancel. Cost:
// two short locks for each child, and nothing is allocated.
class Nursery {
 public:
  explicit Nursery(NurseryOptions options = {}) noexcept : base_(options.limit) { base_.enter(); }
  // Joins. A failure that join would have returned goes to the nursery around this one, as if a child of that had
  // failed; what a cancellation or a deadline from outside has ended is not passed on.
  ~Nursery();
  Nursery(const Nursery&) = delete;
  Nursery& operator=(const Nursery&) = delete;

  // start starts a child without a handle: the nursery owns it and answers for its failure. At the limit it parks until
  // another child has ended; a child that starts one in its own full nursery waits for its siblings, unless all of them
  // wait for room as well. A child that cannot start fails the nursery with the error, unless the caller asks the
  // Started. Errors: those of spawn.
  template <class F>
  Started start(const SpawnOptions& options, F&& body,
                const std::source_location& where = std::source_location::current()) {
    const auto child = spawn(options, std::forward<F>(body), where);
    return {base_, child.started() ? Error() : child.error()};
  }
  template <std::invocable F>
  Started start(F&& body, const std::source_location& where = std::source_location::current()) {
    return start(SpawnOptions{}, std::forward<F>(body), where);
  }

  // spawn is start with the handle that coir::spawn returns, to await, join or cancel the child. The handle may be
  // dropped. After a failed spawn await and join return the error: coir::spawn's, or cancelled, timed_out (while it
  // waited for room), closed (the nursery was joined), deadlock (every child of the full nursery, the caller the last,
  // would wait for room, and none would end).
  template <class F>
  auto spawn(const SpawnOptions& options, F&& body,
             const std::source_location& where = std::source_location::current()) {
    return detail::start(detail::GivenNursery{&base_, true}, options, std::forward<F>(body), where);
  }
  template <std::invocable F>
  auto spawn(F&& body, const std::source_location& where = std::source_location::current()) {
    return spawn(SpawnOptions{}, std::forward<F>(body), where);
  }

  // try_spawn is spawn that does not wait: at the limit the handle is not started() and its error is `limit`.
  template <class F>
  auto try_spawn(const SpawnOptions& options, F&& body,
                 const std::source_location& where = std::source_location::current()) {
    return detail::start(detail::GivenNursery{&base_, false}, options, std::forward<F>(body), where);
  }
  template <std::invocable F>
  auto try_spawn(F&& body, const std::source_location& where = std::source_location::current()) {
    return try_spawn(SpawnOptions{}, std::forward<F>(body), where);
  }

  // cancel ends the waits of all children, of those of nurseries inside, and of the owner inside. Children may still be
  // spawned, and find themselves cancelled. It is no failure: unless a child fails, join then returns success.
  void cancel(const char* reason = nullptr) noexcept { base_.cancel(reason); }

  // join waits for all children, those that they spawn meanwhile included, leaves the scope, and then runs the bodies
  // of defer, on_error and on_success. If the caller is cancelled, or its deadline or an enclosing one passes, the
  // children are cancelled and still waited for. A join inside a scope that was entered after the nursery, as
  // with_timeout's, ends the process with a line: a deadline for the children is join's own. A second join returns
  // success. Errors: the first failure's; else what ended the wait: cancelled, timed_out; unsupported (core/README.md
  // tells where).
  [[nodiscard]] std::expected<void, Error> join(
      Deadline deadline = Deadline::never(),
      const std::source_location& where = std::source_location::current()) noexcept;

  // running is how many children have not ended.
  std::uint32_t running() const noexcept { return base_.children(); }

  // defer, on_error and on_success keep `body` for join, which runs the bodies after the last child has ended, the
  // latest first. defer's always runs; on_error's, which takes the Error, if there is one by then; on_success's if
  // there is none. A body of on_error that returns normally has handled the error: join returns success unless another
  // comes. One that returns std::expected<void, Error> decides by that. Owner only; when cancelled their waits fail at
  // once, but for those behind a Shield. The bodies lie in the nursery, kRoom bytes in all; one too many ends the
  // process with a line.
  template <std::invocable F>
  void defer(F&& body, const std::source_location& where = std::source_location::current()) {
    leave_behind(where, [body = std::forward<F>(body)](std::expected<void, Error>&) mutable { body(); });
  }
  template <std::invocable<Error> F>
  void on_error(F&& body, const std::source_location& where = std::source_location::current()) {
    leave_behind(where, [body = std::forward<F>(body)](std::expected<void, Error>& outcome) mutable {
      if (outcome) return;
      if constexpr (std::is_void_v<std::invoke_result_t<F&, Error> >) {
        body(outcome.error());
        outcome = {};
      } else {
        outcome = body(outcome.error());
      }
    });
  }
  template <std::invocable F>
  void on_success(F&& body, const std::source_location& where = std::source_location::current()) {
    leave_behind(where, [body = std::forward<F>(body)](std::expected<void, Error>& outcome) mutable {
      if (outcome) body();
    });
  }

  static constexpr std::size_t kRoom = 256;

 private:
  struct Deferred {
    Deferred* earlier;
    void (*run)(Deferred* self, std::expected<void, Error>& outcome);
  };
  template <class F>
  struct DeferredBody : Deferred {
    F body;
  };
  template <class F>
  void leave_behind(const std::source_location& where, F&& body) {
    using Body = DeferredBody<std::decay_t<F> >;
    static_assert(sizeof(Body) <= kRoom && alignof(Body) <= alignof(std::max_align_t));
    deferred_ = new (room_for(sizeof(Body), where)) Body{{deferred_,
                                                          [](Deferred* self, std::expected<void, Error>& outcome) {
                                                            auto* const deferred = static_cast<Body*>(self);
                                                            deferred->body(outcome);
                                                            deferred->~Body();
                                                          }},
                                                         std::forward<F>(body)};
  }
  void* room_for(std::size_t bytes, const std::source_location& where) noexcept;

  detail::NurseryBase base_;
  bool joined_ = false;
  Deferred* deferred_ = nullptr;
  std::size_t used_ = 0;
  alignas(std::max_align_t) std::byte room_[kRoom];
};

}  // namespace coir
