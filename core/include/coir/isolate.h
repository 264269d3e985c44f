#pragma once

// A thread with a runtime of its own, which shares nothing and may be denied much.
//
//   auto isolate = Isolate::spawn([](IsolatePort& port) {
//     while (auto line = port.receive<std::string>()) static_cast<void>(port.send(*line));
//   }, {.queue_bytes = 65536});
//   if (!isolate) return complain(isolate.error());

#include <coir/port/needs_fibers.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <type_traits>
#include <utility>

#include <coir/deadline.h>
#include <coir/detail/construct.h>
#include <coir/detail/fiber_handle.h>
#include <coir/detail/outcome.h>
#include <coir/error.h>
#include <coir/message.h>

namespace coir {

// Deny names what an isolate gives up, for itself and for everything that it starts. The kernel answers the system
// calls with EPERM, and Isolate::spawn its caller.
//
//   net      socket, socketpair, connect, bind, listen, accept: no new socket and no new connection
//   fs       every call that names a file by its path, with AT_EMPTY_PATH too: open, stat, readlink, rename, mkdir,
//            chdir, mount, extended attributes, inotify_add_watch, mq_open, bpf, execve and so on; openat and its
//            like also beneath an open folder; new sockets and pairs of AF_UNIX, whose addresses are paths that no
//            filter can read
//   process  fork, vfork, clone except for threads, execve; clone3 answers ENOSYS, so that libc takes clone
//   isolates Isolate::spawn; threads of other kinds can still be started
//
// Open descriptors stay usable, whatever is denied: an open socket sends and receives, a datagram socket to any
// address, a socket of AF_UNIX to any path. System calls that are newer than the list answer ENOSYS. Each denial
// includes the ways around it: io_uring, ptrace, process_vm_readv, pidfd_getfd, and the system calls of other CPUs'
// programs (32-bit code, x32).
//
// A denial contains mistakes, and system calls that hostile input talks a parser into. It is no wall against machine
// code in the isolate, which shares the process's memory. A plain thread that the isolate starts is denied the same
// calls, but belongs to no run of the isolate: a fiber that such a thread spawns is the process's.
enum class Deny : std::uint8_t { nothing = 0, net = 1, fs = 2, process = 4, isolates = 8 };
constexpr Deny operator|(Deny a, Deny b) noexcept {
  return static_cast<Deny>(static_cast<std::uint8_t>(a) | static_cast<std::uint8_t>(b));
}
constexpr bool denies(Deny set, Deny one) noexcept {
  return (static_cast<std::uint8_t>(set) & static_cast<std::uint8_t>(one)) != 0;
}

struct IsolateOptions {
  const char* name = "isolate";  // of its first fiber; outlives the isolate
  Deny deny = Deny::nothing;
  std::size_t stack = 0;           // bytes, of its first fiber; 0: the board's default
  std::size_t queue_bytes = 4096;  // of each of its two queues; a message takes 16 bytes more
};

namespace detail {

class IsolateCore;

// IsolateBody is how an isolate's thread calls f and keeps its result.
struct IsolateBody {
  const void* closure;
  std::size_t closure_bytes;
  std::size_t result_bytes;  // of a plain result; SIZE_MAX where it is marshalled, 0 where there is none
  // run returns the error that f returned, or one without a code.
  Error (*run)(void* closure, IsolateCore& core);
};

enum class IsolateSide : std::uint8_t { owner, isolate };

std::expected<IsolateCore*, Error> start_isolate(const IsolateBody& body, const IsolateOptions& options) noexcept;
void end_isolate(IsolateCore* core) noexcept;
std::expected<void, Error> send_message(IsolateCore& core, IsolateSide from, const MessageType& type,
                                        const void* message, Deadline deadline) noexcept;
std::expected<void, Error> receive_message(IsolateCore& core, IsolateSide by, const MessageType& type, void* into,
                                           Deadline deadline) noexcept;
void close_messages(IsolateCore& core, IsolateSide from) noexcept;
void cancel_isolate(IsolateCore& core, const char* reason) noexcept;
bool isolate_cancelled(const IsolateCore& core) noexcept;
const char* isolate_cancel_reason(const IsolateCore& core) noexcept;
FiberStatus isolate_status(IsolateCore& core) noexcept;
std::expected<void, Error> keep_result(IsolateCore& core, const MessageType& type, const void* result) noexcept;
std::expected<void, Error> take_result(IsolateCore& core, const MessageType* type, void* into,
                                       Deadline deadline) noexcept;

template <Message T>
std::expected<T, Error> receive_as(IsolateCore& core, IsolateSide by, Deadline deadline) noexcept {
  MessageRoom<T> room;
  if (auto received = receive_message(core, by, kMessageType<T>, std::addressof(room.value), deadline); !received) {
    return std::unexpected(received.error());
  }
  std::expected<T, Error> message(std::move(room.value));
  std::destroy_at(std::addressof(room.value));
  return message;
}

}  // namespace detail

// IsolatePort is the isolate's end of the two queues. Several of its fibers and threads may use it at a time, until f
// returns.
class IsolatePort {
 public:
  explicit IsolatePort(detail::IsolateCore& core) noexcept : core_(core) {}
  IsolatePort(const IsolatePort&) = delete;
  IsolatePort& operator=(const IsolatePort&) = delete;

  // send and receive are as Isolate's, from the other end.
  template <Message T>
  [[nodiscard]] std::expected<void, Error> send(const T& message, Deadline deadline = Deadline::never()) noexcept {
    return detail::send_message(core_, detail::IsolateSide::isolate, detail::kMessageType<T>, std::addressof(message),
                                deadline);
  }
  template <Message T>
  [[nodiscard]] std::expected<T, Error> receive(Deadline deadline = Deadline::never()) noexcept {
    return detail::receive_as<T>(core_, detail::IsolateSide::isolate, deadline);
  }
  // close tells the owner that no more messages come. The end of f closes too.
  void close() noexcept { detail::close_messages(core_, detail::IsolateSide::isolate); }

  // cancelled tells whether the owner has cancelled the isolate. A long computation asks now and then.
  bool cancelled() const noexcept { return detail::isolate_cancelled(core_); }
  // cancel_reason is the owner's reason for it, or null. Fibers of the isolate also get it from coir::cancel_reason.
  const char* cancel_reason() const noexcept { return detail::isolate_cancel_reason(core_); }

 private:
  detail::IsolateCore& core_;
};

// IsolateFunction is a function that an isolate can run: f(IsolatePort&). Its closure is copied by its bytes, as a
// message is.
template <class F>
concept IsolateFunction =
    std::is_trivially_copyable_v<F> && alignof(F) <= alignof(std::max_align_t) && std::invocable<F&, IsolatePort&> &&
    (std::is_void_v<typename detail::Outcome<std::invoke_result_t<F&, IsolatePort&> >::Value> ||
     Message<typename detail::Outcome<std::invoke_result_t<F&, IsolatePort&> >::Value>);

// Isolate is a thread with a scheduler of its own. It shares two queues of messages with the rest of the process, and
// nothing else: its fibers, channels and locks are not for fibers of other runs, nor theirs for its own. A fiber that
// waits for the other side parks; a plain thread blocks. A handle that was moved from has no isolate: its calls return
// `stale`.
//
//   auto renderer = coir::Isolate::spawn([](coir::IsolatePort& port) {
//     while (auto job = port.receive<Job>()) static_cast<void>(port.send(render(*job)));
//   }, {.deny = coir::Deny::net | coir::Deny::fs | coir::Deny::process});
//   if (auto sent = renderer->send(job); !sent) return complain(sent.error());
//   auto page = renderer->receive<Page>(Deadline::after(1s));
//   renderer->close();                            // the loop above ends once it has drained its queue
//   if (!renderer->await(Deadline::after(1s))) static_cast<void>(renderer->cancel("it is too late"));
//
// Inside f everything of coir works as in a run of its own: spawn, timers, descriptors, File, Process. Calls that block
// run on threads that the isolate starts, so that its denials hold for them. A deadlock of its fibers is reported and
// ends the isolate; a fiber that waits for a message is no deadlock, on either side. A descriptor is waited on, and
// closed, in one run at a time. stats and dump_fibers show the run that calls them. wait_signal is for the process's
// own run.
//
// In a build with one worker (COIR_SINGLE_WORKER) no second thread may touch a fiber. There f runs on its thread
// without a scheduler: messages, files and processes block the thread, spawn fails with `unsupported`, and f may use
// neither ledger nor channels. The owner's calls are then for fibers of the run, or for a plain thread before the run.
//
// Cost: a thread, 264 KB of stack on account::stacks, of which only touched pages are resident, both queues on
// account::channels, two or three descriptors; some tens of microseconds to start.
class Isolate {
 public:
  // spawn starts an isolate that runs f. It returns once the denials are in force and the scheduler runs; neither a
  // deadline nor a cancellation ends that wait. Errors: unsupported (the kernel cannot enforce a denial, with its
  // errno; or called on a worker's own stack), no_memory, limit, system (EPERM where the caller is denied isolates).
  // After an error f has not run.
  template <IsolateFunction F>
  [[nodiscard]] static std::expected<Isolate, Error> spawn(const F& f, const IsolateOptions& options = {}) noexcept {
    using Result = std::invoke_result_t<F&, IsolatePort&>;
    using Value = typename detail::Outcome<Result>::Value;
    detail::IsolateBody body{std::addressof(f), sizeof(F), 0, &run<F>};
    if constexpr (!std::is_void_v<Value>) body.result_bytes = MarshalledMessage<Value> ? SIZE_MAX : sizeof(Value);
    auto core = detail::start_isolate(body, options);
    if (!core) return std::unexpected(core.error());
    return Isolate(*core);
  }

  Isolate(Isolate&& other) noexcept : core_(std::exchange(other.core_, nullptr)) {}
  // An isolate that the handle had before ends as by its destructor.
  Isolate& operator=(Isolate&& other) noexcept {
    if (this != &other) {
      if (core_ != nullptr) detail::end_isolate(core_);
      core_ = std::exchange(other.core_, nullptr);
    }
    return *this;
  }

  // The end of the handle closes both queues, cancels the isolate and waits until its thread has ended. Neither a
  // deadline nor a cancellation ends that wait.
  ~Isolate() {
    if (core_ != nullptr) detail::end_isolate(core_);
  }

  // send waits for room and copies the message's bytes. Messages arrive once each, in the order of their sending;
  // senders that wait at the same time go on in any order. Fiber or thread.
  // Errors: closed (by either side, or f has ended), limit (the message is larger than the queue), timed_out,
  // cancelled, stale (a moved-from handle).
  template <Message T>
  [[nodiscard]] std::expected<void, Error> send(const T& message, Deadline deadline = Deadline::never()) noexcept {
    if (core_ == nullptr) return std::unexpected(Error{ErrorCode::stale});
    return detail::send_message(*core_, detail::IsolateSide::owner, detail::kMessageType<T>, std::addressof(message),
                                deadline);
  }

  // receive waits for the next message. Messages that were sent before a close are received after it. Fiber or thread.
  // Errors: closed (and drained), invalid (the next message is of another type, and stays), the error that
  // unmarshalling returned (the message is gone), timed_out, cancelled, stale (a moved-from handle).
  template <Message T>
  [[nodiscard]] std::expected<T, Error> receive(Deadline deadline = Deadline::never()) noexcept {
    if (core_ == nullptr) return std::unexpected(Error{ErrorCode::stale});
    return detail::receive_as<T>(*core_, detail::IsolateSide::owner, deadline);
  }

  // close tells the isolate that no more messages come: it drains its queue, then gets `closed`. Idempotent; never
  // waits. A handle without an isolate has nothing to close.
  void close() noexcept {
    if (core_ != nullptr) detail::close_messages(*core_, detail::IsolateSide::owner);
  }

  // cancel ends every wait of the isolate's fibers with `cancelled`, the later ones too. The first `reason`, a literal
  // or null, is what cancel_reason() returns inside. Idempotent; never waits. Fiber or thread. Error: stale.
  [[nodiscard]] std::expected<void, Error> cancel(const char* reason = nullptr) noexcept {
    if (core_ == nullptr) return std::unexpected(Error{ErrorCode::stale});
    detail::cancel_isolate(*core_, reason);
    return {};
  }

  // status tells how far the isolate has come: `failed` if await returns an error of the isolate, `empty` without an
  // isolate. done tells whether it has ended, so that await need not wait. Neither waits. Fiber or thread.
  FiberStatus status() const noexcept { return core_ == nullptr ? FiberStatus::empty : detail::isolate_status(*core_); }
  bool done() const noexcept {
    const FiberStatus now = status();
    return now == FiberStatus::succeeded || now == FiberStatus::failed;
  }

  // await waits for the end of the isolate and returns the result of f. A result that is a value can be taken once. R
  // is the type that f returns, or the value of the std::expected that f returns; void leaves the result in place.
  // Errors: the error of f; the first failure of a fiber that nobody handled; deadlock; invalid (f returns another
  // type); stale (the result was taken, or there is no isolate); limit (a marshalled result is larger than
  // queue_bytes); timed_out, cancelled (the wait).
  template <class R = void>
    requires std::is_void_v<R> || Message<R>
  [[nodiscard]] std::expected<R, Error> await(Deadline deadline = Deadline::never()) noexcept {
    if (core_ == nullptr) return std::unexpected(Error{ErrorCode::stale});
    if constexpr (std::is_void_v<R>) {
      return detail::take_result(*core_, nullptr, nullptr, deadline);
    } else {
      detail::MessageRoom<R> room;
      if (auto taken = detail::take_result(*core_, &detail::kMessageType<R>, std::addressof(room.value), deadline);
          !taken) {
        return std::unexpected(taken.error());
      }
      std::expected<R, Error> value(std::move(room.value));
      std::destroy_at(std::addressof(room.value));
      return value;
    }
  }

 private:
  explicit Isolate(detail::IsolateCore* core) noexcept : core_(core) {}

  template <class F>
  static Error run(void* closure, detail::IsolateCore& core) {
    using Result = std::invoke_result_t<F&, IsolatePort&>;
    using Value = typename detail::Outcome<Result>::Value;
    IsolatePort port(core);
    F& f = *static_cast<F*>(closure);
    if constexpr (std::is_void_v<Result>) {
      f(port);
    } else {
      std::expected<Value, Error> outcome = f(port);
      if (!outcome) return outcome.error();
      if constexpr (!std::is_void_v<Value>) {
        auto kept = detail::keep_result(core, detail::kMessageType<Value>, std::addressof(*outcome));
        if (!kept) return kept.error();
      }
    }
    return {};
  }

  detail::IsolateCore* core_;
};

}  // namespace coir
