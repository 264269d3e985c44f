#pragma once

// A wait for a descriptor that costs a record and no fiber.
//
//   struct Connection : coir::RestingWait {
//     int client = -1;
//   };
//
//   bool rest(Connection& connection) {
//     connection.wake = [](coir::RestingWait& woken) noexcept { show(static_cast<Connection&>(woken).client); };
//     return coir::arm_resting_wait(connection, connection.client).has_value();      // else bytes are there already
//   }

#include <coir/port/needs_fibers.h>

#include <expected>

#include <coir/descriptor.h>
#include <coir/error.h>

namespace coir {

class Scheduler;

// RestingWait is a wait without a fiber: a record that sleeps on a descriptor and owns neither stack nor buffer. An
// idle keep-alive connection embeds one; when bytes arrive, its wake spawns the fiber that serves them.
//
// From arm_resting_wait's success on the record belongs to wake, which may run on another worker before
// arm_resting_wait has returned. If close_fd closes the descriptor, or the run ends after shutdown, the record is
// forgotten: its wake never runs.
struct alignas(8) RestingWait {
  // Runs once on a worker's own stack. It must not park; spawning a fiber is its job. No scope is in force there, and
  // the fiber belongs to the root nursery, unless a Nursery that outlives the record spawns it.
  using Wake = void (*)(RestingWait& self) noexcept;
  Wake wake = nullptr;
  int fd = -1;
  Direction direction = Direction::readable;  // that it sleeps for
};

// arm_resting_wait puts the record to sleep until `fd` becomes readable (or writable, by `direction`), hangs up or
// fails. Errors: busy (the descriptor is known to be ready, or somebody waits on it already: go on, do not sleep),
// limit, closed, invalid (fd is negative), no_memory, system; unsupported (no runtime runs, or a plain thread in a build
// for one worker). From a fiber, a wake, or a plain thread while a runtime runs, which then has to outlive the call.
[[nodiscard]] std::expected<void, Error> arm_resting_wait(RestingWait& record, int fd,
                                                          Direction direction = Direction::readable) noexcept;

// ArmingUnderLock is arm_resting_wait for a caller that holds a spinlock while it arms: it goes to the kernel before the
// lock is taken and after it is free.
//
//   ArmingUnderLock arming(fd);
//   const Locked locked(lock);
//   if (auto armed = arming.arm(record); !armed) ...
class ArmingUnderLock {
 public:
  explicit ArmingUnderLock(int fd) noexcept;
  ~ArmingUnderLock();
  ArmingUnderLock(const ArmingUnderLock&) = delete;
  ArmingUnderLock& operator=(const ArmingUnderLock&) = delete;

  // arm makes no system call. Errors: as arm_resting_wait.
  [[nodiscard]] std::expected<void, Error> arm(RestingWait& record, Direction direction = Direction::readable) noexcept;

 private:
  int fd_;
  bool armed_ = false;
  bool visits_ = false;                 // by a plain thread
  Scheduler* scheduler_;                // null: there is none
  std::expected<void, Error> watched_;  // whether the poller knows the descriptor
};

// disarm_resting_wait takes a sleeping record back. True: wake has not run and will not. False: it has run or is
// about to, or was forgotten.
[[nodiscard]] bool disarm_resting_wait(RestingWait& record) noexcept;

// resting_wait_hears_edges tells whether a record may sleep on a descriptor whose bytes nobody reads, until more arrive
// or it hangs up. False: this kernel has no epoll, and such a record is woken again at once. From a fiber or in a wake.
bool resting_wait_hears_edges() noexcept;

}  // namespace coir
