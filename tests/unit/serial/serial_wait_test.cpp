// The promises of waits in a build without fibers: poll(2) with deadlines, and an Interrupter that may end them.

#include <CppUTest/TestHarness.h>
#include <coir/cancel_scope.h>
#include <coir/process.h>
#include <coir/program.h>
#include <coir/serial.h>
#include <coir/signal.h>
#include <coir/sleep.h>
#include <coir/wait.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/support/child.h"
#include "tests/support/pipe.h"

namespace serial_wait_test {

using namespace std::chrono_literals;
using coir::Deadline;
using coir::Direction;
using coir::ErrorCode;
using coir::test::Pipe;

namespace {

// Aside counts how often it was asked, and lets waits continue a number of times.
struct Aside : coir::Interrupter {
  int asked = 0;
  int patience = 0;
  Pipe* pipe = nullptr;

  Aside() {
    happened = [](coir::Interrupter& self) noexcept {
      auto& aside = static_cast<Aside&>(self);
      ++aside.asked;
      if (aside.pipe != nullptr) aside.pipe->get();
      return aside.asked <= aside.patience;
    };
    coir::set_interrupter(this);
  }
  ~Aside() { coir::set_interrupter(nullptr); }
};

}  // namespace

TEST_GROUP(SerialWait) {
  Pipe pipe;
};

TEST(SerialWait, returns_when_bytes_are_there) {
  pipe.put();
  CHECK(coir::wait(pipe.reader, Direction::readable, Deadline::after(10s)).has_value());
  CHECK(coir::wait(pipe.writer, Direction::writable, Deadline::after(10s)).has_value());
}

TEST(SerialWait, times_out_at_the_deadline_and_not_before) {
  const Deadline deadline = Deadline::after(30ms);
  CHECK(coir::wait(pipe.reader, Direction::readable, deadline).error() == ErrorCode::timed_out);
  CHECK(deadline.passed());
}

TEST(SerialWait, a_closed_descriptor_is_an_error_and_no_eternal_wait) {
  CHECK(coir::wait(-1, Direction::readable).error() == ErrorCode::invalid);
  const int gone = pipe.reader;
  pipe.close_reader();
  CHECK(coir::wait(gone, Direction::readable).error() == ErrorCode::closed);
}

TEST(SerialWait, the_interrupter_is_asked_and_may_end_the_wait) {
  Pipe ring;
  Aside aside;
  aside.fd = ring.reader;
  aside.pipe = &ring;
  ring.put();
  CHECK(coir::wait(pipe.reader, Direction::readable, Deadline::after(10s)).error() == ErrorCode::cancelled);
  LONGS_EQUAL(1, aside.asked);
}

TEST(SerialWait, the_wait_goes_on_when_the_interrupter_says_so) {
  Pipe ring;
  Aside aside;
  aside.fd = ring.reader;
  aside.pipe = &ring;
  aside.patience = 1;
  ring.put();
  CHECK(coir::wait(pipe.reader, Direction::readable, Deadline::after(30ms)).error() == ErrorCode::timed_out);
  LONGS_EQUAL(1, aside.asked);
}

TEST(SerialWait, a_shield_keeps_the_interrupter_away) {
  Pipe ring;
  Aside aside;
  aside.fd = ring.reader;
  aside.pipe = &ring;
  ring.put();
  {
    const coir::Shield shield(Deadline::after(10s));
    CHECK(coir::sleep(1ms).has_value());
    LONGS_EQUAL(0, aside.asked);
  }
  CHECK(coir::sleep(10s).error() == ErrorCode::cancelled);
  LONGS_EQUAL(1, aside.asked);
}

// A child that is to end has its time for it, also where every wait of the program is over.
TEST(SerialWait, a_child_that_is_stopped_has_its_grace_whatever_the_interrupter_says) {
  Pipe ring;
  Aside aside;
  aside.fd = ring.reader;
  const char* const line[] = {"/bin/sh", "-c", "trap 'exit 7' TERM; echo; while :; do sleep 0.01; done", nullptr};
  auto process = coir::Process::start({.argv = line, .out = coir::Output::pipe()});
  CHECK(process.has_value());
  CHECK(coir::wait(process->out(), Direction::readable, Deadline::after(10s)).has_value());
  ring.put();
  const auto exit = process->stop(10s);
  CHECK(exit && exit->status == 7);
}

TEST(SerialWait, the_interrupters_deadline_ends_every_wait) {
  Aside aside;
  aside.deadline = Deadline::after(20ms);
  CHECK(coir::wait(pipe.reader, Direction::readable).error() == ErrorCode::cancelled);
  CHECK(coir::wait(pipe.reader, Direction::readable).error() == ErrorCode::cancelled);
  LONGS_EQUAL(2, aside.asked);
}

TEST(SerialWait, the_interrupter_is_asked_in_a_sleep_and_may_end_it) {
  Pipe ring;
  Aside aside;
  aside.fd = ring.reader;
  aside.pipe = &ring;
  aside.patience = 1;
  ring.put();
  CHECK_TRUE(coir::sleep(10ms).has_value());
  LONGS_EQUAL(1, aside.asked);
  aside.deadline = Deadline::after(5ms);
  const auto slept = coir::sleep_until(Deadline::never());
  CHECK_TRUE(!slept && slept.error() == ErrorCode::cancelled);
}

TEST(SerialWait, a_signal_ends_wait_signal_and_shows_at_its_descriptor) {
  CHECK(coir::catch_signals({SIGUSR2}).has_value());
  CHECK(coir::wait(coir::signals_fd(), Direction::readable, Deadline::now()).error() == ErrorCode::timed_out);
  CHECK_EQUAL(0, raise(SIGUSR2));
  CHECK(coir::wait(coir::signals_fd(), Direction::readable, Deadline::after(10s)).has_value());
  LONGS_EQUAL(SIGUSR2, *coir::wait_signal({SIGUSR2}, Deadline::after(10s)));
}

TEST(SerialWait, a_program_that_is_to_have_workers_is_refused_in_one_line) {
  const auto run_with = [](const char* workers) {
    return coir::test::in_child([&] {
      setenv("COIR_WORKERS", workers, 1);
      return coir::run_program([] { return 7; });
    });
  };
  LONGS_EQUAL(7, run_with("1").status);
  const auto refused = run_with("2");
  LONGS_EQUAL(2, refused.status);
  LONGS_EQUAL(1, refused.lines());
  CHECK(refused.wrote("COIR_WORKERS"));
}

}  // namespace serial_wait_test
