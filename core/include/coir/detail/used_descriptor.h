#pragma once

#include <coir/atomic.h>

#include <cstdint>

namespace coir::detail {

// UsedDescriptor is a descriptor that may be closed while others read, write, accept or wait. The number stays taken
// until the last of them has left, so that none of them meets a file that was opened under it meanwhile.
//
// Cost: two atomic operations for a use; plain ones in builds for one worker.
class UsedDescriptor {
 public:
  constexpr UsedDescriptor() noexcept = default;
  // Takes over `fd`; -1 is closed.
  explicit UsedDescriptor(int fd) noexcept : fd_(fd), state_(fd < 0 ? kClosed : std::uint16_t{0}) {}
  // Neither side may be in use.
  UsedDescriptor(UsedDescriptor&& other) noexcept : UsedDescriptor(other.release()) {}
  UsedDescriptor& operator=(UsedDescriptor&& other) noexcept;
  ~UsedDescriptor() { close(); }

  // Use keeps the number taken for as long as it lives.
  class Use {
   public:
    explicit Use(UsedDescriptor& of) noexcept : of_(of), open_(of.enter()) {}
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    ~Use() {
      if (open_) of_.leave();
    }
    // False: it was closed before.
    explicit operator bool() const noexcept { return open_; }
    int fd() const noexcept { return of_.fd_; }
    // ended tells that it was closed meanwhile: what the kernel answers no longer tells anything.
    bool ended() const noexcept { return !of_.is_open(); }

   private:
    UsedDescriptor& of_;
    const bool open_;
  };

  // shut_down wakes everybody who waits on a socket, on fibers and threads: it ends the connection, of which no
  // other descriptor may exist. end_waits of coir/wait.h wakes the fibers that wait on a descriptor of any kind.
  static void shut_down(int fd) noexcept;

  // close closes at once what nobody uses. Otherwise it wakes those who wait on it by `wake`, and the last of them
  // closes. Idempotent. False: it was closed before.
  bool close(void (*wake)(int fd) noexcept = shut_down) noexcept;

  // acquire pairs with the release in close: who finds it closed sees what was done before.
  bool is_open() const noexcept { return (state_.load(std::memory_order_acquire) & kClosed) == 0; }
  int number() const noexcept { return is_open() ? fd_ : -1; }
  // release gives the number to the caller, who closes it. It must not be in use.
  int release() noexcept;

 private:
  static constexpr std::uint16_t kClosed = 0x8000;  // the rest counts those who use it

  bool enter() noexcept {
    std::uint16_t seen = state_.load(std::memory_order_relaxed);
    while ((seen & kClosed) == 0) {
      if (state_.compare_exchange_weak(seen, static_cast<std::uint16_t>(seen + 1), std::memory_order_acquire,
                                       std::memory_order_relaxed)) {
        return true;
      }
    }
    return false;
  }
  void leave() noexcept {
    // acq_rel: the calls of all who have left come before the close.
    if (state_.fetch_sub(1, std::memory_order_acq_rel) == (kClosed | 1)) [[unlikely]]
      close_unused();
  }
  void close_unused() noexcept;

  int fd_ = -1;
  Atomic<std::uint16_t> state_ = kClosed;
};

}  // namespace coir::detail
