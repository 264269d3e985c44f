#include "notify.h"

#include <coir/deadline.h>
#include <coir/program.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string_view>

#include "../complaint.h"

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

// connect_to connects a socket to "/path" or, in the abstract namespace, "@name". Returns it, or -1 with errno.
int connect_to(std::string_view name) noexcept {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  errno = EAFNOSUPPORT;
  if ((!name.starts_with('/') && !name.starts_with('@')) || name.size() >= sizeof address.sun_path) return -1;
  memcpy(address.sun_path, name.data(), name.size());
  if (name.front() == '@') address.sun_path[0] = '\0';
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  if (fd < 0 || connect(fd, reinterpret_cast<const sockaddr*>(&address), bytes) == 0) return fd;
  const int error = errno;
  close(fd);
  errno = error;
  return -1;
}

void notify(std::string_view state) noexcept {
  if (g_socket < 0) return;
  if (send(g_socket, state.data(), state.size(), MSG_NOSIGNAL) >= 0) return;
  const coir::Error error = coir::Error::from_errno(errno);
  say({"NOTIFY_SOCKET: ", state.substr(0, state.find('\n')), ": ", error});
}

}  // namespace

void open_notify() noexcept {
  const char* const name = getenv("NOTIFY_SOCKET");
  if (name == nullptr) return;
  g_socket = connect_to(name);
  if (g_socket < 0) say({"NOTIFY_SOCKET=", name, ": ", coir::Error::from_errno(errno)});
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
