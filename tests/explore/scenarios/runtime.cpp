#include <coir/cancel_scope.h>
#include <coir/channel.h>
#include <coir/condition.h>
#include <coir/event.h>
#include <coir/fiber.h>
#include <coir/mutex.h>
#include <coir/nursery.h>
#include <coir/port/poller.h>
#include <coir/runtime.h>
#include <coir/select.h>
#include <coir/task.h>
#include <coir/wait.h>

#include "tests/explore/explore.h"

// Whole runs with two workers: how fibers park, wake and end, and how workers sleep and are woken. Nothing in them
// waits for a time: if everybody still sleeps until a deadline, a wakeup has been lost.

namespace coir::explore {

namespace {

constexpr std::size_t kStack = 64 * 1024;  // a report is written on whatever stack fails

template <class Body>
void run_on_two(Body body) {
  require(run_until_idle({.workers = 2, .default_stack = kStack}, body).has_value());
  require(time_passed() == 0);
}

void fibers_end() {
  Atomic<int> ended{0};
  run_on_two([&] {
    for (int i = 0; i < 3; ++i) spawn([&] { ended.fetch_add(1); }).detach();
  });
  require(ended.load() == 3);
}

void join_meets_end() {
  run_on_two([&] {
    Task<int> task = spawn([] { return 7; });
    require(task.await().value_or(0) == 7);
  });
}

// Two begin to wait for the end while it comes. One joins, the other watches; a third wait is given up.
void two_wait_for_an_end() {
  require(run_until_idle({.workers = 2, .default_stack = kStack}, [] {
            bool over = false;
            Task<int> task = spawn([&] {
              over = true;
              return 7;
            });
            Fiber watcher = spawn([&] {
              const auto soon = select({Case::ended(task)}, Deadline::after(std::chrono::milliseconds(1)));
              require(soon ? over : soon.error() == ErrorCode::timed_out);
              require(select({Case::ended(task)}).has_value());
              require(over);
            });
            require(task.await().value_or(0) == 7);
            require(watcher.join().has_value());
          }).has_value());
}

// Two join by one handle: one has the outcome.
void two_take_an_outcome() {
  run_on_two([] {
    Task<int> task = spawn([] { return 7; });
    Atomic<int> taken{0};
    const auto take = [&] {
      const auto got = task.await();
      require(got ? *got == 7 : got.error() == ErrorCode::stale);
      if (got) taken.fetch_add(1);
    };
    Fiber one = spawn(take), other = spawn(take);
    require(one.join().has_value() && other.join().has_value());
    require(taken.load() == 1);
  });
}

void nursery_waits_for_the_last_child() {
  Atomic<int> ended{0};
  run_on_two([&] {
    Nursery nursery;
    for (int i = 0; i < 2; ++i) nursery.start([&] { ended.fetch_add(1); });
    require(nursery.join().has_value());
    require(ended.load() == 2);
  });
}

void failure_cancels_the_siblings() {
  run_on_two([&] {
    Event never;
    Nursery nursery;
    nursery.start([&] { require(never.wait().error() == ErrorCode::cancelled); });
    nursery.start([&]() -> std::expected<void, Error> { return std::unexpected(Error{ErrorCode::invalid}); });
    require(nursery.join().error() == ErrorCode::invalid);
  });
}

void rendezvous_of_fibers() {
  run_on_two([&] {
    Channel<int> there, back;
    Fiber other = spawn([&] {
      for (int i = 0; i < 2; ++i) require(back.send(there.receive().value_or(0) + 1).has_value());
    });
    for (int i = 0; i < 2; ++i) {
      require(there.send(i).has_value());
      require(back.receive().value_or(0) == i + 1);
    }
    require(other.join().has_value());
  });
}

void cancel_meets_wait() {
  run_on_two([&] {
    Event never;
    bool cancelled = false;
    Fiber waiter = spawn([&] { cancelled = !never.wait().has_value(); });
    require(waiter.cancel().has_value());
    require(waiter.join().has_value());
    require(cancelled);
  });
}

// The owner shows its wait, then tests for a mark; the canceller marks, then looks for a wait.
void scope_meets_wait() {
  run_on_two([&] {
    Event never;
    Atomic<CancelScope*> scope{nullptr};
    Atomic<bool> left{false};
    Fiber waiter = spawn([&] {
      CancelScope mine;
      scope.store(&mine);
      require(never.wait().error() == ErrorCode::cancelled);
      while (!left.load()) yield();
    });
    while (scope.load() == nullptr) yield();
    scope.load()->cancel();
    left.store(true);
    require(waiter.join().has_value());
  });
}

// The canceller walks down to the nursery, while its owner opens and closes it and its child begins to wait.
void scope_meets_children() {
  run_on_two([&] {
    Event never;
    Atomic<CancelScope*> scope{nullptr};
    Atomic<bool> left{false};
    Fiber owner = spawn([&] {
      CancelScope mine;
      scope.store(&mine);
      Nursery nursery;
      nursery.start([&] { require(never.wait().error() == ErrorCode::cancelled); });
      while (nursery.running() != 0) yield();  // no wait of its own passes the mark on
      static_cast<void>(nursery.join());
      while (!left.load()) yield();
    });
    while (scope.load() == nullptr) yield();
    scope.load()->cancel();
    left.store(true);
    require(owner.join().has_value());
  });
}

// The same for the owner's own cancellation, which comes before, while or after the nursery is made.
void cancel_meets_children() {
  run_on_two([&] {
    Event never;
    Fiber owner = spawn([&] {
      Nursery nursery;
      nursery.start([&] { require(never.wait().error() == ErrorCode::cancelled); });
      while (nursery.running() != 0) yield();
      static_cast<void>(nursery.join());
    });
    require(owner.cancel().has_value());
    require(owner.join().has_value());
  });
}

void cancel_against_set() {
  run_on_two([&] {
    Event event;
    Fiber waiter = spawn([&] { static_cast<void>(event.wait()); });
    Fiber setter = spawn([&] { event.set(); });
    static_cast<void>(waiter.cancel());
    require(setter.join().has_value());
    require(waiter.join().has_value());
  });
}

// The deadline of a wait comes while its event does, and again for a sleeper that the same advance wakes.
void deadline_meets_set() {
  require(run_until_idle({.workers = 2, .default_stack = kStack}, [] {
            Event event;
            Fiber waiter = spawn([&] {
              const auto waited = event.wait(Deadline::after(std::chrono::milliseconds(1)));
              require(waited.has_value() || waited.error() == ErrorCode::timed_out);
            });
            Fiber setter = spawn([&] {
              require(sleep(std::chrono::milliseconds(1)).has_value());
              event.set();
            });
            require(waiter.join().has_value() && setter.join().has_value());
          }).has_value());
}

void mutex_of_fibers() {
  run_on_two([&] {
    Mutex mutex;
    int count = 0;
    const auto add = [&] {
      const auto held = mutex.lock();
      require(held.has_value());
      const int before = count;
      yield();
      count = before + 1;
    };
    Fiber one = spawn(add), other = spawn(add);
    require(one.join().has_value() && other.join().has_value());
    require(count == 2);
  });
}

void select_of_fibers() {
  run_on_two([&] {
    Channel<int> one, other;
    Fiber first = spawn([&] { require(one.send(1).has_value()); });
    Fiber second = spawn([&] { require(other.send(2).has_value()); });
    int sum = 0;
    for (int i = 0; i < 2; ++i) {
      int a = 0, b = 0;
      require(select({Case::receive(one, a), Case::receive(other, b)}).has_value());
      sum += a + b;
    }
    require(sum == 3);
    require(first.join().has_value() && second.join().has_value());
  });
}

// A thread that is no worker makes a fiber runnable while the workers go to sleep. It begins where the fiber is about
// to wait: what comes before has no part in it.
void inject(unsigned workers) {
  Channel<int> channel({.capacity = 1});
  int sender = 0;
  require(run_until_idle({.workers = workers, .default_stack = kStack}, [&] {
            sender =
                start([](void* into) { require(static_cast<Channel<int>*>(into)->send(3).has_value()); }, &channel);
            require(channel.receive().value_or(0) == 3);
          }).has_value());
  require(time_passed() == 0);
  join(sender);
}

void injection_meets_the_only_worker() {
  inject(1);
}
void injection_meets_idle_workers() {
  inject(2);
}

// The run's last fiber ends while a thread brings another: that runs, or is refused.
void spawn_meets_the_end() {
  struct Brought {
    Atomic<int> started{0}, ran{0};
  } brought;
  static constexpr SpawnOptions kOther{.stack = kStack / 2};
  int bringer = 0;
  require(run_until_idle({.workers = 1, .default_stack = kStack, .hot_stacks = 1}, [&] {
            {
              // Two stacks, of which one stays hot: the guard of the one that the thread gets is armed in any order.
              Fiber one = spawn(kOther, [] {}), other = spawn(kOther, [] {});
              require(one.join().has_value() && other.join().has_value());
            }
            bringer = start(
                [](void* of) {
                  auto* const bring = static_cast<Brought*>(of);
                  Fiber fiber = spawn(kOther, [bring] { bring->ran.fetch_add(1); });
                  if (fiber.started()) bring->started.fetch_add(1);
                  fiber.detach();
                },
                &brought);
          }).has_value());
  join(bringer);
  require(brought.ran.load() == brought.started.load());
}

// One that injects may be taken for a searcher by the other.
void two_inject() {
  Channel<int> channel({.capacity = 2});
  const auto send = [](void* into) { require(static_cast<Channel<int>*>(into)->send(1).has_value()); };
  int senders[2] = {};
  require(run_until_idle({.workers = 1, .default_stack = kStack}, [&] {
            for (int& sender : senders) sender = start(send, &channel);
            for (int i = 0; i < 2; ++i) require(channel.receive().value_or(0) == 1);
          }).has_value());
  require(time_passed() == 0);
  for (const int sender : senders) join(sender);
}

// Two fibers that come while a worker searches, each of which keeps its worker until the other runs: the one that takes
// the first wakes another for the second.
void no_worker_sleeps_while_a_fiber_waits() {
  struct Meeting {
    Atomic<int> arrived{0};
    Event over;
    Atomic<bool> left{false};  // the caller has no handle any more: none may outlive the run
    void attend() noexcept {
      if (arrived.fetch_add(1) == 1) over.set();
      while (arrived.load() != 2) let_others_go();
    }
  } meeting;
  int caller = 0;
  run_on_two([&] {
    caller = start(
        [](void* of) {
          auto* const one = static_cast<Meeting*>(of);
          for (int i = 0; i < 2; ++i) spawn({.stack = kStack}, [one] { one->attend(); }).detach();
          one->left.store(true);
        },
        &meeting);
    require(meeting.over.wait().has_value());
    while (!meeting.left.load()) let_others_go();
  });
  join(caller);
}

void descriptor_meets_idle_worker() {
  using port::Poller;
  int peer = 0;
  run_on_two([&] {
    peer = start([](void*) { Poller::get_ready(0); }, nullptr);
    while (!Poller::drain(0)) require(wait(0, Direction::readable).has_value());
  });
  join(peer);
}

// A fiber whose waker computes on runs on the other worker, before any time passes.
void woken_fiber_finds_an_idle_worker() {
  Atomic<bool> ran{false};
  run_on_two([&] {
    Event go;
    Fiber woken = spawn([&] {
      require(go.wait().has_value());
      ran.store(true);
    });
    yield();
    const std::int64_t start = monotonic_ns();
    go.set();
    while (!ran.load()) let_others_go();
    require(monotonic_ns() == start);
    require(woken.join().has_value());
  });
}

// A fiber is woken while it leaves its worker, which goes on with one that computes: the other worker, whose fiber woke
// it and has ended, runs it before any time passes.
void leaving_fiber_finds_an_idle_worker() {
  Atomic<bool> begun{false}, held{false}, ran{false};
  run_on_two([&] {
    Mutex mutex;
    Condition changed;
    Fiber waker = spawn([&] {
      begun.store(true);
      while (!held.load()) let_others_go();
      auto mine = mutex.try_lock();
      for (; !mine; mine = mutex.try_lock()) let_others_go();  // free once the other stands in line
      changed.notify_one();
    });
    while (!begun.load()) let_others_go();
    Fiber woken = spawn([&] {
      auto mine = mutex.lock();
      require(mine.has_value());
      held.store(true);
      require(changed.wait(*mine).has_value());
      mine->unlock();
      ran.store(true);
    });
    const std::int64_t start = monotonic_ns();
    yield();
    while (!ran.load()) let_others_go();
    require(monotonic_ns() == start);
    require(waker.join().has_value() && woken.join().has_value());
  });
}

// A busy worker looks at the poller while the other goes to sleep, and then computes until the reader has run.
void somebody_polls_while_a_worker_computes() {
  using port::Poller;
  Atomic<bool> drained{false};
  int peer = 0;
  run_on_two([&] {
    Fiber reader = spawn([&] {
      while (!Poller::drain(0)) require(wait(0, Direction::readable).has_value());
      drained.store(true);
    });
    yield();
    peer = start([](void*) { Poller::get_ready(0); }, nullptr);
    for (int i = 0; i < 2; ++i) yield_to_events();
    while (!drained.load()) let_others_go();
    require(reader.join().has_value());
  });
  join(peer);
}

void every_wakeup_migrates() {
  require(run_until_idle({.workers = 2, .default_stack = kStack, .migrate = true}, [&] {
            Channel<int> channel;
            Fiber other = spawn([&] { require(channel.send(1).has_value()); });
            require(channel.receive().value_or(0) == 1);
            require(other.join().has_value());
          }).has_value());
  require(time_passed() == 0);
}

constexpr Limits kWhole{.preemptions = 3, .delays = 1, .interleavings = 2500, .samples = 600};

constexpr Scenario kRuntimeScenarios[] = {
    {"runtime_fibers_end", fibers_end, kWhole},
    {"runtime_join_meets_end", join_meets_end, kWhole},
    {"runtime_two_wait_for_an_end",
     two_wait_for_an_end,
     {.preemptions = 3, .timeouts = true, .interleavings = 4'000, .samples = 2'000}},
    {"runtime_two_take_an_outcome", two_take_an_outcome, {.preemptions = 3, .interleavings = 4'000, .samples = 2'000}},
    {"runtime_nursery_waits_for_the_last_child", nursery_waits_for_the_last_child, kWhole},
    {"runtime_failure_cancels_the_siblings", failure_cancels_the_siblings, kWhole},
    {"runtime_rendezvous_of_fibers", rendezvous_of_fibers, kWhole},
    {"runtime_cancel_meets_wait", cancel_meets_wait, kWhole},
    {"runtime_scope_meets_wait", scope_meets_wait, {.preemptions = 3, .interleavings = 6'000, .samples = 4000}},
    {"runtime_scope_meets_children", scope_meets_children, {.preemptions = 3, .interleavings = 6'000, .samples = 4000}},
    {"runtime_cancel_meets_children",
     cancel_meets_children,
     {.preemptions = 3, .interleavings = 4'000, .samples = 3000}},
    {"runtime_cancel_against_set", cancel_against_set, kWhole},
    {"runtime_deadline_meets_set", deadline_meets_set, kWhole},
    {"runtime_mutex_of_fibers", mutex_of_fibers, kWhole},
    {"runtime_select_of_fibers", select_of_fibers, kWhole},
    {"runtime_injection_meets_idle_workers", injection_meets_idle_workers, kWhole},
    {"runtime_injection_meets_the_only_worker", injection_meets_the_only_worker, kWhole},
    {"runtime_spawn_meets_the_end",
     spawn_meets_the_end,
     {.preemptions = 3, .delays = 1, .interleavings = 2500, .samples = 4000}},
    {"runtime_two_inject", two_inject, kWhole},
    {"runtime_no_worker_sleeps_while_a_fiber_waits", no_worker_sleeps_while_a_fiber_waits, kWhole},
    {"runtime_descriptor_meets_idle_worker", descriptor_meets_idle_worker, kWhole},
    {"runtime_woken_fiber_finds_an_idle_worker",
     woken_fiber_finds_an_idle_worker,
     {.preemptions = 3, .delays = 1, .interleavings = 5'000, .samples = 5000}},
    {"runtime_leaving_fiber_finds_an_idle_worker", leaving_fiber_finds_an_idle_worker, kWhole},
    {"runtime_somebody_polls_while_a_worker_computes",
     somebody_polls_while_a_worker_computes,
     {.preemptions = 3, .delays = 1, .interleavings = 5'000, .samples = 8000}},
    {"runtime_every_wakeup_migrates", every_wakeup_migrates, {.preemptions = 1, .interleavings = 500, .samples = 500}},
};

}  // namespace

std::span<const Scenario> runtime_scenarios() noexcept {
  return kRuntimeScenarios;
}

}  // namespace coir::explore
