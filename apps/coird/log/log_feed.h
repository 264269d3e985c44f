#pragma once

#include <coir/config.h>

#include "../identity.h"
#include "../options/options.h"

#if !COIR_NO_ASYNC
#include <coir/deadline.h>
#include <coir/fiber.h>

#include "log_file.h"
#include "system_log.h"
#endif

// LogFeed feeds the file of --log-file and the syslog daemon of --syslog from the lines that the log keeps, by a fiber of its
// own: whoever logs never waits for them. While one of them takes nothing, the lines wait among the kept ones and it is tried
// again each second; lines that have gone by then are lost, and a line says how many. A build without fibers refuses both
// options.
class LogFeed {
 public:
  LogFeed() noexcept = default;
  LogFeed(const LogFeed&) = delete;
  LogFeed& operator=(const LogFeed&) = delete;
  ~LogFeed();

  // open opens the file before coird gives up its privileges, and reserves memory. False: a line has said why. A folder
  // that is missing, read-only or full is a warning alone, and the file is opened later.
  [[nodiscard]] bool open(const Options& options, const Identity& identity) noexcept;
  // start begins to feed. From a fiber, as stop, which ends that; the destructor feeds what has come since.
  void start() noexcept;
  void stop() noexcept;

#if !COIR_NO_ASYNC
 private:
  struct Memory;

  void feed() noexcept;
  void feed_once() noexcept;
  bool feed_file() noexcept;
  bool feed_system() noexcept;
  void refused(int error) noexcept;
  bool waits() const noexcept { return file_waits_ || system_waits_; }

  const char* path_ = nullptr;
  bool to_system_ = false;
  Memory* memory_ = nullptr;
  LogFile file_;
  SystemLog system_;
  coir::LogReader from_file_{1}, from_system_{1};  // where each of them goes on
  bool file_waits_ = false, system_waits_ = false;
  coir::Deadline again_ = coir::Deadline::never();
  int error_ = 0;  // of the last write of the file
  int system_error_ = 0;
  std::uint64_t told_lost_ = 0;  // of the lines that the syslog daemon was not sent
  coir::Fiber fiber_;
#endif
};
