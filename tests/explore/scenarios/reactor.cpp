#include "schedule/reactor.h"

#include <coir/port/poller.h>

#include "tests/explore/explore.h"
#include "wait/park.h"

// The word per descriptor: an event that comes is found by the wait after it, or wakes the wait that is under way.

namespace coir::explore {

namespace {

using port::Poller;

constexpr int kFd = 0;
constexpr auto kReadable = Direction::readable;

// Loop is a poller thread with nothing else to do.
struct Loop {
  Reactor reactor;
  Atomic<bool> stopping{false};

  Loop() noexcept { require(reactor.open(Poller::kDescriptors, false) == 0); }
  ~Loop() { reactor.close(); }

  void run() noexcept {
    while (!stopping.load()) {
      reactor.poll(-1);
      reactor.dispatch();
    }
  }
  void stop() noexcept {
    stopping.store(true);
    reactor.interrupt();
  }

  // wait is coir::wait on this reactor.
  WakeReason wait(Deadline deadline = Deadline::never()) noexcept {
    ThreadWaiter waiter;
    waiter.arm();
    detail::DescriptorNode node(waiter);
    const auto attached = reactor.attach(kFd, kReadable, node);
    if (!attached) return WakeReason::closed;
    if (!*attached) return WakeReason::ready;
    const WakeReason reason = waiter.park(deadline);
    if (reason != WakeReason::ready && reason != WakeReason::closed) reactor.detach(kFd, kReadable, node);
    return reason;
  }
};

void no_event_is_lost() {
  Loop loop;
  threads([&] { loop.run(); },
          [&] {
            for (int read = 0; read < 2;) {
              if (Poller::drain(kFd)) {
                ++read;
                if (read == 1) Poller::get_ready(kFd);
              } else {
                require(loop.wait() == WakeReason::ready);
              }
            }
            loop.stop();
          },
          [&] { Poller::get_ready(kFd); });
}

// Those that wait for one descriptor share what comes. Two pieces of news may be one edge, and one that has taken its
// piece asks no more: the other still gets its own, though it may have met EAGAIN before the edge.
void two_readers_share_the_news() {
  Loop loop;
  Atomic<int> left{2};
  const auto reader = [&] {
    while (!Poller::take(kFd)) require(loop.wait() == WakeReason::ready);
    if (left.fetch_sub(1) == 1) loop.stop();
  };
  threads([&] { loop.run(); }, reader, reader,
          [&] {
            Poller::get_ready(kFd);
            Poller::get_ready(kFd);
          });
}

// One of two that wait leaves by its deadline while an edge comes; the other is woken.
void one_of_two_leaves() {
  Loop loop;
  threads([&] { loop.run(); },
          [&] {
            const WakeReason reason = loop.wait(Deadline::after(std::chrono::milliseconds(1)));
            require(reason == WakeReason::ready || reason == WakeReason::timed_out);
          },
          [&] {
            while (!Poller::take(kFd)) require(loop.wait() == WakeReason::ready);
            loop.stop();
          },
          [&] { Poller::get_ready(kFd); });
}

// A wait that ends by its deadline leaves an event that still comes to the next wait.
void timeout_loses_no_event() {
  Loop loop;
  threads([&] { loop.run(); },
          [&] {
            bool patient = false;
            while (!Poller::drain(kFd)) {
              const WakeReason reason =
                  loop.wait(patient ? Deadline::never() : Deadline::after(std::chrono::milliseconds(1)));
              require(reason == WakeReason::ready || (!patient && reason == WakeReason::timed_out));
              patient = true;
            }
            loop.stop();
          },
          [&] { Poller::get_ready(kFd); });
}

// Closing a descriptor ends the wait for it, or the wait finds it closed.
void closing_ends_the_wait() {
  Loop loop;
  threads([&] { loop.run(); },
          [&] {
            const WakeReason reason = loop.wait();
            require(reason == WakeReason::closed || reason == WakeReason::ready);
            loop.stop();
          },
          [&] {
            loop.reactor.forget(kFd);
            Poller::close_descriptor(kFd);
            loop.reactor.forgotten(kFd);
          });
}

// A claim that meets the owner's leaving is over before the next wait begins: that finds the word in order.
void event_meets_leaving() {
  Loop loop;
  threads([&] { loop.run(); },
          [&] {
            for (int i = 0; i < 3; ++i) {
              const WakeReason reason = loop.wait(Deadline::after(std::chrono::milliseconds(1)));
              require(reason == WakeReason::ready || reason == WakeReason::timed_out);
            }
            loop.stop();
          },
          [&] { Poller::get_ready(kFd); });
}

constexpr Scenario kReactorScenarios[] = {
    {"reactor_no_event_is_lost", no_event_is_lost},
    {"reactor_two_readers_share_the_news", two_readers_share_the_news},
    {"reactor_one_of_two_leaves", one_of_two_leaves, {.timeouts = true}},
    {"reactor_timeout_loses_no_event", timeout_loses_no_event, {.timeouts = true}},
    {"reactor_closing_ends_the_wait", closing_ends_the_wait},
    {"reactor_event_meets_leaving", event_meets_leaving, {.timeouts = true}},
};

}  // namespace

std::span<const Scenario> reactor_scenarios() noexcept {
  return kReactorScenarios;
}

}  // namespace coir::explore
