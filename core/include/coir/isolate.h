#pragma once

#include <coir/port/needs_fibers.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <type_traits>
#include <utility>

#include <coir/deadline.h>
#include <coir/detail/construct.h>
#include <coir/detail/outcome.h>
#include <coir/error.h>
#include <coir/message.h>

namespace coir {

// Deny is what a worker may not do, nor what it starts: the kernel answers EPERM to the system calls in question.
//
//   net      socket, socketpair, connect, bind, listen, accept: no new socket and no new connection
//   fs       every call that names a file by its path, with AT_EMPTY_PATH too: open, stat, readlink, rename, mkdir,
//            chdir, mount, extended attributes, inotify_add_watch, mq_open, bpf, execve and so on; and new sockets of
//            AF_UNIX, pairs too, for their addresses are paths, which no filter can read
//   process  fork, vfork, clone but for threads, execve; clone3 answers ENOSYS, so that libc takes clone
//
// Descriptors that are open already stay usable in each case, for what passes through them as well: a socket carries
// on, a datagram socket to any address, one of AF_UNIX to and from any path; and openat's like are denied even beneath
// an open folder. System calls that are newer than the list answer ENOSYS. Each denies io_uring, ptrace,
// process_vm_readv and pidfd_getfd too, which lead around it, and the system calls of other CPUs' programs (32-bit
// code, x32).
//
// A denial holds for what the kernel is asked for. It contains mistakes, and what foreign data makes a parser do
// through the kernel; it is no wall against machine code that runs in the worker, which shares the process's memory.
// Nor does it follow what is handed to others: a plain thread that the worker starts is denied the same, but is no
// thread of its run, and a fiber that it spawns is one of the process's.
enum class Deny : std::uint8_t { nothing = 0, net = 1, fs = 2, process = 4 };
constexpr Deny operator|(Deny a, Deny b) noexcept {
  return static_cast<Deny>(static_cast<std::uint8_t>(a) | static_cast<std::uint8_t>(b));
}
constexpr bool denies(Deny set, Deny one) noexcept {
  return (static_cast<std::uint8_t>(set) & static_cast<std::uint8_t>(one)) != 0;
}

struct IsolateOptions {
  const char* name = "isolate";  // of its first fiber; outlives the worker
  Deny deny = Deny::nothing;
  std::size_t stack = 0;           // bytes, of its first fiber; 0: the board's default
  std::size_t queue_bytes = 4096;  // what may lie between the two, in each direction; a message takes 16 bytes more
};

namespace detail {

class IsolateCore;

// IsolateBody is how a worker's thread calls f and keeps its result.
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
void cancel_isolate(IsolateCore& core) noexcept;
bool isolate_cancelled(const IsolateCore& core) noexcept;
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

// IsolatePort is a worker's end of the two queues. Its fibers and threads may use it at a time, until f returns.
class IsolatePort {
 public:
  explicit IsolatePort(detail::IsolateCore& core) noexcept : core_(core) {}
  IsolatePort(const IsolatePort&) = delete;
  IsolatePort& operator=(const IsolatePort&) = delete;

  // send and receive are Isolate's, from the other end.
  template <Message T>
  [[nodiscard]] std::expected<void, Error> send(const T& message, Deadline deadline = Deadline::never()) noexcept {
    return detail::send_message(core_, detail::IsolateSide::isolate, detail::kMessageType<T>, std::addressof(message),
                                deadline);
  }
  template <Message T>
  [[nodiscard]] std::expected<T, Error> receive(Deadline deadline = Deadline::never()) noexcept {
    return detail::receive_as<T>(core_, detail::IsolateSide::isolate, deadline);
  }
  // close tells the owner that no more comes. What f's end does in any case.
  void close() noexcept { detail::close_messages(core_, detail::IsolateSide::isolate); }

  // cancelled tells whether the owner has cancelled the worker; a long computation asks now and then.
  bool cancelled() const noexcept { return detail::isolate_cancelled(core_); }

 private:
  detail::IsolateCore& core_;
};

// IsolateFunction is what a worker can run: f(IsolatePort&), whose closure crosses as a message would, by its bytes.
template <class F>
concept IsolateFunction =
    std::is_trivially_copyable_v<F> && alignof(F) <= alignof(std::max_align_t) && std::invocable<F&, IsolatePort&> &&
    (std::is_void_v<typename detail::Outcome<std::invoke_result_t<F&, IsolatePort&> >::Value> ||
     Message<typename detail::Outcome<std::invoke_result_t<F&, IsolatePort&> >::Value>);

// Isolate is a thread of its own with a scheduler of its own, which shares nothing with the rest of the process but two
// queues of messages: its fibers, channels and locks are not for fibers of other runs, nor theirs for them. Who waits
// in one for the other parks, if a fiber, or blocks, if a plain thread.
//
//   auto worker = coir::Isolate::spawn([](coir::IsolatePort& port) {
//     while (auto job = port.receive<Job>()) static_cast<void>(port.send(render(*job)));
//   }, {.deny = coir::Deny::net | coir::Deny::fs | coir::Deny::process});
//   worker->send(job);
//   auto page = worker->receive<Page>(Deadline::after(1s));
//   worker->close();                              // the loop above ends once it has drained its queue
//   worker->await();
//
// Inside f everything of coir works as in a run of its own: spawn, timers, descriptors, File, Process. Calls that block
// run on threads that the worker starts for itself, so that what is denied is denied to them. A deadlock of its fibers
// is reported and ends it; a fiber that waits for a message is no deadlock, on either side. A descriptor is waited on,
// and closed, in one run at a time. stats and dump_fibers tell of the run that calls them; wait_signal is for the
// process's own.
//
// In a build with one worker (COIR_SINGLE_WORKER) nothing of a fiber may be touched by a second thread, so f runs on
// its thread without a scheduler: messages, files and processes block it, spawn fails with `unsupported`, and it may
// use neither ledger nor channels. There the owner's calls are for fibers of the run, or for a plain thread before it.
//
// Cost: a thread, 64 KB of stack on account::stacks, both queues on account::channels, two or three descriptors; some
// tens of microseconds to start.
class Isolate {
 public:
  // spawn starts a worker that runs f, and returns once its denials are in force and its scheduler runs. Waits for
  // that, whatever comes. Errors: unsupported (the kernel cannot enforce a denial, with its errno; or called on a
  // worker's own stack), no_memory, limit, system. f has not run then.
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
  Isolate& operator=(Isolate&& other) noexcept {
    std::swap(core_, other.core_);
    return *this;
  }

  // The end of a worker closes both queues, cancels it and waits until its thread has ended, whatever comes.
  ~Isolate() {
    if (core_ != nullptr) detail::end_isolate(core_);
  }

  // send waits for room. Messages arrive in the order of their sending, each once; of several that wait none is sure to
  // be first. The message's bytes are copied. Fiber or thread.
  // Errors: closed (by either side, or f has ended), limit (it is larger than the queue), timed_out, cancelled.
  template <Message T>
  [[nodiscard]] std::expected<void, Error> send(const T& message, Deadline deadline = Deadline::never()) noexcept {
    return detail::send_message(*core_, detail::IsolateSide::owner, detail::kMessageType<T>, std::addressof(message),
                                deadline);
  }

  // receive waits for the next message, which is there after a close as well. Errors: closed (and drained), invalid (it is
  // of another type, and stays for who asks for that), what unmarshalling it returned, timed_out, cancelled.
  template <Message T>
  [[nodiscard]] std::expected<T, Error> receive(Deadline deadline = Deadline::never()) noexcept {
    return detail::receive_as<T>(*core_, detail::IsolateSide::owner, deadline);
  }

  // close tells the worker that no more comes: it drains its queue, then gets `closed`. Idempotent; never waits.
  void close() noexcept { detail::close_messages(*core_, detail::IsolateSide::owner); }

  // cancel ends every wait of the worker's fibers, those that come later too, with `cancelled`. Idempotent; never
  // waits.
  void cancel() noexcept { detail::cancel_isolate(*core_); }

  // await waits for the end of the worker and returns what f returned; once, for a result that is a value. R is what f
  // returns, or the value of the std::expected that it returns. Errors: f's own; the first failure of a fiber that
  // nobody handled; deadlock; invalid (f returns something else); stale (it was taken); limit (a marshalled result
  // larger than queue_bytes); timed_out, cancelled (the wait).
  template <class R = void>
    requires std::is_void_v<R> || Message<R>
  [[nodiscard]] std::expected<R, Error> await(Deadline deadline = Deadline::never()) noexcept {
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
