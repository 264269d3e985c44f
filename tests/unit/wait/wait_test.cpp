#include <CppUTest/TestHarness.h>
#include <arpa/inet.h>
#include <coir/atomic.h>
#include <coir/config.h>
#include <coir/event.h>
#include <coir/fiber.h>
#include <coir/runtime.h>
#include <coir/select.h>
#include <coir/wait.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <expected>

#include "tests/support/child.h"
#include "tests/support/everywhere.h"
#include "tests/support/pipe.h"
#include "tests/support/scale.h"
#include "tests/support/until.h"

namespace wait_test {

using coir::Deadline;
using coir::Direction;
using coir::Error;
using coir::ErrorCode;
using coir::Fiber;
using coir::kManyWorkers;
using coir::run_until_idle;
using coir::spawn;
using coir::test::count_fds;
using coir::test::Everywhere;
using coir::test::Pipe;
using coir::test::scaled;
using coir::test::until;
using coir::test::until_parked;
using coir::test::until_polled;
using namespace std::chrono_literals;

namespace {

bool is(const std::expected<void, Error>& outcome, ErrorCode code) {
  return !outcome && outcome.error() == code;
}

// A wait that should end at once still has a deadline, so that a broken promise fails instead of hanging.
Deadline in_time() {
  return Deadline::after(20s);
}

// Connected is both ends of a TCP connection, which knows a byte out of band on every kernel.
struct Connected {
  int ends[2] = {-1, -1};
  Connected() {
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
    socklen_t size = sizeof address;
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    if (bind(listener, generic, size) != 0 || listen(listener, 1) != 0 || getsockname(listener, generic, &size) != 0)
      return;
    ends[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(ends[0], generic, size) == 0)
      ends[1] = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    close(listener);
  }
  ~Connected() {
    for (const int fd : ends) coir::close_fd(fd);
  }
};

// hear_urgent waits for a byte out of band, and returns it.
char hear_urgent(int fd) {
  char byte = 0;
  while (recv(fd, &byte, 1, MSG_OOB) != 1) {
    if (!coir::wait(fd, Direction::urgent, in_time())) return 0;
  }
  return byte;
}

}  // namespace

// No wait is left behind.
TEST_GROUP_BASE(Wait, Everywhere) {
  template <class Body>
  void everywhere(Body body) {
    Everywhere::everywhere([&] {
      body();
      expect(coir::stats().fd_waits == 0);
    });
  }
};

TEST(Wait, the_poller_is_the_one_that_was_asked_for) {
  // Old kernels of the board have no epoll.
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  const char* const best = epoll >= 0 ? "epoll" : "ppoll";
  if (epoll >= 0) close(epoll);
  for (const bool ppoll : {false, true}) {
    const char* poller = "";
    CHECK_TRUE(
        run_until_idle({.workers = 1, .force_ppoll = ppoll}, [&] { poller = coir::stats().poller; }).has_value());
    STRCMP_EQUAL(ppoll ? "ppoll" : best, poller);
  }
}

TEST(Wait, a_reader_sleeps_until_something_is_written) {
  everywhere([&] {
    Pipe pipe;
    std::atomic<bool> written{false};
    Fiber reader = spawn([&] {
      expect(coir::wait(pipe.reader, Direction::readable, in_time()).has_value());
      expect(written && pipe.get());
    });
    until_parked(reader, "readable");
    written = true;
    expect(pipe.put());
    static_cast<void>(reader.join());
  });
}

TEST(Wait, a_writer_sleeps_until_there_is_room) {
  everywhere([&] {
    Pipe pipe;
    pipe.fill();
    std::atomic<bool> drained{false};
    Fiber writer = spawn([&] {
      expect(coir::wait(pipe.writer, Direction::writable, in_time()).has_value());
      expect(drained && pipe.put());
    });
    until_parked(writer, "writable");
    drained = true;
    pipe.drain();
    static_cast<void>(writer.join());
  });
}

// A wait that may not last asks the kernel, which knows more than the poller has been told, and lets no other fiber run.
TEST(Wait, until_now_is_a_look_without_a_switch) {
  std::atomic<int> wrong{0};
  CHECK_TRUE(run_until_idle({.workers = 1}, [&] {
               Pipe empty, full;
               wrong += !full.put();
               bool switched = false;
               Fiber other = spawn([&] { switched = true; });
               wrong += !is(coir::wait(empty.reader, Direction::readable, Deadline::now()), ErrorCode::timed_out);
               wrong += !coir::wait(full.reader, Direction::readable, Deadline::now());
               wrong += !coir::wait(empty.writer, Direction::writable, Deadline::now());
               wrong += !is(coir::wait(-1, Direction::readable, Deadline::now()), ErrorCode::invalid);
               const coir::Awaited none[] = {{empty.reader}, {-1}}, one[] = {{empty.reader}, {full.reader}};
               wrong += !is(coir::wait_several(none, Deadline::now()), ErrorCode::timed_out);
               wrong += !coir::wait_several(one, Deadline::now());
               wrong += !coir::sleep_until(Deadline::now());
               wrong += !is(other.join(Deadline::now()), ErrorCode::timed_out);
               wrong += switched;
               wrong += !other.join();
             }).has_value());
  LONGS_EQUAL(0, wrong);
}

TEST(Wait, times_out_not_early_and_loses_nothing_by_it) {
  everywhere([&] {
    Pipe pipe;
    const Deadline deadline = Deadline::after(3ms);
    expect(is(coir::wait(pipe.reader, Direction::readable, deadline), ErrorCode::timed_out));
    expect(deadline.passed());
    expect(is(coir::wait(pipe.reader, Direction::readable, Deadline::now()), ErrorCode::timed_out));
    expect(pipe.put());
    expect(coir::wait(pipe.reader, Direction::readable, in_time()).has_value());
    expect(pipe.get());
  });
}

TEST(Wait, an_edge_that_nobody_waited_for_is_kept) {
  everywhere([&] {
    Pipe pipe;
    expect(is(coir::wait(pipe.reader, Direction::readable, Deadline::after(1ms)), ErrorCode::timed_out));
    expect(pipe.put());
    until_polled();
    expect(coir::wait(pipe.reader, Direction::readable, in_time()).has_value());
  });
}

TEST(Wait, closing_wakes_the_waiters_of_both_directions) {
  everywhere([&] {
    Pipe pipe(Pipe::Kind::sockets);
    pipe.fill();
    int closed = 0;
    Fiber waiters[2];
    std::atomic<int> count{0};
    for (int i = 0; i < 2; ++i) {
      waiters[i] = spawn([&, i] {
        count += is(coir::wait(pipe.writer, i == 0 ? Direction::readable : Direction::writable, in_time()),
                    ErrorCode::closed);
      });
    }
    for (Fiber& waiter : waiters) until_parked(waiter);
    pipe.close_writer();
    for (Fiber& waiter : waiters) static_cast<void>(waiter.join());
    closed = count;
    expect(closed == 2);
  });
}

namespace {

struct Closer {
  Pipe* pipe;
  static void* close(void* self) {
    static_cast<Closer*>(self)->pipe->close_reader();
    return nullptr;
  }
};

}  // namespace

TEST(Wait, a_plain_thread_may_close_too) {
  everywhere([&] {
    Pipe pipe;
    Closer closer{&pipe};
    Fiber reader =
        spawn([&] { expect(is(coir::wait(pipe.reader, Direction::readable, in_time()), ErrorCode::closed)); });
    until_parked(reader, "readable");
    pthread_t thread;
    pthread_create(&thread, nullptr, Closer::close, &closer);
    static_cast<void>(reader.join());
    pthread_join(thread, nullptr);
  });
}

namespace {

// take_one reads one byte, and waits for it as long as it must.
bool take_one(Pipe& pipe) {
  while (!pipe.get()) {
    if (!coir::wait(pipe.reader, Direction::readable, in_time())) return false;
  }
  return true;
}

}  // namespace

TEST(Wait, any_number_wait_for_one_direction_and_each_gets_its_own) {
  everywhere([&] {
    constexpr int kReaders = 5;
    Pipe pipe;
    Fiber readers[kReaders];
    for (Fiber& reader : readers) {
      reader = spawn([&] { expect(take_one(pipe)); });
      until_parked(reader, "readable");
    }
    // The other direction is another's business.
    expect(is(coir::wait(pipe.reader, Direction::writable, Deadline::after(1ms)), ErrorCode::timed_out));
    for (int i = 0; i < kReaders; ++i) {
      expect(pipe.put());
      if (i % 2 == 0) coir::yield();
    }
    for (Fiber& reader : readers) static_cast<void>(reader.join());
  });
}

// One that begins to wait after an edge may have looked before it: it looks again, though the edge has woken another.
TEST(Wait, an_edge_that_woke_one_is_known_to_the_next) {
  everywhere([&] {
    Pipe pipe;
    Fiber first = spawn([&] { expect(coir::wait(pipe.reader, Direction::readable, in_time()).has_value()); });
    until_parked(first, "readable");
    expect(!pipe.get());
    expect(pipe.put() && pipe.put());
    static_cast<void>(first.join());  // it leaves both bytes
    expect(coir::wait(pipe.reader, Direction::readable, in_time()).has_value());
    expect(pipe.get() && pipe.get());
  });
}

TEST(Wait, those_that_wait_for_one_direction_leave_in_any_order) {
  everywhere([&] {
    Pipe pipe;
    Fiber patient = spawn([&] { expect(take_one(pipe)); });
    until_parked(patient, "readable");
    Fiber waiters[6];
    for (int i = 0; i < 6; ++i) {
      waiters[i] = spawn([&, i] {
        const auto waited =
            coir::wait(pipe.reader, Direction::readable, i < 3 ? Deadline::after(1ms * (3 - i)) : in_time());
        expect(is(waited, i < 3 ? ErrorCode::timed_out : ErrorCode::cancelled));
      });
    }
    for (const int i : {4, 3, 5}) {
      until_parked(waiters[i], "readable");
      static_cast<void>(waiters[i].cancel());
    }
    for (Fiber& each : waiters) static_cast<void>(each.join());
    expect(pipe.put());
    static_cast<void>(patient.join());
    Fiber closed[2];
    for (Fiber& each : closed) {
      each = spawn([&] { expect(is(coir::wait(pipe.reader, Direction::readable, in_time()), ErrorCode::closed)); });
      until_parked(each, "readable");
    }
    pipe.close_reader();
    for (Fiber& each : closed) static_cast<void>(each.join());
  });
}

TEST(Wait, one_descriptor_may_be_listed_twice) {
  everywhere([&] {
    Pipe pipe;
    const coir::Awaited twice[] = {{pipe.reader}, {pipe.reader}};
    expect(is(coir::wait_several(twice, Deadline::after(1ms)), ErrorCode::timed_out));
    Fiber waiting = spawn([&] { expect(coir::wait_several(twice, in_time()).has_value()); });
    until_parked(waiting, "readable");
    expect(pipe.put());
    static_cast<void>(waiting.join());
  });
}

// The last bytes and the end of the stream are one edge: it must serve for both reads.
TEST(Wait, a_hang_up_that_comes_with_data_is_not_lost) {
  for (const Pipe::Kind kind : {Pipe::Kind::pipe, Pipe::Kind::sockets}) {
    for (const bool before : {false, true}) {
      everywhere([&] {
        Pipe pipe(kind);
        std::atomic<bool> ready{false};
        Fiber reader = spawn([&] {
          if (before) {
            // Registered while nothing is there.
            expect(is(coir::wait(pipe.reader, Direction::readable, Deadline::after(1ms)), ErrorCode::timed_out));
            ready = true;
          }
          expect(coir::wait(pipe.reader, Direction::readable, in_time()).has_value());
          char bytes[16];
          ssize_t n = 0;
          while ((n = read(pipe.reader, bytes, sizeof bytes)) < 0)
            expect(coir::wait(pipe.reader, Direction::readable, in_time()).has_value());
          expect(n == 3);
          // A short read: the next read waits, and must learn of the end.
          expect(coir::wait(pipe.reader, Direction::readable, in_time()).has_value());
          expect(read(pipe.reader, bytes, sizeof bytes) == 0);
        });
        until([&] { return !before || ready; });
        expect(write(pipe.writer, "end", 3) == 3);
        pipe.close_writer();
        static_cast<void>(reader.join());
      });
    }
  }
}

// Two edges may come before anybody waits again, and the word has to hold both pieces of news.
TEST(Wait, an_end_that_comes_after_unread_data_is_not_lost) {
  everywhere([&] {
    Pipe pipe(Pipe::Kind::sockets);
    expect(is(coir::wait(pipe.reader, Direction::readable, Deadline::after(1ms)), ErrorCode::timed_out));
    expect(pipe.put());
    until_polled();
    pipe.close_writer();
    until_polled();
    expect(coir::wait(pipe.reader, Direction::readable, in_time()).has_value());
    expect(pipe.get());
    expect(coir::wait(pipe.reader, Direction::readable, in_time()).has_value());
    expect(!pipe.get());
  });
}

TEST(Wait, a_writer_learns_that_its_reader_is_gone) {
  for (const Pipe::Kind kind : {Pipe::Kind::pipe, Pipe::Kind::sockets}) {
    everywhere([&] {
      Pipe pipe(kind);
      pipe.fill();
      Fiber writer = spawn([&] { expect(coir::wait(pipe.writer, Direction::writable, in_time()).has_value()); });
      until_parked(writer, "writable");
      pipe.close_reader();
      static_cast<void>(writer.join());
    });
  }
}

// An event that another worker is handing out just then may still reach it, once in a while: a return without
// readiness. A sanitizer opens files of its own, which may get the number first.
TEST(Wait, a_number_that_is_used_again_knows_nothing_of_its_past) {
  everywhere([&] {
    int returned = 0, met = 0;
    for (int round = 0; round < 50; ++round) {
      Pipe old;
      expect(old.put());
      expect(coir::wait(old.reader, Direction::readable, in_time()).has_value());
      const int number = old.reader;
      old.close_reader();
      old.close_writer();
      Pipe fresh;
      met += fresh.reader == number;
      returned += !is(coir::wait(fresh.reader, Direction::readable, Deadline::after(500us)), ErrorCode::timed_out);
      expect(fresh.put());
      expect(coir::wait(fresh.reader, Direction::readable, in_time()).has_value());
    }
    expect(met >= 40);
    expect(returned <= (coir::stats().workers == 1 ? 0 : 5));
  });
}

TEST(Wait, a_number_that_is_no_descriptor_is_an_error) {
  everywhere([&] { expect(is(coir::wait(-1, Direction::readable, in_time()), ErrorCode::invalid)); });
  CHECK_TRUE(is(coir::wait(-1, Direction::readable, in_time()), ErrorCode::invalid));  // on a plain thread
}

TEST(Wait, hundreds_wait_at_once_and_each_is_woken_by_its_own) {
  constexpr int kPipes = scaled({400, 300, 200, 200});
  everywhere([&] {
    auto* const pipes = new Pipe[kPipes];
    auto* const readers = new Fiber[kPipes];
    for (int i = 0; i < kPipes; ++i) {
      readers[i] = spawn([&pipes, i, this] {
        expect(coir::wait(pipes[i].reader, Direction::readable, in_time()).has_value());
        char byte = 0;
        expect(read(pipes[i].reader, &byte, 1) == 1 && byte == static_cast<char>(i));
      });
    }
    coir::yield();
    for (int i = kPipes - 1; i >= 0; --i) expect(pipes[i].put(static_cast<char>(i)));
    for (int i = 0; i < kPipes; ++i) static_cast<void>(readers[i].join());
    delete[] readers;
    delete[] pipes;
  });
}

// A wait, a deadline and a close race on several workers.
TEST(Wait, readiness_deadline_and_close_may_come_together) {
  const int fds = count_fds();
  for (const bool ppoll : {false, true}) {
    std::atomic<int> wrong_ends{0};
    const auto ended = run_until_idle({.workers = 3, .force_ppoll = ppoll}, [&] {
      for (int i = 0; i < scaled({3'000, 1'000, 800, 500}); ++i) {
        Pipe pipe;
        Fiber reader = spawn([&, fd = pipe.reader] {
          for (;;) {
            const Deadline deadline = Deadline::after(std::chrono::microseconds(i % 5 * 300));
            const auto ready = coir::wait(fd, Direction::readable, deadline);
            char byte;
            if (ready && (read(fd, &byte, 1) == 1 || errno == EBADF)) break;
            if (is(ready, ErrorCode::closed)) break;
            wrong_ends += !ready && ready.error() != ErrorCode::timed_out;
          }
        });
        Fiber other = spawn([&] {
          // The thread sanitizer calls a close that meets a registration a race of the program, which it is.
          if (i % 2 == 0 || coir::test::kThreadSanitized) {
            pipe.put();
          } else {
            pipe.close_reader();
          }
        });
        static_cast<void>(other.join());
        static_cast<void>(reader.join());
      }
    });
    CHECK_TRUE(ended.has_value());
    LONGS_EQUAL(0, wrong_ends);
  }
  LONGS_EQUAL(fds, count_fds());
}

TEST(Wait, a_plain_thread_is_served_by_poll) {
  Pipe pipe;
  CHECK_TRUE(is(coir::wait(pipe.reader, Direction::readable, Deadline::after(2ms)), ErrorCode::timed_out));
  CHECK_TRUE(coir::wait(pipe.writer, Direction::writable).has_value());
  CHECK_TRUE(pipe.put());
  CHECK_TRUE(coir::wait(pipe.reader, Direction::readable).has_value());
  pipe.drain();
  pipe.close_writer();
  CHECK_TRUE(coir::wait(pipe.reader, Direction::readable).has_value());
  const int number = pipe.reader;
  pipe.close_reader();
  CHECK_TRUE(is(coir::wait(number, Direction::readable), ErrorCode::closed));
}

// epoll takes no ordinary files: of two concurrent waits neither may wait for the other's registration.
TEST(Wait, the_poller_refuses_a_descriptor_to_both_waiters_at_once) {
  if (!kManyWorkers) return;
  int others = 0;
  CHECK_TRUE(run_until_idle({.workers = 2}, [&] {
               for (int round = 0; round < scaled({3'000, 1'000, 500, 300}); ++round) {
                 FILE* const file = tmpfile();
                 if (file == nullptr) break;
                 const int fd = dup(fileno(file));
                 fclose(file);
                 std::atomic<int> here{0}, wrong_here{0};
                 const auto ask = [&](Direction direction) {
                   here.fetch_add(1);
                   while (here.load() < 2) coir::yield();
                   const auto waited = coir::wait(fd, direction, Deadline::after(20s));
                   wrong_here += waited.has_value() || waited.error() == ErrorCode::timed_out;
                 };
                 Fiber reader = spawn([&] { ask(Direction::readable); });
                 Fiber writer = spawn([&] { ask(Direction::writable); });
                 static_cast<void>(reader.join());
                 static_cast<void>(writer.join());
                 coir::close_fd(fd);
                 others += wrong_here;
                 if (others != 0) break;
               }
             }).has_value());
  LONGS_EQUAL(0, others);
}

TEST(Wait, a_byte_out_of_band_is_urgent_and_nothing_else_is) {
  everywhere([&] {
    Connected pair;
    const int fd = pair.ends[1];
    expect(fd >= 0);
    expect(is(coir::wait(fd, Direction::urgent, Deadline::after(1ms)), ErrorCode::timed_out));
    expect(send(pair.ends[0], "plain", 5, 0) == 5);
    expect(is(coir::wait(fd, Direction::urgent, Deadline::after(5ms)), ErrorCode::timed_out));
    for (const char byte : {'a', 'b'}) {
      Fiber listener = spawn([&] { expect(hear_urgent(fd) == byte); });
      if (byte == 'a') until_parked(listener, "urgent");
      expect(send(pair.ends[0], &byte, 1, MSG_OOB) == 1);
      expect(listener.join().has_value());
    }
    coir::Event never;
    expect(send(pair.ends[0], "c", 1, MSG_OOB) == 1);
    const auto won = coir::select({coir::Case::opened(never), coir::Case::urgent(fd)}, in_time());
    expect(won && won->index == 1);
    expect(hear_urgent(fd) == 'c');
    char plain[8];
    while (recv(fd, plain, sizeof plain, 0) > 0) {
    }
    // The end is news for everybody.
    Fiber other = spawn([&] {
      while (recv(fd, plain, sizeof plain, MSG_PEEK) != 0) {
        const auto waited = coir::wait(fd, Direction::urgent, in_time());
        expect(waited.has_value());
        if (!waited) return;
      }
    });
    until_parked(other, "urgent");
    shutdown(pair.ends[0], SHUT_RDWR);
    expect(other.join().has_value());
  });
}

TEST(Wait, a_byte_out_of_band_is_urgent_on_a_thread) {
  Connected pair;
  CHECK_TRUE(is(coir::wait(pair.ends[1], Direction::urgent, Deadline::after(1ms)), ErrorCode::timed_out));
  LONGS_EQUAL(1, send(pair.ends[0], "x", 1, MSG_OOB));
  LONGS_EQUAL('x', hear_urgent(pair.ends[1]));
}

#if COIR_CLOSE_CHECKS
TEST(Wait, a_descriptor_that_was_closed_behind_the_reactors_back_is_named) {
  const auto end = coir::test::in_child([] {
    return coir::run({.workers = 1}, [] {
      Pipe pipe, other;
      static_cast<void>(coir::wait(pipe.reader, Direction::readable, Deadline::after(1ms)));
      ::close(pipe.reader);
      dup2(other.reader, pipe.reader);
      static_cast<void>(coir::wait(pipe.reader, Direction::readable, Deadline::after(1ms)));
    });
  });
  LONGS_EQUAL(SIGABRT, end.signal);
  CHECK_TRUE(end.wrote("was closed by ::close after a wait for it: use coir::close_fd (fiber "));
}
#endif

// The poller looks after a worker that computes, but not all the time; what it waits for is served at once.
TEST(Wait, beside_a_fiber_that_computes_the_poller_sleeps) {
  if (!kManyWorkers) return;
  std::uint64_t polls = 0;
  std::atomic<int> served{0};
  constexpr int kBytes = 5;
  CHECK_TRUE(run_until_idle({.workers = 2}, [&] {
               Pipe pipe;
               Fiber reader = spawn([&] {
                 while (served < kBytes) {
                   if (pipe.get()) {
                     ++served;
                   } else if (!coir::wait(pipe.reader, Direction::readable)) {
                     return;
                   }
                 }
               });
               until_parked(reader, "readable");
               static_cast<void>(coir::sleep(5ms));
               const std::uint64_t before = coir::stats().polls;
               for (const Deadline end = Deadline::after(500ms); !end.passed();) continue;
               polls = coir::stats().polls - before;
               for (int i = 0; i < kBytes; ++i) {
                 static_cast<void>(pipe.put());
                 for (const Deadline end = in_time(); served <= i && !end.passed();) continue;
               }
               static_cast<void>(reader.join());
             }).has_value());
  LONGS_EQUAL(kBytes, served);
  CHECK_COMPARE(polls, <, 50u);
}

}  // namespace wait_test
