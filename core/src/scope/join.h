#pragma once

#include "fiber/control.h"
#include "wait/park.h"

namespace coir {

// open_to_waiting shows the joiner to the fiber; false when it has ended meanwhile.
bool open_to_waiting(FiberControl* fiber, Waiter* joiner) noexcept;

// leave_joining takes the joiner back. False: the fiber has ended meanwhile, and its claim of the joiner is over.
bool leave_joining(FiberControl* fiber) noexcept;

// JoiningThread is a plain thread in join or await. The run may end as soon as the fiber that it waits for has, so that
// the fiber's end makes it a visitor, before it can go on; release ends the visit.
class JoiningThread : public ThreadWaiter {
 public:
  JoiningThread() noexcept : ThreadWaiter(&wake_joining) {}
  static bool is(const Waiter& joiner) noexcept { return joiner.wakes_by(&wake_joining); }

 private:
  static void wake_joining(Waiter& waiter) noexcept { wake_thread(waiter); }
};

// ends tells of a fiber's join word whether the fiber has ended or is about to leave its stack.
inline bool ends(std::uint32_t join) noexcept {
  return join != FiberControl::kOpen && join != FiberControl::kWaiting && join != FiberControl::kDetached;
}

}  // namespace coir
