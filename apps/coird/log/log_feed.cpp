#include "log_feed.h"

#if !COIR_NO_ASYNC

#include <coir/atomic.h>
#include <coir/blocking.h>
#include <coir/ledger.h>
#include <coir/stack_size.h>
#include <coir/wait.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <new>
#include <utility>

#include "../complaint.h"

using namespace std::chrono_literals;
using coir::operator""_KiB;

namespace {

constinit coir::Account g_log_account("log");

// The eventfd that the feeding fiber waits on, and whether it has news that the fiber has not taken. A thread that logs must
// never wait for a worker: that of the watchdog logs while one hangs.
constinit int g_news = -1;
constinit coir::SharedAtomic<bool> g_has_news{false};

void tell_news() noexcept {
  // acq_rel: a line that is kept before is seen by the fiber that clears it.
  if (g_has_news.exchange(true, std::memory_order_acq_rel)) return;
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(g_news, &one, sizeof one);
}

// passes tells an error that ends without a change of the options: a file system that is read-only or full, a disk that
// fails, or a stick that is not there yet.
bool passes(int error) noexcept {
  return error == EROFS || error == ENOSPC || error == EDQUOT || error == EIO || error == ENOENT;
}

}  // namespace

struct LogFeed::Memory {
  char text[coir::kMostKeptOfLine];
  char batch[8192];
};

LogFeed::~LogFeed() {
  coir::on_log_line(nullptr);
  if (memory_ == nullptr) return;
  again_ = coir::Deadline::now();
  feed_once();
  free(memory_);
  g_log_account.refund(sizeof(Memory));
}

bool LogFeed::open(const Options& options, const Identity& identity) noexcept {
  if (options.log_file == nullptr && options.syslog == nullptr) return true;
  void* const room = g_log_account.charge(sizeof(Memory)) ? malloc(sizeof(Memory)) : nullptr;
  const char* const option = options.log_file != nullptr ? "log-file" : "syslog";
  if (room == nullptr) return complain("give coird more memory", {"--", option, ": there is no memory for it"});
  memory_ = ::new (room) Memory;
  if (options.log_file != nullptr) {
    path_ = options.log_file;
    file_.name(path_, options.log_size, options.log_count);
    int error = file_.open();
    if (error == 0 && identity.changes) error = file_.give_to(identity.user, identity.group);
    if (passes(error)) {
      refused(error);
    } else if (error != 0) {
      path_ = nullptr;  // nothing more is tried
      return options.wrong("log-file", options.log_file, "name a file in a folder that coird can write",
                           {coir::Error::from_errno(error)});
    }
  }
  to_system_ = options.syslog != nullptr;
  if (to_system_) system_.name(options.syslog);
  return true;
}

void LogFeed::start() noexcept {
  if (memory_ == nullptr) return;
  g_news = ::eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC);
  if (g_news >= 0) fiber_ = coir::spawn({.name = "log", .stack = 16_KiB}, [this] { feed(); });
  if (!fiber_.started()) return warn({"--log-file, --syslog: nothing is written: ", fiber_.error()});
  coir::on_log_line(tell_news);
}

void LogFeed::stop() noexcept {
  if (!fiber_.started()) return;
  static_cast<void>(fiber_.cancel());
  static_cast<void>(fiber_.join());
}

void LogFeed::feed() noexcept {
  for (;;) {
    std::uint64_t count;
    if (read(g_news, &count, sizeof count) == sizeof count || (waits() && again_.passed())) {
      g_has_news.exchange(false, std::memory_order_acq_rel);
      feed_once();
      continue;
    }
    const auto ready = coir::wait(g_news, coir::Direction::readable, waits() ? again_ : coir::Deadline::never());
    if (!ready && ready.error() != coir::ErrorCode::timed_out) return;
  }
}

// feed_once feeds both, but for one that has taken nothing less than a second ago.
void LogFeed::feed_once() noexcept {
  const bool again = !waits() || again_.passed();
  if (path_ != nullptr && (again || !file_waits_)) file_waits_ = !feed_file();
  if (to_system_ && (again || !system_waits_)) system_waits_ = !feed_system();
  if (again) again_ = coir::Deadline::after(1s);
}

bool LogFeed::feed_file() noexcept {
  for (;;) {
    coir::LogReader reader = from_file_;
    coir::Formatter batch(memory_->batch);
    for (;;) {
      coir::LogReader before = reader;
      const auto line = reader.read(memory_->text);
      if (!line) break;
      coir::Formatter with = batch;
      if (reader.lost() != before.lost()) {
        char room[80];
        coir::LogRecord lost = *line;
        lost.level = coir::LogLevel::warning;
        lost.source = "log";
        lost.text = coir::format(room, reader.lost() - before.lost(), " lines are lost");
        lost.add_to(with);
      }
      line->add_to(with);
      if (!with.fits() && !batch.text().empty()) {
        reader = before;
        break;
      }
      batch = with;
    }
    const std::string_view lines = batch.text();
    if (lines.empty()) return true;
    const auto written = coir::blocking_borrowed([&](const coir::BlockingStop&) { return file_.write(lines); });
    if (!written && written.error() == coir::ErrorCode::cancelled) return false;
    const int error = written ? *written : EAGAIN;
    refused(error);
    if (error != 0) return false;
    from_file_ = reader;
  }
}

// refused tells an error of the file once, until it is another.
void LogFeed::refused(int error) noexcept {
  if (error != 0 && error != error_)
    warn({"--log-file ", path_, ": ", coir::Error::from_errno(error), "; tried again"});
  error_ = error;
}

bool LogFeed::feed_system() noexcept {
  for (;;) {
    coir::LogReader reader = from_system_;
    const auto line = reader.read(memory_->text);
    if (!line) return true;
    int error = reader.lost() != told_lost_ ? system_.tell_lost(reader.lost() - told_lost_) : 0;
    if (error == 0) {
      told_lost_ = reader.lost();
      error = system_.send(*line);
    }
    // A daemon that is only busy takes it later.
    if (error != 0 && error != EAGAIN && error != ENOBUFS && error != std::exchange(system_error_, error))
      warn({"--syslog: ", coir::Error::from_errno(error), "; tried again"});
    if (error != 0) return false;
    system_error_ = 0;
    from_system_ = reader;
  }
}

#else

LogFeed::~LogFeed() = default;

bool LogFeed::open(const Options&, const Identity&) noexcept {
  return true;
}

void LogFeed::start() noexcept {}
void LogFeed::stop() noexcept {}

#endif
