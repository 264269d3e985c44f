// A supervisor: it keeps programs running, and what they write in one log for each, which is rotated by size.
//
//   supervisor FOLDER KILOBYTES NAME=COMMAND ...
//
// A program that ends is started again, at once if it ran for a while, else after a pause that doubles. Each line that
// it writes goes to FOLDER/NAME.log; when that is KILOBYTES large it becomes FOLDER/NAME.log.1. SIGHUP rotates all logs,
// SIGTERM stops the programs, by force where it must be, and ends.

#include <coir/cancel_scope.h>
#include <coir/descriptor_stream.h>
#include <coir/file.h>
#include <coir/format.h>
#include <coir/mutex.h>
#include <coir/nursery.h>
#include <coir/print.h>
#include <coir/process.h>
#include <coir/runtime.h>
#include <coir/signal.h>
#include <coir/stream_lines.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <optional>

using namespace std::chrono_literals;
using coir::Deadline;
using coir::format;
using Outcome = std::expected<void, coir::Error>;

namespace {

constexpr std::size_t kMostPrograms = 16;
constexpr std::chrono::nanoseconds kShortest = 100ms, kLongest = 10s, kLongEnough = 5s;

// Log is a file that is rotated. Its lines come from one fiber, SIGHUP from another.
class Log {
 public:
  Log(const char* folder, std::string_view name, std::uint64_t most) : most_(most) {
    format(path_, folder, "/", name, ".log", '\0');
    format(old_, folder, "/", name, ".log.1", '\0');
  }

  Outcome add(std::string_view line) {
    const auto held = mutex_.lock();
    if (!held) return std::unexpected(held.error());
    if (!file_.is_open()) {
      auto opened = coir::File::open(path_, {.create = true, .append = true});
      if (!opened) return std::unexpected(opened.error());
      file_ = std::move(*opened);
      bytes_ = file_.size().value_or(0);
    }
    char text[640];
    const std::string_view whole = format(text, line, "\n");
    if (auto written = file_.write_all(whole); !written) return written;
    if ((bytes_ += whole.size()) < most_) return {};
    return move_aside();
  }

  Outcome rotate() {
    const auto held = mutex_.lock();
    return held ? move_aside() : std::unexpected(held.error());
  }

 private:
  Outcome move_aside() {
    static_cast<void>(file_.close());
    file_ = {};
    if (rename(path_, old_) == 0 || errno == ENOENT) return {};
    return std::unexpected(coir::Error::from_errno(errno));
  }

  char path_[256], old_[256];
  std::uint64_t most_, bytes_ = 0;
  coir::Mutex mutex_;
  coir::File file_;
};

// Program is one that is kept running.
class Program {
 public:
  Program(std::string_view name, const char* command, const char* folder, std::uint64_t most)
      : name_(name), command_(command), log_(folder, name, most) {}

  // run ends when it is cancelled; the program has ended by then.
  Outcome run() {
    std::chrono::nanoseconds pause = kShortest;
    for (;;) {
      const Deadline long_enough = Deadline::after(kLongEnough);
      if (auto ran = run_once(); !ran) {
        if (ran.error() == coir::ErrorCode::cancelled) return {};
        coir::print(name_, ": ", ran.error(), "\n");
      }
      if (long_enough.passed()) {
        pause = kShortest;
        continue;
      }
      if (!coir::sleep(pause)) return {};
      pause = pause * 2 < kLongest ? pause * 2 : kLongest;
    }
  }

  void rotate() {
    const Outcome rotated = log_.rotate();
    coir::print(name_, ": log ", rotated ? "rotated" : describe(rotated.error()), "\n");
  }

 private:
  using Lines = coir::StreamLines<coir::DescriptorStream>;

  Outcome run_once() {
    const char* const words[] = {"/bin/sh", "-c", command_, nullptr};
    auto process = coir::Process::start({.argv = words, .out = coir::Output::pipe(), .err = coir::Output::with_out()});
    if (!process) return std::unexpected(process.error());
    coir::print(name_, ": runs\n");
    auto out = coir::DescriptorStream::share(process->out());
    if (!out) return std::unexpected(out.error());
    char buffer[512];
    Lines lines(*out, buffer);
    const Outcome logged = log_all(lines);
    const auto exit = process->stop(2s);
    if (!logged) {
      const coir::Shield shield(Deadline::after(1s));  // its last words
      static_cast<void>(log_all(lines));
    }
    if (exit && exit->signal != 0) coir::print(name_, ": ended by signal ", exit->signal, "\n");
    if (exit && exit->signal == 0) coir::print(name_, ": ended with status ", exit->status, "\n");
    return logged;
  }

  // log_all returns when nobody writes any more.
  Outcome log_all(Lines& lines) {
    for (;;) {
      const auto line = lines.next();
      if (!line && line.error() == coir::ErrorCode::end_of_stream) return {};
      if (!line && line.error() != coir::ErrorCode::limit) return std::unexpected(line.error());
      if (auto added = log_.add(line ? *line : "(a line that was too long)"); !added)
        coir::print(name_, ": ", added.error(), "\n");
    }
  }

  std::string_view name_;
  const char* command_;
  Log log_;
};

Outcome supervise(const char* folder, std::uint64_t most, std::span<char*> words) {
  static std::optional<Program> programs[kMostPrograms];
  if (auto caught = coir::catch_signals({SIGHUP, SIGTERM, SIGINT}); !caught) return caught;
  coir::Nursery nursery;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    Program& program = programs[i].emplace(word.substr(0, word.find('=')), words[i] + word.find('=') + 1, folder, most);
    nursery.start({.name = "program", .stack = 16 * 1024}, [&program] { return program.run(); });
  }
  nursery.start({.name = "rotation"}, [&] {
    while (coir::wait_signal({SIGHUP})) {
      for (std::size_t i = 0; i < words.size(); ++i) programs[i]->rotate();
    }
  });
  if (auto signal = coir::wait_signal({SIGTERM, SIGINT}); !signal) return std::unexpected(signal.error());
  nursery.cancel("the supervisor ends");
  static_cast<void>(nursery.join());
  coir::print("all programs have ended\n");
  return {};
}

}  // namespace

int main(int count, char** words) {
  if (count < 4 || count - 3 > static_cast<int>(kMostPrograms)) {
    coir::print("usage: supervisor FOLDER KILOBYTES NAME=COMMAND ...    up to ", kMostPrograms, " programs\n");
    return 0;
  }
  for (char* const word : std::span(words + 3, words + count)) {
    if (const std::size_t at = std::string_view(word).find('='); at != std::string_view::npos && at != 0) continue;
    return coir::print("supervisor: '", static_cast<const char*>(word), "' is no NAME=COMMAND\n"), 2;
  }
  const std::uint64_t most = strtoull(words[2], nullptr, 10) * 1024;
  return coir::run([&] { return supervise(words[1], most, std::span(words + 3, words + count)); });
}
