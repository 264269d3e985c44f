#include <coir/process.h>

#include <CppUTest/TestHarness.h>
#include <coir/wait.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string_view>

#include "tests/support/both_sides.h"
#include "tests/support/pipe.h"
#include "tests/support/scale.h"
#include "tests/support/shell.h"
#include "tests/support/until.h"

namespace process_test {

using coir::Capture;
using coir::Command;
using coir::Deadline;
using coir::ErrorCode;
using coir::Exit;
using coir::Input;
using coir::Output;
using coir::Process;
using coir::run_pipeline;
using coir::run_process;
using coir::test::no_child_is_left;
using coir::test::scaled;
using coir::test::Shell;
using namespace std::chrono_literals;

namespace {

// Kept is what the reactor and the pool open once and keep, warmed up by one process.
int fds_now() noexcept {
  const Shell shell("exit 0");
  static_cast<void>(run_process(shell.command()));
  return coir::test::count_fds();
}

std::string_view text(const char* bytes, std::size_t size) noexcept {
  return {bytes, size};
}

}  // namespace

TEST_GROUP_BASE(Process, coir::test::BothSides) {};

// reaped elsewhere, nobody knows how it ended, and its id is not signalled any more.
TEST(Process, one_that_was_reaped_elsewhere_is_told_at_each_call) {
  both_sides([&] {
    const Shell quick("exit 3");
    auto process = Process::start(quick.command());
    expect(process.has_value());
    if (!process) return;
    while (waitpid(process->pid(), nullptr, 0) < 0 && errno == EINTR) {
    }
    const auto signalled = process->signal(SIGTERM);
    expect(!signalled && signalled.error().sys == ECHILD);
    for (int times = 0; times < 2; ++times) {
      const auto ended = process->wait();
      expect(!ended && ended.error().sys == ECHILD);
    }
    const auto stopped = process->stop();
    expect(!stopped && stopped.error().sys == ECHILD);
    const auto again = process->signal(SIGTERM);
    expect(!again && again.error() == ErrorCode::stale);
  });
}

TEST(Process, tells_its_exit_status_or_its_signal) {
  both_sides([&] {
    const Shell seven("exit 7"), killed("kill -9 $$");
    auto process = Process::start(seven.command());
    expect(process && process->pid() > 0);
    const auto ended = process->wait();
    expect(ended && ended->status == 7 && ended->signal == 0 && !ended->ok());
    const auto again = process->wait();
    expect(again && again->status == 7);
    const auto gone = process->signal(SIGTERM);
    expect(!gone && gone.error() == ErrorCode::stale);
    const auto shot = run_process(killed.command());
    expect(shot && shot->exit.signal == SIGKILL && shot->exit.status == -1);
    expect(no_child_is_left());
  });
}

TEST(Process, a_missing_program_or_directory_is_an_error_of_the_start) {
  both_sides([&] {
    const char* const missing[] = {"/no/such/program", nullptr};
    const auto none = Process::start({.argv = missing});
    expect(!none && none.error().sys == ENOENT);
    const char* const nowhere[] = {"no-such-program-in-path", nullptr};
    const auto looked = Process::start({.argv = nowhere});
    expect(!looked && looked.error().sys == ENOENT);
    const Shell shell("exit 0");
    const auto lost = Process::start({.argv = shell.argv, .directory = "/no/such/directory"});
    expect(!lost && lost.error().sys == ENOENT);
    const char* const endless[] = {"/bin/sh", "-c"};
    const auto invalid = Process::start({.argv = endless});
    expect(!invalid && invalid.error() == ErrorCode::invalid);
    expect(no_child_is_left());
  });
}

TEST(Process, its_output_is_captured_in_two_streams_or_one) {
  both_sides([&] {
    const Shell shell("echo out; echo err >&2; exit 3");
    char out[64], err[64];
    const auto both = run_process(shell.command(), {.out = out, .err = err});
    expect(both && both->exit.status == 3);
    expect(text(out, both->out_bytes) == "out\n" && text(err, both->err_bytes) == "err\n");
    expect(!both->out_cut && !both->err_cut);
    Command merged = shell.command();
    merged.err = Output::with_out();
    const auto one = run_process(merged, {.out = out});
    expect(one && text(out, one->out_bytes) == "out\nerr\n");
  });
}

TEST(Process, a_child_that_floods_both_streams_is_read_to_its_end_and_cut) {
  both_sides([&] {
    const Shell shell("head -c 300000 /dev/zero; head -c 300000 /dev/zero >&2; echo done");
    char out[1000], err[10];
    const auto flood = run_process(shell.command(), {.out = out, .err = err});
    expect(flood && flood->exit.ok());
    expect(flood->out_bytes == sizeof out && flood->out_cut);
    expect(flood->err_bytes == sizeof err && flood->err_cut);
  });
}

TEST(Process, input_is_bytes_a_file_or_nothing) {
  both_sides([&] {
    const char* const cat[] = {"cat", nullptr};
    char out[64];
    const auto nothing = run_process({.argv = cat}, {.out = out});
    expect(nothing && nothing->out_bytes == 0 && nothing->exit.ok());
    const auto bytes = run_process({.argv = cat, .input = Input::bytes(std::string_view("to be read"))}, {.out = out});
    expect(bytes && text(out, bytes->out_bytes) == "to be read");
    const int fd = open("/proc/self/comm", O_RDONLY | O_CLOEXEC);
    const auto file = run_process({.argv = cat, .input = Input::file(fd)}, {.out = out});
    close(fd);
    expect(file && file->out_bytes > 0);
    static char many[1 << 20];
    const Shell count("wc -c");
    Command command = count.command();
    command.input = Input::bytes(many);
    const auto counted = run_process(command, {.out = out});
    expect(counted && atoi(out) == 1 << 20);
    const Shell ignores("exit 0");  // input that nobody reads raises nothing
    command = ignores.command();
    command.input = Input::bytes(many);
    expect(run_process(command).has_value());
  });
}

TEST(Process, runs_in_the_directory_and_the_environment_that_it_is_given) {
  both_sides([&] {
    const Shell shell("pwd; echo $GREETING");
    const char* const environment[] = {"GREETING=hello", "PATH=/bin:/usr/bin", nullptr};
    Command command = shell.command();
    command.environment = environment;
    command.directory = "/proc";
    char out[64];
    const auto ran = run_process(command, {.out = out});
    expect(ran && text(out, ran->out_bytes) == "/proc\nhello\n");
  });
}

TEST(Process, streams_are_descriptors_to_wait_on) {
  both_sides([&] {
    const Shell shell("read line; echo \"got $line\"; exec sleep 100");
    Command command = shell.command();
    int ends[2];
    expect(pipe2(ends, O_CLOEXEC) == 0);
    command.input = Input::file(ends[0]);
    command.out = Output::pipe();
    auto process = Process::start(command);
    expect(process.has_value() && process->err() == -1);
    expect(write(ends[1], "this\n", 5) == 5);
    char got[64];
    std::size_t size = 0;
    while (size < 9) {
      const ssize_t n = read(process->out(), got + size, sizeof got - size);
      if (n > 0) size += static_cast<std::size_t>(n);
      if (n < 0 && !coir::wait(process->out(), coir::Direction::readable)) break;
    }
    expect(text(got, size) == "got this\n");
    close(ends[0]);
    close(ends[1]);
    const auto ended = process->stop();
    expect(ended && ended->signal == SIGTERM);
  });
}

TEST(Process, inherits_nothing_but_its_three_streams) {
  both_sides([&] {
    const int leaky = open("/dev/null", O_RDONLY);  // without O_CLOEXEC
    // Not the last command: a shell may become that, with the folder open.
    const Shell shell("ls /proc/$$/fd; true");
    char out[256];
    const auto ran = run_process(shell.command(), {.out = out});
    // The shell may keep its terminal or script at 10 and above.
    expect(ran && text(out, ran->out_bytes).starts_with("0\n1\n2\n"));
    expect(ran && ran->out_bytes == 6);
    expect(fcntl(leaky, F_GETFD) == 0);
    close(leaky);
  });
}

TEST(Process, starts_with_no_signal_blocked_or_ignored) {
  signal(SIGPIPE, SIG_IGN);
  sigset_t blocked, before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &blocked, &before);
  both_sides([&] {
    const char* const grep[] = {"grep", "-E", "Sig(Blk|Ign)", "/proc/self/status", nullptr};
    char out[256];
    const auto ran = run_process({.argv = grep}, {.out = out});
    expect(ran && ran->out_bytes == 2 * 25);
    out[ran->out_bytes] = '\0';
    // Signals from 32 on are the C library's own, and it may ignore some of them.
    expect(strtoull(strstr(out, "SigBlk:") + 8, nullptr, 16) == 0);
    expect((strtoull(strstr(out, "SigIgn:") + 8, nullptr, 16) & 0x7fffffff) == 0);
  });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  signal(SIGPIPE, SIG_DFL);
}

TEST(Process, the_deadline_of_a_wait_leaves_the_process_running) {
  both_sides([&] {
    const char* const sleeps[] = {"sleep", "100", nullptr};
    auto process = Process::start({.argv = sleeps});
    const auto early = process->wait(Deadline::after(5ms));
    expect(!early && early.error() == ErrorCode::timed_out);
    expect(process->signal(0).has_value());
    expect(process->signal(SIGTERM).has_value());
    const auto ended = process->wait();
    expect(ended && ended->signal == SIGTERM);
  });
}

TEST(Process, two_hundred_leave_no_zombie_and_no_descriptor) {
  constexpr int kChildren = scaled({200, 50, 50, 50});
  both_sides([&] {
    const Shell shell("echo $$");
    const int before = fds_now();
    for (int i = 0; i < kChildren; ++i) {
      char out[16];
      const auto ran = run_process(shell.command(), {.out = out, .err = out});
      expect(ran && ran->exit.ok() && ran->out_bytes > 0);
    }
    expect(coir::test::fds_are_back_to(before));
    expect(no_child_is_left());
  });
}

TEST(Process, a_pipeline_hands_each_output_to_the_next_and_tells_every_exit) {
  both_sides([&] {
    const char* const numbers[] = {"printf", "3\\n1\\n2\\n", nullptr};
    const char* const sort[] = {"sort", nullptr};
    const Shell head("head -n 2; exit 4");
    const Command commands[] = {{.argv = numbers}, {.argv = sort}, head.command()};
    char out[64];
    Exit exits[3];
    const auto ran = run_pipeline(commands, {.out = out}, exits);
    expect(ran && text(out, ran->out_bytes) == "1\n2\n" && ran->exit.status == 4);
    expect(exits[0].ok() && exits[1].ok() && exits[2].status == 4);
    expect(no_child_is_left());
  });
}

// A pipe holds 64 KB.
TEST(Process, a_stream_leads_into_a_running_process) {
  both_sides([&] {
    const int before = fds_now();
    const char* const cat[] = {"cat", nullptr};
    auto process = Process::start({.argv = cat, .input = Input::pipe(), .out = Output::pipe()});
    expect(process && process->in() >= 0);
    auto input = process->take_in();
    expect(input && process->in() < 0 && process->take_in().error() == ErrorCode::stale);
    for (const std::string_view word : {"one", "two"}) {
      expect(input->write(word).has_value());
      char answer[8];
      std::size_t got = 0;
      while (got < 3) {
        const ssize_t n = read(process->out(), answer + got, sizeof answer - got);
        if (n > 0) got += static_cast<std::size_t>(n);
        if (n <= 0 && !coir::wait(process->out(), coir::Direction::readable)) break;
      }
      expect(text(answer, got) == word);
    }
    input->close();
    const auto ended = process->wait();
    expect(ended && ended->ok());
    *process = Process();
    // No one would write to it.
    expect(run_process({.argv = cat, .input = Input::pipe()}).error() == ErrorCode::invalid);
    // One that is not taken goes with the Process.
    process = Process::start({.argv = cat, .input = Input::pipe()});
    expect(process && process->in() >= 0);
    *process = Process();
    expect(no_child_is_left());
    expect(coir::test::fds_are_back_to(before));
  });
}

TEST(Process, a_pipeline_drains_the_standard_error_of_every_stage) {
  both_sides([&] {
    const Shell first("head -c 100000 /dev/zero >&2; echo one"), second("head -c 200000 /dev/zero >&2; cat; echo two"),
        third("cat; echo three >&2");
    Command commands[] = {first.command(), second.command(), third.command()};
    for (Command& each : commands) each.err = Output::pipe();
    char out[64], err[64];
    const auto ran = run_pipeline(commands, {.out = out, .err = err}, {}, Deadline::after(60s));
    expect(ran && text(out, ran->out_bytes) == "one\ntwo\n" && !ran->out_cut);
    expect(ran && text(err, ran->err_bytes) == "three\n" && !ran->err_cut);
    expect(no_child_is_left());
  });
}

TEST(Process, a_pipeline_that_cannot_be_started_or_ended_in_time_leaves_none) {
  both_sides([&] {
    const int before = fds_now();
    const char* const sleeps[] = {"sleep", "100", nullptr};
    const char* const missing[] = {"/no/such/program", nullptr};
    const char* const cat[] = {"cat", nullptr};
    char out[16];
    const Command broken[] = {{.argv = sleeps}, {.argv = missing}};
    const auto none = run_pipeline(broken, {.out = out});
    expect(!none && none.error().sys == ENOENT);
    const Command slow[] = {{.argv = sleeps}, {.argv = cat}};
    const auto late = run_pipeline(slow, {.out = out}, {}, Deadline::after(50ms));
    expect(!late && late.error() == ErrorCode::timed_out);
    expect(no_child_is_left());
    expect(coir::test::fds_are_back_to(before));
  });
}

}  // namespace process_test
