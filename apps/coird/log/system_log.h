#pragma once

#include <coir/net/log_line.h>

// SystemLog sends lines to the socket of a syslog daemon, each as a datagram of RFC 3164 with facility "daemon" and its time in
// UTC. It never waits. A daemon that was restarted is connected to again.
class SystemLog {
 public:
  SystemLog() noexcept = default;
  SystemLog(const SystemLog&) = delete;
  SystemLog& operator=(const SystemLog&) = delete;
  ~SystemLog();

  void name(const char* path) noexcept { path_ = path; }

  // send sends a line, of which a text beyond 800 bytes is cut, and returns errno: EAGAIN or ENOBUFS of a daemon that takes
  // none now, another of one that is not there.
  int send(const coir::LogRecord& line) noexcept;
  // tell_lost sends how many lines have been lost.
  int tell_lost(std::uint64_t lost) noexcept;

 private:
  const char* path_ = nullptr;
  int fd_ = -1;
};
