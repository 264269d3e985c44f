#include <coir/process.h>

#include <CppUTest/TestHarness.h>
#include <coir/cancel_scope.h>
#include <coir/wait.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/both_sides.h"
#include "tests/support/pipe.h"
#include "tests/support/shell.h"

namespace process_group_test {

using coir::Command;
using coir::Deadline;
using coir::ErrorCode;
using coir::Output;
using coir::Process;
using coir::run_pipeline;
using coir::run_process;
using coir::test::no_child_is_left;
using coir::test::Pipe;
using coir::test::Shell;
using namespace std::chrono_literals;

namespace {

// Held is a pipe that a process and all its children hold as standard error: it ends when the last of them has.
class Held {
 public:
  Output output() const noexcept { return Output::file(pipe_.writer); }

  // says_up waits until one of them has written. Then all that the script starts before is there.
  bool says_up() noexcept {
    return coir::wait(pipe_.reader, coir::Direction::readable, Deadline::after(60s)).has_value() && pipe_.get();
  }

  // is_let_go tells whether all have ended, and gives those a moment that were killed.
  bool is_let_go() noexcept {
    pipe_.close_writer();
    for (const Deadline patience = Deadline::after(20s);;) {
      char bytes[64];
      const ssize_t n = read(pipe_.reader, bytes, sizeof bytes);
      if (n == 0) return true;
      if (n < 0 && !coir::wait(pipe_.reader, coir::Direction::readable, patience)) return false;
    }
  }

 private:
  Pipe pipe_;
};

// A shell whose child, a shell as well, outlives it and SIGTERM, and says so.
constexpr const char* kStubborn =
    "trap '' TERM; sh -c 'trap \"\" TERM; echo up >&2; while :; do sleep 100; done' & wait; sleep 100";

// In a copy of this program that is started to be stopped: before anything else runs.
[[gnu::constructor]] void leave_the_group() {
  if (getenv("COIR_TEST_LEAVES_ITS_GROUP") == nullptr) return;
  if (setpgid(0, getpgid(getppid())) != 0 || write(STDOUT_FILENO, "x", 1) != 1) _exit(1);
  for (;;) pause();
}

}  // namespace

// Processes that a process starts belong to its group and end with it.
TEST_GROUP_BASE(ProcessGroup, coir::test::BothSides) {};

TEST(ProcessGroup, ends_whole_at_the_deadline_also_when_it_ignores_sigterm) {
  both_sides([&] {
    Held held;
    const Shell shell(kStubborn);
    Command command = shell.command();
    command.err = held.output();
    char out[16];
    const auto late = run_process(command, {.out = out, .grace = 50ms}, Deadline::after(300ms));
    expect(!late && late.error() == ErrorCode::timed_out);
    expect(held.is_let_go());
    expect(no_child_is_left());
  });
}

TEST(ProcessGroup, ends_whole_when_it_is_stopped_or_dropped) {
  both_sides([&] {
    for (const bool dropped : {false, true}) {
      Held held;
      const Shell shell(kStubborn);
      Command command = shell.command();
      command.err = held.output();
      {
        auto process = Process::start(command);
        expect(process.has_value() && held.says_up());
        if (!dropped) {
          const auto ended = process->stop(5ms);
          expect(ended && ended->signal == SIGKILL);
        }
      }
      expect(held.is_let_go());
      expect(no_child_is_left());
    }
  });
}

TEST(ProcessGroup, processes_that_a_process_leaves_behind_end_when_it_is_stopped) {
  both_sides([&] {
    Held held;
    const Shell shell("sh -c 'trap \"\" TERM; echo up >&2; while :; do sleep 100; done' & exit 3");
    Command command = shell.command();
    command.err = held.output();
    auto process = Process::start(command);
    expect(process.has_value() && held.says_up());
    const auto ended = process->stop();
    expect(ended && (ended->status == 3 || ended->signal == SIGTERM));
    expect(held.is_let_go());
    expect(no_child_is_left());
  });
}

TEST(ProcessGroup, each_of_a_pipeline_ends_whole_at_the_deadline) {
  both_sides([&] {
    Held first, second;
    const Shell shell(kStubborn);
    Command commands[] = {shell.command(), shell.command()};
    commands[0].err = first.output();
    commands[1].err = second.output();
    char out[16];
    const auto late = run_pipeline(commands, {.out = out, .grace = 5ms}, {}, Deadline::after(300ms));
    expect(!late && late.error() == ErrorCode::timed_out);
    expect(first.is_let_go() && second.is_let_go());
    expect(no_child_is_left());
  });
}

TEST(ProcessGroup, is_stopped_and_waited_for_inside_a_scope_that_has_ended) {
  both_sides([&] {
    Held held;
    const Shell shell("trap 'exit 5' TERM; echo up >&2; while :; do sleep 0.01; done");
    Command command = shell.command();
    command.err = held.output();
    auto process = Process::start(command);
    expect(process.has_value() && held.says_up());
    coir::CancelScope scope;
    scope.cancel();
    // Its own grace counts, not the scope: it is waited for until it has ended in good order.
    const auto ended = process->stop(30s);
    expect(ended && ended->status == 5);
    expect(no_child_is_left());
  });
}

// A process that has left its group, as under a shell with job control, still ends by stop.
TEST(ProcessGroup, stop_ends_a_process_that_has_left_its_group) {
  both_sides([&] {
    Pipe up;
    const char* const self[] = {"/proc/self/exe", nullptr};
    const char* const environment[] = {"COIR_TEST_LEAVES_ITS_GROUP=1", nullptr};
    auto process = Process::start({.argv = self, .environment = environment, .out = Output::file(up.writer)});
    if (!process) {
      puts("# SKIP this program cannot start itself");
      return;
    }
    expect(coir::wait(up.reader, coir::Direction::readable, Deadline::after(60s)).has_value() && up.get());
    const auto ended = process->stop(0s);
    expect(ended && ended->signal == SIGKILL);
    expect(no_child_is_left());
  });
}

TEST(ProcessGroup, ends_whole_at_the_deadline_of_a_scope) {
  both_sides([&] {
    coir::CancelScope scope(Deadline::after(50ms));
    char out[16];
    const Shell sleeps("sleep 100");
    const auto late = run_process(sleeps.command(), {.out = out});
    expect(!late && late.error() == ErrorCode::timed_out && scope.caused(late.error()));
    expect(no_child_is_left());
  });
}

}  // namespace process_group_test
