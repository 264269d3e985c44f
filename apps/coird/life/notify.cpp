#include "notify.h"

#include <coir/deadline.h>
#include <coir/program.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string_view>

#include "../complaint.h"
#include "../unix_datagrams.h"

namespace {

constexpr std::uint64_t kLongestMicroseconds = 86'400'000'000;  // a day

constinit int g_socket = -1;
constinit std::chrono::microseconds g_watchdog{0};

// number_of reads a variable that is a whole number; 0: it is absent, or something else.
std::uint64_t number_of(const char* variable) noexcept {
  const char* const text = getenv(variable);
  if (text == nullptr) return 0;
  std::uint64_t number = 0;
  const char* const end = text + strlen(text);
  const auto read = std::from_chars(text, end, number);
  return read.ec == std::errc{} && read.ptr == end ? number : 0;
}

void notify(std::string_view state) noexcept {
  if (g_socket < 0) return;
  if (send(g_socket, state.data(), state.size(), MSG_NOSIGNAL) >= 0) return;
  const coir::Error error = coir::Error::from_errno(errno);
  warn({"NOTIFY_SOCKET: ", state.substr(0, state.find('\n')), ": ", error});
}

}  // namespace

void open_notify() noexcept {
  const char* const name = getenv("NOTIFY_SOCKET");
  if (name == nullptr) return;
  g_socket = connect_datagrams(name);
  if (g_socket < 0) warn({"NOTIFY_SOCKET=", name, ": ", coir::Error::from_errno(errno)});
  // A watchdog may be meant for the process that has started this one.
  const std::uint64_t for_process = number_of("WATCHDOG_PID");
  const std::uint64_t microseconds = number_of("WATCHDOG_USEC");
  const bool wanted =
      g_socket >= 0 && microseconds != 0 && (for_process == 0 || for_process == static_cast<std::uint64_t>(getpid()));
  if (wanted && coir::kFibers) {
    g_watchdog = std::chrono::microseconds(std::min(microseconds, kLongestMicroseconds));
  } else if (wanted) {
    say({"WATCHDOG_USEC: this coird was built without fibers and switches the supervisor's watchdog off"});
    notify("WATCHDOG_USEC=0");
  }
  for (const char* each : {"NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC"}) unsetenv(each);
}

std::chrono::microseconds notify_watchdog() noexcept {
  return g_watchdog;
}

void notify_ready() noexcept {
  notify("READY=1");
}

void notify_reloading() noexcept {
  char text[64];
  notify(coir::format(text, "RELOADING=1\nMONOTONIC_USEC=", coir::monotonic_ns() / 1000));
}

void notify_stopping() noexcept {
  notify("STOPPING=1");
}

void notify_alive() noexcept {
  notify("WATCHDOG=1");
}
