// coirctl check. Declared in control.h.
#include <coir/error.h>
#include <coir/format.h>
#include <coir/http/wire/query.h>
#include <coir/port/capabilities.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>

#include "asking.h"
#include "fetch_options.h"
#include "output.h"

namespace {

constexpr std::size_t kMostWords = 512;

char g_command[32 * 1024];  // the command line of coird
char* g_words[kMostWords + 1];
char g_said[16 * 1024];
char g_shown[sizeof g_said * 6 + 64];  // with each byte escaped

// read_file fills `into` and returns how many bytes the file has; -1: it cannot be read, or is longer.
ssize_t read_file(int folder, const char* name, std::span<char> into) noexcept {
  const int fd = ::openat(folder, name, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  std::size_t size = 0;
  ssize_t got = 0;
  while (size < into.size() && (got = ::read(fd, into.data() + size, into.size() - size)) > 0)
    size += static_cast<std::size_t>(got);
  ::close(fd);
  return got < 0 || size == into.size() ? -1 : static_cast<ssize_t>(size);
}

// Running is the process of coird. Its members are of one process: /proc/PID, once it is open, is never that of another one.
struct Running {
  int folder = -1;   // where it runs
  int program = -1;  // that it runs
  uid_t user = 0;
  gid_t group = 0;
  std::uint64_t capabilities = 0;
};

// read_id reads the effective one of the four of a line of /proc/PID/status.
bool read_id(std::string_view status, std::string_view line, unsigned& id) noexcept {
  std::size_t at = status.find(line);
  if (at == status.npos) return false;
  at = status.find('\t', at + line.size());
  if (at == status.npos) return false;
  const std::string_view number = status.substr(at + 1, status.find('\t', at + 1) - at - 1);
  const auto value = coir::http::parse_integer(number);
  if (!value || *value < 0 || *value > UINT32_MAX) return false;
  id = static_cast<unsigned>(*value);
  return true;
}

// read_capabilities reads those that a process may use, of /proc/PID/status.
bool read_capabilities(std::string_view status, std::uint64_t& capabilities) noexcept {
  constexpr std::string_view kLine = "\nCapPrm:\t";
  const std::size_t at = status.find(kLine);
  if (at == status.npos) return false;
  const char* const number = status.data() + at + kLine.size();
  return std::from_chars(number, status.data() + status.size(), capabilities, 16).ec == std::errc{};
}

// read_command reads the command line of a process into g_words. A compromised coird may have changed its own: --check
// comes first, where no word can take it for its value, and the name is that of coird, as the program has others.
bool read_command(int process) noexcept {
  static char name[] = "coird", check[] = "--check";
  const ssize_t size = read_file(process, "cmdline", g_command);
  if (size <= 0 || g_command[size - 1] != '\0') return false;
  std::size_t count = 0;
  g_words[count++] = name;
  g_words[count++] = check;
  const std::string_view own = g_command;
  for (char* at = g_command + own.size() + 1; at < g_command + size; at += std::string_view(at).size() + 1) {
    if (count == kMostWords) return false;
    g_words[count++] = at;
  }
  g_words[count] = nullptr;
  return true;
}

bool find_running(pid_t number, Running& running) noexcept {
  char path[64];
  static char status[4096];
  coir::format(path, "/proc/", number, '\0');
  const int process = ::open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (process < 0) return false;
  running.folder = ::openat(process, "cwd", O_PATH | O_DIRECTORY | O_CLOEXEC);
  running.program = ::openat(process, "exe", O_PATH | O_CLOEXEC);
  const ssize_t size = read_file(process, "status", status);
  const std::string_view text(status, size > 0 ? static_cast<std::size_t>(size) : 0);
  const bool good = running.folder >= 0 && running.program >= 0 && read_id(text, "\nUid:", running.user) &&
                    read_id(text, "\nGid:", running.group) && read_capabilities(text, running.capabilities) &&
                    read_command(process);
  ::close(process);
  return good;
}

// run_check is the child: the program that coird runs, from coird's own folder.
//
// A compromised process chooses its program, its words and the files that they name, so that care with the words does not
// suffice: before it starts the program, the child takes the user and the group of that process, and of root's capabilities
// only those that it has. Those of the socket's peer would be root's, which coird had when it began to listen. The child has
// no descriptor of coirctl's terminal, and a session of its own: it can neither read there nor type (TIOCSTI), and its lines
// are escaped.
[[noreturn]] void run_check(const Running& running, int said) noexcept {
  ::close(STDIN_FILENO);
  ::dup2(said, STDOUT_FILENO);
  ::dup2(said, STDERR_FILENO);
  const bool drops = ::geteuid() == 0;
  if (::setsid() >= 0 && ::fchdir(running.folder) == 0 &&
      (!drops || (::setgroups(0, nullptr) == 0 && ::setgid(running.group) == 0 && ::setuid(running.user) == 0)) &&
      (::geteuid() != 0 || coir::port::keep_capabilities(running.capabilities) == 0))
    ::fexecve(running.program, g_words, environ);
  ::_exit(126);
}

void print_json(bool valid, std::string_view lines) noexcept {
  coir::Formatter out(g_shown);
  out.add("{\"schema\":1,\"valid\":", valid, ",\"lines\":[");
  for (bool first = true; !lines.empty(); first = false) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(line.size() + 1, lines.size()));
    out.add(first ? "" : ",", coir::json_quoted(line));
  }
  write_text(out.add("]}\n").text());
}

void print_lines(bool valid, std::string_view lines) noexcept {
  const std::string_view text = coir::format(g_shown, coir::escaped_lines(lines));
  if (valid) return write_text(text);
  static_cast<void>(!::write(STDERR_FILENO, text.data(), text.size()));
}

}  // namespace

// coird itself could not: once it serves, it may start no program. So its own program is started with its own words, and
// --check.
int check_configuration(const ControlOptions& options) noexcept {
  Asking asking(options);
  if (const int status = asking.connect(); status != kHasDone) return status;
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(asking.stream().fd(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.pid <= 0)
    return asking.fail(kUnknown, "coird's process is not to be seen from here: run coirctl in the same container");
  Running running;
  if (!find_running(peer.pid, running)) return asking.fail(kUnknown, "not permitted: run coirctl check as root");
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) return asking.fail(kUnknown, describe(coir::Error::from_errno(errno)));
  const pid_t child = ::fork();
  if (child == 0) run_check(running, ends[1]);
  if (child < 0) return asking.fail(kUnknown, describe(coir::Error::from_errno(errno)));
  std::size_t said = 0;
  ::close(ends[1]);
  char over[256];
  for (;;) {
    const bool full = said == sizeof g_said;
    const ssize_t got =
        full ? ::read(ends[0], over, sizeof over) : ::read(ends[0], g_said + said, sizeof g_said - said);
    if (got <= 0) break;
    if (!full) said += static_cast<std::size_t>(got);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) == 126)
    return asking.fail(kUnknown, "coird's program cannot be started");
  const bool valid = WEXITSTATUS(status) == 0;
  options.json ? print_json(valid, {g_said, said}) : print_lines(valid, {g_said, said});
  return valid ? kHasDone : kRefused;
}
