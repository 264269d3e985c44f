#pragma once

#include <coir/deadline.h>
#include <coir/tcp.h>

#include <string_view>

#include "control.h"

// Exit statuses of systemctl.
enum ControlStatus : int { kHasDone, kRefused, kNotRunning = 3, kUnknown };

// Asking asks a running coird, one request after the other, each on a connection of its own.
//
//   Asking asking(options);
//   std::string_view text;
//   if (const int status = asking.ask("status text", text); status != kHasDone) return status;
//
// Each call that fails returns another status than kHasDone, and one line on standard error has said why.
class Asking {
 public:
  explicit Asking(const ControlOptions& options) noexcept : options_(options) {}

  // connect makes the connection. begin does so, too, sends a request and reads the answer's first line.
  int connect() noexcept;
  int begin(std::string_view request) noexcept;
  // next is the next part of the answer, valid until the next call; empty: its end.
  int next(std::string_view& part) noexcept;
  // rest is all of the answer that is left, valid until the next begin.
  int rest(std::string_view& text) noexcept;
  int ask(std::string_view request, std::string_view& text) noexcept;
  // await_end returns once coird, which has taken "stop text", has closed the connection. It waits until the deadline of
  // --timeout, or else for the time that coird lets requests end, and some seconds more.
  int await_end() noexcept;

  // fail says why a request has failed, and returns `status`.
  int fail(int status, std::string_view why) const noexcept;
  const coir::TcpStream& stream() const noexcept { return stream_; }

 private:
  int read_more(coir::Deadline deadline, bool& ended) noexcept;

  const ControlOptions& options_;
  coir::TcpStream stream_;
  coir::Deadline deadline_ = coir::Deadline::never();
  std::size_t taken_ = 0;  // of the answer's bytes
  std::size_t size_ = 0;
};
