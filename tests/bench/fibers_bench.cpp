// The cost of fibers, through the public interface. tests/bench/README.md defines the figures.
//
//   fibers_bench switch|yield|spawn|suspended [COUNT]
//   fibers_bench rendezvous|rendezvous_2workers|buffered|batched|select|mutex|pthread_mutex|mutex_contended|wake_idle|timer_1k|timer_100k|million [COUNT]
//   feed_listener fibers_bench feed [COUNT]

#include <coir/broadcast.h>
#include <coir/channel.h>
#include <coir/fiber.h>
#include <coir/mutex.h>
#include <coir/nursery.h>
#include <coir/port/context.h>
#include <coir/runtime.h>
#include <coir/select.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <cstddef>

#include "core/src/wait/park.h"
#include "measure.h"

namespace {

using namespace coir;

constexpr SpawnOptions kFiber{.name = "bench", .stack = 8_KiB};

// Two contexts that switch to each other and do nothing else. Nothing stands between them and the switch: the return of
// a function around it would be predicted wrong after each, on some processors, and cost more than the switch.
void measure_switch(long count) {
  alignas(port::kStackAlignment) static std::byte stack[16 * 1024];
  static void* contexts[2];
  contexts[1] = port::make_context(
      stack + sizeof stack,
      [](void*, void*) {
        for (;;) port::coir_switch(&contexts[1], contexts[0], nullptr);
      },
      nullptr);
  const double ns = bench::ns_per(count * 2, [&] {
    for (long i = 0; i < count; ++i) port::coir_switch(&contexts[0], contexts[1], nullptr);
  });
  bench::print("switch_ns", ns, "ns");
}

template <class T>
void must(const std::expected<T, Error>& outcome) {
  if (outcome) return;
  std::fprintf(stderr, "fibers_bench: %s\n", describe(outcome.error()));
  std::exit(1);
}

void measure_yield(long count) {
  const double ns = bench::ns_per(count, [&] {
    const auto body = [&] {
      for (long i = 0; i < count; ++i) yield();
    };
    Fiber first = spawn(kFiber, body);
    Fiber second = spawn(kFiber, body);
    must(first.join());
    must(second.join());
  });
  bench::print("yield_pair_ns", ns, "ns");
}

void measure_spawn(long count) {
  const double ns = bench::ns_per(count, [&] {
    for (long i = 0; i < count; ++i) must(spawn(kFiber, [] {}).join());
  });
  bench::print("spawn_join_ns", ns, "ns");
}

// park starts fibers that sleep for longer than anybody looks, and returns once each has gone to sleep. It returns how
// many there are: fewer than asked for when there are no more stacks.
long park(long count) {
  long asleep = 0;
  long started = 0;
  while (started < count) {
    Fiber fiber = spawn(kFiber, [&asleep] {
      ++asleep;
      static_cast<void>(sleep(std::chrono::hours(1)));
    });
    if (!fiber.started()) break;
    ++started;
  }
  while (asleep < started) yield();
  return started;
}

void measure_suspended(long count) {
  park(1000);
  const bench::Memory before = bench::Memory::now();
  const long held = park(count);
  bench::print_growth(before, bench::Memory::now(), held);
  bench::print("suspended_max", held, "fibers");
  const RuntimeStats now = stats();
  // Stacks that share a guard with others count as unguarded.
  const long unguarded = static_cast<long>(now.stacks_used - now.stacks_guarded);
  char unit[32];
  std::snprintf(unit, sizeof unit, "by-%s", now.guard_mode);
  bench::print("suspended_guarded", held > unguarded ? held - unguarded : 0L, unit);
  std::fflush(stdout);
  shutdown();
}

// echo sends back whatever comes, until its channel is closed.
void echo(Channel<int>& there, Channel<int>& back) {
  while (auto value = there.receive()) must(back.send(*value));
}

void round_trips(Channel<int>& there, Channel<int>& back, long count) {
  for (int i = 0; i < count; ++i) {
    must(there.send(i));
    if (back.receive() != i) std::abort();
  }
}

// Two fibers that hand a number to each other through two channels that hold nothing.
void measure_rendezvous(const char* name, long count) {
  Channel<int> there, back;
  Fiber other = spawn(kFiber, [&] { echo(there, back); });
  bench::print(name, bench::ns_per(count, [&] { round_trips(there, back, count); }), "ns");
  there.close();
  must(other.join());
}

void measure_rendezvous_1(long count) {
  measure_rendezvous("rendezvous_rtt_ns", count);
}
void measure_rendezvous_2(long count) {
  measure_rendezvous("rendezvous_rtt_2workers_ns", count);
}

// The wall time of the whole, as a user sees it who runs it once.
void measure_million(long count) {
  Channel<int> there, back;
  Fiber other = spawn(kFiber, [&] { echo(there, back); });
  const std::int64_t start = monotonic_ns();
  round_trips(there, back, count);
  bench::print("channel_million_rtt_s", static_cast<double>(monotonic_ns() - start) / 1e9, "s");
  there.close();
  must(other.join());
}

// One fiber sends, another receives, through a channel that holds 128.
void measure_buffered(long count) {
  const double ns = bench::ns_per(count, [&] {
    Channel<int> channel({.capacity = 128});
    Fiber sender = spawn(kFiber, [&] {
      for (int i = 0; i < count; ++i) must(channel.send(i));
      channel.close();
    });
    long sum = 0;
    while (auto value = channel.receive()) sum += *value;
    if (sum != count * (count - 1) / 2) std::abort();
    must(sender.join());
  });
  bench::print("buffered_message_ns", ns, "ns");
}

// The same, 32 at a time.
void measure_batched(long count) {
  const double ns = bench::ns_per(count, [&] {
    Channel<int> channel({.capacity = 128});
    Fiber sender = spawn(kFiber, [&] {
      int values[32];
      for (int i = 0; i < count; i += 32) {
        for (int j = 0; j < 32; ++j) values[j] = i + j;
        if (!channel.send_many(values)) std::abort();
      }
      channel.close();
    });
    long received = 0;
    int values[32];
    while (auto some = channel.receive_up_to(values)) received += static_cast<long>(*some);
    if (received < count) std::abort();
    must(sender.join());
  });
  bench::print("batched_message_ns", ns, "ns");
}

// Four channels of which one, another each time, has a value; the send that puts it there is counted in.
void measure_select(long count) {
  Channel<int> channels[4] = {Channel<int>({.capacity = 1}), Channel<int>({.capacity = 1}),
                              Channel<int>({.capacity = 1}), Channel<int>({.capacity = 1})};
  const double ns = bench::ns_per(count, [&] {
    for (int i = 0; i < count; ++i) {
      must(channels[i % 4].send(i));
      int value = -1;
      const auto won = select({Case::receive(channels[0], value), Case::receive(channels[1], value),
                               Case::receive(channels[2], value), Case::receive(channels[3], value)});
      if (!won || value != i) std::abort();
    }
  });
  bench::print("select4_ns", ns, "ns");
}

void measure_mutex(long count) {
  Mutex mutex;
  const double ns = bench::ns_per(count, [&] {
    for (long i = 0; i < count; ++i) {
      const auto held = mutex.lock();
      must(held);
    }
  });
  bench::print("mutex_ns", ns, "ns");
}

void measure_pthread_mutex(long count) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  const double ns = bench::ns_per(count, [&] {
    for (long i = 0; i < count; ++i) {
      pthread_mutex_lock(&mutex);
      pthread_mutex_unlock(&mutex);
    }
  });
  bench::print("mutex_ns", ns, "ns");
}

// contend runs sections of 20 steps under a lock, with 80 steps between two of them.
template <class Section>
void contend(long count, Section section) {
  volatile int work = 0;
  for (long i = 0; i < count; ++i) {
    section([&work] {
      for (int step = 0; step < 20; ++step) work = work + 1;
    });
    for (int step = 0; step < 80; ++step) work = work + 1;
  }
}

// Eight fibers on two workers and one mutex; the wall time of one section.
void measure_mutex_contended(long count) {
  constexpr long kFibers = 8;
  Mutex mutex;
  const std::int64_t start = monotonic_ns();
  Nursery all;
  for (long i = 0; i < kFibers; ++i) {
    all.start(kFiber, [&mutex, count] {
      contend(count / kFibers, [&mutex](auto steps) {
        const auto held = mutex.lock();
        must(held);
        steps();
      });
    });
  }
  must(all.join());
  bench::print("mutex_contended_ns", static_cast<double>(monotonic_ns() - start) / static_cast<double>(count), "ns");
}

// A fiber wakes another and computes on, while a second worker sleeps: how long the woken fiber waits. The
// median.
void measure_wake_idle(long count) {
  bench::Delays delays(count);
  Channel<std::int64_t> channel;
  Fiber receiver = spawn(kFiber, [&] {
    while (auto sent = channel.receive()) delays.add(monotonic_ns() - *sent);
  });
  for (long i = 0; i < count; ++i) {
    bench::compute(bench::kSettleNs);
    must(channel.send(monotonic_ns()));
    bench::compute(bench::kSettleNs);
  }
  channel.close();
  must(receiver.join());
  bench::print("wake_idle_us", delays.median_us(), "us");
}

// One timer is started and stopped while so many others are armed, due at different times within the hour.
void measure_timer(const char* name, long armed, long count) {
  TimerWheel& wheel = running_fiber()->worker->wheel();
  const auto never = [](Timer&) noexcept -> coir::FiberControl* { return nullptr; };
  struct Armed : Timer {
    Armed() : Timer([](Timer&) noexcept -> coir::FiberControl* { return nullptr; }) {}
  };
  auto* others = static_cast<Armed*>(std::calloc(static_cast<std::size_t>(armed), sizeof(Armed)));
  if (others == nullptr) std::abort();
  for (long i = 0; i < armed; ++i) std::construct_at(others + i);
  const std::int64_t now = monotonic_ns();
  for (long i = 0; i < armed; ++i) wheel.start(others[i], now + 60'000'000'000 + i * 36'000'000);
  const double ns = bench::ns_per(count, [&] {
    for (long i = 0; i < count; ++i) {
      Timer timer(never);
      wheel.start(timer, now + 30'000'000'000 + (i & 1023) * 1'000'000);
      wheel.stop(timer);
    }
  });
  for (long i = 0; i < armed; ++i) wheel.stop(others[i]);
  std::free(others);
  bench::print(name, ns, "ns");
}

void measure_timer_1k(long count) {
  measure_timer("timer_ns_1k", 1'000, count);
}
void measure_timer_100k(long count) {
  measure_timer("timer_ns_100k", 100'000, count);
}

// A handler of the feed waits for its client, for what is published, and for the time to ask after the client.
void serve_feed(int fd, Broadcast<std::int64_t>& feed) {
  Subscription<std::int64_t> messages(feed);
  for (;;) {
    std::int64_t message = 0;
    const auto won =
        select({Case::readable(fd), Case::receive(messages, message), Case::after(std::chrono::seconds(30))});
    if (!won || won->closed || won->index == 2) break;
    if (won->index == 1) {
      if (write(fd, &message, sizeof message) != sizeof message) break;
      continue;
    }
    char answer[16];
    while (read(fd, answer, sizeof answer) == sizeof answer) {
    }
  }
  close_fd(fd);
}

// The time of a message is taken and printed by feed_listener, at whose sockets' other ends this serves.
void measure_feed(long count) {
  constexpr int kClients = 8, kFirst = 3;
  Broadcast<std::int64_t> feed;
  Nursery handlers;
  for (int fd = kFirst; fd < kFirst + kClients; ++fd) {
    if (fcntl(fd, F_SETFL, O_NONBLOCK) != 0) std::abort();
    Fiber handler = handlers.spawn(kFiber, [fd, &feed] { serve_feed(fd, feed); });
  }
  while (feed.subscribers() < kClients) yield();
  for (long i = 0; i < count; ++i) {
    must(sleep(std::chrono::milliseconds(1)));
    if (feed.publish(monotonic_ns()) != kClients) std::abort();
  }
  feed.close();
  must(handlers.join());
}

}  // namespace

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  const long count = argc > 2 ? std::atol(argv[2]) : 1'000'000;
  if (std::strcmp(what, "switch") == 0) {
    measure_switch(count);
    return 0;
  }
  constexpr struct {
    const char* name;
    void (*measure)(long);
  } kAll[] = {
      {"yield", measure_yield},
      {"spawn", measure_spawn},
      {"suspended", measure_suspended},
      {"rendezvous", measure_rendezvous_1},
      {"rendezvous_2workers", measure_rendezvous_2},
      {"buffered", measure_buffered},
      {"batched", measure_batched},
      {"select", measure_select},
      {"mutex", measure_mutex},
      {"pthread_mutex", measure_pthread_mutex},
      {"mutex_contended", measure_mutex_contended},
      {"wake_idle", measure_wake_idle},
      {"timer_1k", measure_timer_1k},
      {"timer_100k", measure_timer_100k},
      {"million", measure_million},
      {"feed", measure_feed},
  };
  void (*measure)(long) = nullptr;
  for (const auto& one : kAll) {
    if (std::strcmp(what, one.name) == 0) measure = one.measure;
  }
  if (measure == nullptr) {
    std::fputs("usage: fibers_bench switch", stderr);
    for (const auto& one : kAll) std::fprintf(stderr, "|%s", one.name);
    std::fputs(" [COUNT]\n", stderr);
    return 2;
  }
  return run(RunOptions{}, [=] { measure(count); });
}
