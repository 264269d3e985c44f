#pragma once

// Child processes.
//
//   const char* const list[] = {"ls", "-l", nullptr};
//   auto process = Process::start({.argv = list, .directory = "/etc", .out = Output::file(fd)});
//   if (!process) return complain(process.error());
//   if (auto exit = process->wait(Deadline::after(5s)); exit && exit->ok()) show("done");

#include <sys/types.h>

#include <cstddef>
#include <expected>
#include <span>
#include <utility>

#include <coir/deadline.h>
#include <coir/descriptor_stream.h>
#include <coir/error.h>

namespace coir {

// Input is what a process finds on its standard input.
class Input {
 public:
  enum class Kind : unsigned char { none, inherit, bytes, file, pipe };

  static constexpr Input none() noexcept { return Input(Kind::none); }  // its end, at once
  static constexpr Input inherit() noexcept { return Input(Kind::inherit); }
  // The bytes are copied to kernel memory when the process starts; the input ends behind them.
  static constexpr Input bytes(std::span<const char> content) noexcept { return Input(Kind::bytes, -1, content); }
  // A descriptor of the caller's, which may be closed when the process has started.
  static constexpr Input file(int fd) noexcept { return Input(Kind::file, fd); }
  // From Process::in() or take_in(), while the process runs.
  static constexpr Input pipe() noexcept { return Input(Kind::pipe); }

  Kind kind() const noexcept { return kind_; }
  int fd() const noexcept { return fd_; }
  std::span<const char> content() const noexcept { return content_; }

 private:
  constexpr explicit Input(Kind kind, int fd = -1, std::span<const char> content = {}) noexcept
      : kind_(kind), fd_(fd), content_(content) {}
  Kind kind_;
  int fd_;
  std::span<const char> content_;
};

// Output is where a process' output goes.
class Output {
 public:
  enum class Kind : unsigned char { none, inherit, pipe, file, out };

  static constexpr Output none() noexcept { return Output(Kind::none); }
  static constexpr Output inherit() noexcept { return Output(Kind::inherit); }
  // To Process::out() or err().
  static constexpr Output pipe() noexcept { return Output(Kind::pipe); }
  static constexpr Output file(int fd) noexcept { return Output(Kind::file, fd); }
  // For standard error: where standard output goes.
  static constexpr Output with_out() noexcept { return Output(Kind::out); }

  Kind kind() const noexcept { return kind_; }
  int fd() const noexcept { return fd_; }

 private:
  constexpr explicit Output(Kind kind, int fd = -1) noexcept : kind_(kind), fd_(fd) {}
  Kind kind_;
  int fd_;
};

// Command is a program and what it runs with. The strings that it points to outlive the start.
struct Command {
  std::span<const char* const> argv;  // the last is null; the first, where it has no slash, is looked for in PATH
  const char* const* environment = nullptr;  // "NAME=value" ..., null; none: this process's
  const char* directory = nullptr;           // to start in; none: this process's
  Input input = Input::none();
  Output out = Output::inherit();
  Output err = Output::inherit();
};

// Exit is how a process ended.
struct Exit {
  int status = -1;  // of exit; -1 when a signal ended it
  int signal = 0;   // that ended it; 0 when it exited

  bool ok() const noexcept { return status == 0; }
};

// Process is a child process, in a process group of its own. It inherits standard input, output and error as the
// command says, and no other descriptor but what another thread opens without O_CLOEXEC while it starts; no signal is
// blocked or ignored in it. Works on fibers, on plain threads and without fibers. Move-only.
//
// On a kernel without pidfd_open (before 5.3) a thread of the pool asks every few milliseconds whether the child has
// ended. SIGCHLD is not touched; in a program that ignores it wait cannot tell how a child ended (system, ECHILD, at each
// call).
class Process {
 public:
  constexpr Process() noexcept = default;
  Process(Process&& other) noexcept { swap(other); }
  Process& operator=(Process&& other) noexcept {
    swap(other);
    return *this;
  }
  // Kills the group of a process that was not waited for, waits for its end, and closes in(), out() and err().
  ~Process();

  // start returns once the program runs. Errors: not_found (no such program or directory), the kernel's, limit,
  // no_memory, invalid (argv is empty or not null-terminated), timed_out, cancelled, unsupported.
  [[nodiscard]] static std::expected<Process, Error> start(const Command& command,
                                                           Deadline deadline = Deadline::never()) noexcept;

  pid_t pid() const noexcept { return pid_; }

  // out and err are the reading ends of an Output::pipe(), non-blocking, for wait(fd, Direction::readable); -1 for
  // other outputs. The Process owns them.
  // in is likewise the writing end of an Input::pipe(), for wait(fd, Direction::writable). To write to it once nobody
  // reads raises SIGPIPE.
  int in() const noexcept { return in_; }
  int out() const noexcept { return out_; }
  int err() const noexcept { return err_; }

  // take_in hands the writing end over as a stream, whose close ends the process's input. Errors: stale (no Input::pipe(),
  // or it was taken), and those of DescriptorStream::adopt: unsupported, system.
  //
  //   auto input = process->take_in();
  //   while (auto line = next_line()) static_cast<void>(input->write(*line, deadline));
  //   input->close();
  [[nodiscard]] std::expected<DescriptorStream, Error> take_in() noexcept;

  // wait waits for the end of the process itself, not of those that it has left running, and returns how it ended, at
  // each call. Errors: timed_out, cancelled (the process goes on); stale (none was started); system; those of
  // coir::wait; where the kernel lacks pidfd_open, those of blocking.
  [[nodiscard]] std::expected<Exit, Error> wait(Deadline deadline = Deadline::never()) noexcept;

  // signal sends a signal to the whole group, and to the process itself if it has left that. Error: stale (the process
  // was waited for), system.
  [[nodiscard]] std::expected<void, Error> signal(int number) const noexcept;

  // stop sends SIGTERM as signal does and, `grace` later, or when the process itself has ended, SIGKILL. It waits for
  // the end, also in a fiber that is cancelled. Errors: stale (none was started), system.
  std::expected<Exit, Error> stop(std::chrono::nanoseconds grace = std::chrono::seconds(1)) noexcept;

 private:
  void swap(Process& other) noexcept {
    std::swap(pid_, other.pid_);
    std::swap(pidfd_, other.pidfd_);
    std::swap(in_, other.in_);
    std::swap(out_, other.out_);
    std::swap(err_, other.err_);
    std::swap(reaped_, other.reaped_);
    std::swap(lost_, other.lost_);
    std::swap(exit_, other.exit_);
  }
  std::expected<void, Error> await_end(Deadline deadline, bool shielded) noexcept;
  std::expected<Exit, Error> reap() noexcept;
  Error lost(Error error) noexcept;
  std::expected<Exit, Error> outcome() const noexcept;

  pid_t pid_ = -1;
  int pidfd_ = -1;
  int in_ = -1, out_ = -1, err_ = -1;
  bool reaped_ = true;
  int lost_ = 0;  // the errno, where it was reaped elsewhere; then nobody knows how it ended
  Exit exit_;
};

// Capture is where run_process and run_pipeline keep the output, and how long they wait, at their deadline, between
// SIGTERM and SIGKILL. A stream whose span is empty goes where its command says.
struct Capture {
  std::span<char> out = {};
  std::span<char> err = {};
  std::chrono::nanoseconds grace = std::chrono::seconds(1);
};

// process_run.cpp has what follows.

// Captured is how a process ended and how much of each span was filled. Output that did not fit was read and dropped,
// so that the process could go on; a flag tells.
struct Captured {
  Exit exit;
  std::size_t out_bytes = 0, err_bytes = 0;
  bool out_cut = false, err_cut = false;
};

// run_process starts a process, reads its output to the end, and returns how it ended. At the deadline, and when the
// caller is cancelled, the group is stopped as by Process::stop; no process is left when it returns. Errors: those of
// Process::start and Process::wait; invalid for an Input::pipe(), which nobody would write to.
[[nodiscard]] std::expected<Captured, Error> run_process(const Command& command, const Capture& capture = {},
                                                         Deadline deadline = Deadline::never()) noexcept;

inline constexpr std::size_t kMostStages = 8;

// run_pipeline runs commands side by side, the output of each the input of the next, and returns what run_process
// returns of the last; `exits` receives how each ended, as far as it has room. capture.err is for the last one's; what an
// earlier one writes to an Output::pipe() as its standard error is read and dropped.
// Errors: as run_process, of any of them, after which none is left; limit for more than kMostStages.
[[nodiscard]] std::expected<Captured, Error> run_pipeline(std::span<const Command> commands,
                                                          const Capture& capture = {}, std::span<Exit> exits = {},
                                                          Deadline deadline = Deadline::never()) noexcept;

}  // namespace coir
