#pragma once

namespace coir {

class Scheduler;
class Waiter;
struct FiberControl;
namespace detail {
struct WaitNode;
}  // namespace detail

// The scheduler calls these functions of the rooms above it: declared here, defined there.

// From scope/nursery_made.cpp. unlink_from_nursery takes a fiber that has left its stack off its nursery's list, when
// its handle was dropped; end_held_in_nursery sets the join word of one whose handle is held. Both return the waiter
// that the caller wakes, claimed, or null.
Waiter* unlink_from_nursery(FiberControl* fiber) noexcept;
Waiter* end_held_in_nursery(FiberControl* fiber) noexcept;

// From scope/join.cpp. wake_told wakes those that were told of a fiber's end.
void wake_told(detail::WaitNode* list) noexcept;

// From inspect/report.cpp and inspect/overflow.cpp.

// report_deadlock lists what is parked, on standard error.
void report_deadlock(const Scheduler& scheduler) noexcept;

// report_held_mutexes names a fiber that ends with mutexes locked, on standard error.
void report_held_mutexes(const FiberControl& fiber) noexcept;

// install_overflow_report catches faults in guard pages until every run that called it has removed it; each thread that
// runs fibers needs a signal stack, of inspect/signal_stack.cpp.
void install_overflow_report() noexcept;
void remove_overflow_report() noexcept;
// add_signal_stack gives the calling thread one, or returns null where it cannot; remove_signal_stack puts back what the
// thread had before. Neither touches what the program itself sets in between.
struct SignalStack;
SignalStack* add_signal_stack() noexcept;
void remove_signal_stack(SignalStack* added) noexcept;

// report_overflow names the fiber and ends the process. Async-signal-safe.
[[noreturn]] void report_overflow(const FiberControl& fiber) noexcept;

}  // namespace coir
