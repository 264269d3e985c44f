// coirctl check. Declared in control.h.
#include <coir/error.h>
#include <coir/format.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "asking.h"
#include "fetch_options.h"
#include "output.h"

namespace {

constexpr std::size_t kMostWords = 512;

char g_command[32 * 1024];  // the command line of coird
char* g_words[kMostWords + 2];
char g_said[16 * 1024];

// read_file fills `into` and returns how many bytes the file has; -1: it cannot be read, or is longer.
ssize_t read_file(const char* path, std::span<char> into) noexcept {
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  std::size_t size = 0;
  ssize_t got = 0;
  while (size < into.size() && (got = ::read(fd, into.data() + size, into.size() - size)) > 0)
    size += static_cast<std::size_t>(got);
  ::close(fd);
  return got < 0 || size == into.size() ? -1 : static_cast<ssize_t>(size);
}

// read_command reads the command line of a process into g_words, with --check behind it.
bool read_command(std::uint64_t process) noexcept {
  static char check[] = "--check";
  char path[64];
  coir::format(path, "/proc/", process, "/cmdline", '\0');
  const ssize_t size = read_file(path, g_command);
  if (size <= 0 || g_command[size - 1] != '\0') return false;
  std::size_t count = 0;
  for (char* at = g_command; at < g_command + size; at += std::string_view(at).size() + 1) {
    if (count == kMostWords) return false;
    g_words[count++] = at;
  }
  g_words[count] = check;
  return true;
}

// run_check is the child: the program that coird runs, from coird's own folder.
[[noreturn]] void run_check(std::uint64_t process, int said) noexcept {
  char folder[64], program[64];
  coir::format(folder, "/proc/", process, "/cwd", '\0');
  coir::format(program, "/proc/", process, "/exe", '\0');
  if (said >= 0) {
    ::dup2(said, STDOUT_FILENO);
    ::dup2(said, STDERR_FILENO);
  }
  if (::chdir(folder) == 0) ::execv(program, g_words);
  ::_exit(126);
}

void print_json(bool valid, std::string_view lines) noexcept {
  static char room[sizeof g_said * 6 + 64];
  coir::Formatter out(room);
  out.add("{\"schema\":1,\"valid\":", valid, ",\"lines\":[");
  for (bool first = true; !lines.empty(); first = false) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(line.size() + 1, lines.size()));
    out.add(first ? "" : ",", coir::json_quoted(line));
  }
  write_text(out.add("]}\n").text());
}

}  // namespace

// coird itself could not: once it serves, it may neither start a program nor read all that root may. So its own program is
// started with its own words, and --check.
int check_configuration(const ControlOptions& options) noexcept {
  Asking asking(options);
  if (const int status = asking.connect(); status != kHasDone) return status;
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(asking.stream().fd(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.pid <= 0)
    return asking.fail(kUnknown, "coird's process is not to be seen from here: run coirctl in the same container");
  const auto process = static_cast<std::uint64_t>(peer.pid);
  char program[64];
  coir::format(program, "/proc/", process, "/exe", '\0');
  if (::access(program, X_OK) != 0 || !read_command(process))
    return asking.fail(kUnknown, "not permitted: run coirctl check as root");
  int ends[2] = {-1, -1};
  if (options.json && ::pipe2(ends, O_CLOEXEC) != 0)
    return asking.fail(kUnknown, describe(coir::Error::from_errno(errno)));
  const pid_t child = ::fork();
  if (child == 0) {
    // The program and its words are the peer's choice: they get no more rights than it had when it began to listen.
    if (::geteuid() == 0 && (::setgroups(0, nullptr) != 0 || ::setgid(peer.gid) != 0 || ::setuid(peer.uid) != 0))
      ::_exit(126);
    run_check(process, ends[1]);
  }
  if (child < 0) return asking.fail(kUnknown, describe(coir::Error::from_errno(errno)));
  std::size_t said = 0;
  if (options.json) {
    ::close(ends[1]);
    char over[256];
    for (;;) {
      const bool full = said == sizeof g_said;
      const ssize_t got =
          full ? ::read(ends[0], over, sizeof over) : ::read(ends[0], g_said + said, sizeof g_said - said);
      if (got <= 0) break;
      if (!full) said += static_cast<std::size_t>(got);
    }
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) == 126)
    return asking.fail(kUnknown, "coird's program cannot be started");
  const bool valid = WEXITSTATUS(status) == 0;
  if (options.json) print_json(valid, {g_said, said});
  return valid ? kHasDone : kRefused;
}
