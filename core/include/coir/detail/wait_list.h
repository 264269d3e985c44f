#pragma once

#include <coir/port/needs_fibers.h>

#include <coir/atomic.h>
#include <coir/detail/intrusive_list.h>

namespace coir::detail {

struct WaitRound;
struct Selection;  // who waits in several lists at once; see select.h

// ToldFlag is an atomic flag of a node that is copied before anybody waits.
struct ToldFlag : Atomic<bool> {
  constexpr ToldFlag() noexcept : Atomic<bool>(false) {}
  constexpr ToldFlag(const ToldFlag&) noexcept : Atomic<bool>(false) {}
};

// WaitNode is a waiter's place in one WaitList. It lies on the waiter's own stack; a select has several. All of it is
// guarded by the lock of the list that it stands in.
struct WaitNode {
  WaitNode* next = nullptr;
  WaitNode* previous = nullptr;
  WaitRound* round = nullptr;  // the wait that it belongs to
  void* slot = nullptr;        // what is waited for: the value to move from or to, or how much of something
  bool queued = false;
  bool parked = false;    // how the claim found the waiter
  bool closed = false;    // it was taken out because nothing comes any more
  bool first = false;     // it is to stand before all others
  bool replaces = false;  // `slot` holds a value, which the one that is received takes the place of
  bool inside = false;    // the waiter is one of those whose ends make the room that the line waits for
  bool takes = false;     // waits for the end of a fiber to take its outcome, and not merely to hear of it
  ToldFlag told;          // the fiber that is waited for has ended and touches this node no more
};

// WaitList is the line of those who wait for one thing, the oldest first. Each object that fibers and threads wait on
// embeds one beside the lock that guards it; nothing here is for others to call.
//
// A wait of theirs returns `unsupported` where nothing can be waited for: on a worker's own stack, as in a
// RestingWait's wake, and on a plain thread of a single-worker build, where no other thread may touch what is waited
// on. Calls that need not wait still succeed.
class WaitList {
 public:
  bool empty() const noexcept { return nodes_.empty(); }
  WaitNode* front() const noexcept { return nodes_.front(); }

  void push(WaitNode& node) noexcept {
    if (node.first) {
      nodes_.push_front(node);
    } else {
      nodes_.push_back(node);
    }
    node.queued = true;
  }

  void remove(WaitNode& node) noexcept {
    nodes_.remove(node);
    node.queued = false;
  }

 private:
  IntrusiveList<WaitNode> nodes_;
};

}  // namespace coir::detail
