#pragma once

#include "fiber/control.h"
#include "wait/park.h"
#include "wait/wait_round.h"

namespace coir {

// A fiber's end is waited for by any number of fibers and threads. Each has a WaitNode on its own stack in the list
// `waiting`, which the join word guards:
//
//   kOpen                    lives; nobody waits
//   kWaiting                 lives; the list is not empty
//   kListing                 one that begins or ends to wait changes the list: a few instructions; others wait
//   kDetached                lives without a handle: nobody waits, and the stack goes back to the pool at its end
//   kLocked                  has ended and claims those that wait, or is about to leave its stack
//   kDone                    has ended and left its stack: the handle takes the outcome
//   kTaken                   likewise, and the outcome is a joiner's: of the first that waited, or of the first after it
//   kFailed                  likewise, and the nursery still has the failure to answer for
//
//   kOpen, kWaiting          -> kLocked -> kDone, kTaken or kFailed
//   kDone                    -> kLocked -> kTaken      a joiner that comes later looks at the id, and takes it
//   kFailed                  -> kLocked -> kTaken      likewise, and takes the failure over
//                                       -> kDone       the nursery takes it over
//
// kDone, kTaken and kFailed are set from the far side of the switch, when nobody stands on the stack any more; those that were
// claimed are woken after that, without any lock.
//
// Invariant: a fiber that ends takes the list as it is under kLocked, where no node comes or goes, claims each node's
// waiter and sets its `told`, its last touch of a node whose waiter it does not wake. A waiter that another source has
// ended leaves by take_out_of_line: either it finds itself in the list under kListing, or it waits for `told`. So a
// claim meets this wait or none, and the control block is touched only while the fiber lives. (The word of a later
// fiber in the same slot may be found at kWaiting: the node is told by then, and the word is set back.)

// join_line.cpp has the functions that change the list.
//
// stand_in_line puts the node, whose waiter is armed, on the list of the fiber of that id; false when it has ended
// meanwhile, or has no handle any more.
bool stand_in_line(FiberControl* fiber, std::uint64_t id, detail::WaitNode& node) noexcept;

// take_out_of_line takes it off. False: the fiber has ended meanwhile, and its claim of the waiter is over.
bool take_out_of_line(FiberControl* fiber, detail::WaitNode& node) noexcept;

// tell_waiting claims all that wait, under kLocked, or under kListing where the handle is dropped, and leaves those that
// are to be woken in `waiting`. True: the first that wants the outcome has been claimed and takes it, if there is one to
// take. The others that want it find `takes` taken off.
bool tell_waiting(FiberControl* fiber, bool outcome) noexcept;

// wake_told wakes those that tell_waiting has left, once the join word is final. The list lies on their stacks.
void wake_told(detail::WaitNode* list) noexcept;

// JoiningThread is a plain thread in join or await. The run may end as soon as the fiber that it waits for has, so that
// the fiber's end makes it a visitor, before it can go on; release ends the visit, or the thread itself if it is too
// late.
class JoiningThread : public ThreadWaiter {
 public:
  JoiningThread() noexcept : ThreadWaiter(&wake_joining) {}
  static bool is(const Waiter& joiner) noexcept { return joiner.wakes_by(&wake_joining); }

 private:
  static void wake_joining(Waiter& waiter) noexcept { wake_thread(waiter); }
};

// ends tells of a fiber's join word whether the fiber has ended or is about to leave its stack.
inline bool ends(std::uint32_t join) noexcept {
  return join >= FiberControl::kLocked && join <= FiberControl::kFailed;
}

}  // namespace coir
