#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>

#include <coir/process.h>
#include <coir/wait.h>

#include "wait/wait_several.h"

namespace coir {

namespace {

constexpr std::size_t kDropBytes = 512;  // on the stack of a fiber
constexpr int kTurn = 32;                // reads without a wait before other fibers run

// Drain reads one pipe into a span, and drops the rest.
class Drain {
 public:
  Drain() noexcept = default;
  Drain(int fd, std::span<char> into) noexcept : fd_(fd), into_(into) {}

  bool open() const noexcept { return fd_ >= 0; }
  int fd() const noexcept { return fd_; }
  std::size_t filled() const noexcept { return filled_; }
  bool cut() const noexcept { return cut_; }

  // step reads once. True: more may be there already.
  bool step() noexcept {
    if (fd_ < 0) return false;
    char drop[kDropBytes];
    const bool full = filled_ == into_.size();
    const ssize_t n = full ? read(fd_, drop, sizeof drop) : read(fd_, into_.data() + filled_, into_.size() - filled_);
    if (n > 0) {
      if (full) {
        cut_ = true;
      } else {
        filled_ += static_cast<std::size_t>(n);
      }
      return true;
    }
    if (n < 0 && errno == EINTR) return true;
    if (n < 0 && errno == EAGAIN) return false;
    fd_ = -1;  // its end; the Process closes it
    return false;
  }

 private:
  int fd_ = -1;
  std::span<char> into_;
  std::size_t filled_ = 0;
  bool cut_ = false;
};

constexpr std::size_t kMostDrains = kMostStages + 1;  // standard error of each stage, and the last one's output
static_assert(kMostDrains <= kMostAwaited);

// Not inlined: its frame and its caller's are each bounded.
[[gnu::noinline]] std::expected<void, Error> drain_all(std::span<Drain> drains, Deadline deadline) noexcept {
  for (int turn = 1;; ++turn) {
    Awaited open[kMostDrains];
    std::size_t count = 0;
    bool more = false;
    for (Drain& drain : drains) {
      if (drain.step()) more = true;
      if (drain.open()) open[count++].fd = drain.fd();
    }
    if (count == 0) return {};
    std::expected<void, Error> going;
    if (!more) {
      going = wait_several({open, count}, deadline);
    } else if (turn % kTurn == 0) {
      going = pause_between(deadline);
    }
    if (!going) return going;
  }
}

// finish reads all that `stages` write to the caller, then waits for their ends; on an error it stops them all.
std::expected<Captured, Error> finish(std::span<Process> stages, const Capture& capture, std::span<Exit> exits,
                                      Deadline deadline) noexcept {
  Process& last = stages.back();
  Drain drains[kMostDrains];
  Drain& out = drains[0];
  Drain& err = drains[stages.size()];
  out = Drain(last.out(), capture.out);
  for (std::size_t i = 0; i < stages.size(); ++i) drains[i + 1] = Drain(stages[i].err(), {});
  err = Drain(last.err(), capture.err);
  std::expected<void, Error> going = drain_all({drains, stages.size() + 1}, deadline);
  for (std::size_t i = 0; i < stages.size() && going; ++i) {
    const auto ended = stages[i].wait(deadline);
    if (!ended) {
      going = std::unexpected(ended.error());
    } else if (i < exits.size()) {
      exits[i] = *ended;
    }
  }
  if (!going) {
    const Deadline grace = Deadline::after(capture.grace);
    for (Process& stage : stages) static_cast<void>(stage.signal(SIGTERM));
    for (Process& stage : stages) {
      static_cast<void>(stage.stop(std::max(std::chrono::nanoseconds(grace.ns() - monotonic_ns()), {})));
    }
    return std::unexpected(going.error());
  }
  return Captured{.exit = *last.wait(),
                  .out_bytes = out.filled(),
                  .err_bytes = err.filled(),
                  .out_cut = out.cut(),
                  .err_cut = err.cut()};
}

// PipeEnd closes one end of a pipe between two stages; no fiber waits on it.
struct PipeEnd {
  int fd = -1;
  void hold(int other) noexcept {
    if (fd >= 0) ::close(fd);
    fd = other;
  }
  ~PipeEnd() { hold(-1); }
};

}  // namespace

std::expected<Captured, Error> run_process(const Command& command, const Capture& capture, Deadline deadline) noexcept {
  return run_pipeline({&command, 1}, capture, {}, deadline);
}

std::expected<Captured, Error> run_pipeline(std::span<const Command> commands, const Capture& capture,
                                            std::span<Exit> exits, Deadline deadline) noexcept {
  if (commands.empty() || commands[0].input.kind() == Input::Kind::pipe) {
    return std::unexpected(Error{ErrorCode::invalid, EINVAL});
  }
  if (commands.size() > kMostStages) return std::unexpected(Error{ErrorCode::limit, E2BIG});
  Process stages[kMostStages];  // those that run are killed if a later one cannot be started
  PipeEnd input;
  for (std::size_t i = 0; i < commands.size(); ++i) {
    Command command = commands[i];
    const bool is_last = i + 1 == commands.size();
    PipeEnd output, next;
    if (i != 0) command.input = Input::file(input.fd);
    if (!is_last) {
      int ends[2];
      if (pipe2(ends, O_CLOEXEC) != 0) return std::unexpected(Error::from_errno(errno));
      next.hold(ends[0]);
      output.hold(ends[1]);
      command.out = Output::file(output.fd);
    } else {
      if (!capture.out.empty()) command.out = Output::pipe();
      if (!capture.err.empty()) command.err = Output::pipe();
    }
    auto started = Process::start(command, deadline);
    if (!started) return std::unexpected(started.error());
    stages[i] = std::move(*started);
    input.hold(std::exchange(next.fd, -1));
  }
  input.hold(-1);
  return finish({stages, commands.size()}, capture, exits, deadline);
}

}  // namespace coir
