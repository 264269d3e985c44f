#include "control.h"

#include <coir/config.h>
#include <coir/deadline.h>
#include <coir/format.h>
#include <coir/program.h>
#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <iterator>

#include "fetch_options.h"
#include "output.h"

const std::string_view control_help =
    "usage: coirctl VERB [OPTION]...\n"
    "\n"
    "Asks a coird that runs with --control, as root or as coird's own user.\n"
    "\n"
    "  status       whether it runs, since when, and with how much to do\n"
    "  connections  how many connections and requests there are, and their limits\n"
    "  memory       the memory accounts\n"
    "  fibers       up to 64 fibers, and the event that each waits for\n"
    "  log          the latest lines of the log\n"
    "  reload       reads the configuration again, as SIGHUP does; status 1 if the old one stays\n"
    "  drain        accepts nothing more, lets requests end and ends coird, as SIGTERM does; returns at once\n"
    "  stop         the same, and waits until coird has ended\n"
    "\n"
    "      --socket PATH       the path of coird's --control (default: /run/coird.sock)\n"
    "      --json              one JSON object, whose member \"schema\" is 1\n"
    "      --timeout SECONDS   for the answer (default: 5; of reload 60)\n"
    "\n"
    "The exit status: 0, coird runs and has done so; 1, coird refuses; 2, the command line; 3, coird does not\n"
    "run; 4, that is unknown: not permitted, no answer, or another version.\n";

namespace {

// Exit statuses of systemctl.
enum : int { kHasDone, kRefused, kNotRunning = 3, kUnknown };

constexpr std::string_view kVerbs[] = {"status", "connections", "memory", "fibers", "log", "reload", "drain", "stop"};
constexpr std::string_view kHead = "coird ";
constexpr std::string_view kGreeting = "coird 1 ";

int fail(int status, const ControlOptions& options, std::string_view why) noexcept {
  say_error(options.socket, why);
  return status;
}

int open_socket(const ControlOptions& options) noexcept {
  sockaddr_un at{.sun_family = AF_UNIX, .sun_path = {}};
  if (strlen(options.socket) >= sizeof at.sun_path) {
    errno = ENAMETOOLONG;
    return -1;
  }
  strcpy(at.sun_path, options.socket);
  // A coird that hangs accepts nothing: without O_NONBLOCK a full backlog would hold this up.
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0 || ::connect(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0) return fd;
  const int error = errno;
  ::close(fd);
  errno = error;
  return -1;
}

int cannot_connect(const ControlOptions& options) noexcept {
  char why[160];
  switch (errno) {
    case ENOENT:
      return fail(kNotRunning, options,
                  "coird does not run, or without --control PATH: start it, or name its --socket");
    case ECONNREFUSED:
      return fail(kNotRunning, options,
                  "coird has ended and left its socket: start it (coirctl crashes tells why it ended)");
    case EACCES:
    case EPERM:
      return fail(kUnknown, options, "not permitted: run coirctl as root or as coird's own user");
    case EAGAIN:
      return fail(kUnknown, options, "coird hangs, or others ask: its queue is full; try again, or restart it");
    default:
      return fail(kUnknown, options, coir::format(why, coir::Error::from_errno(errno), ": name its --socket"));
  }
}

// read_some waits for more, at most until `deadline`. Its result is that of read(2); -1 with ETIMEDOUT: nothing came.
ssize_t read_some(int fd, char* into, std::size_t size, coir::Deadline deadline) noexcept {
  for (;;) {
    const ssize_t got = ::read(fd, into, size);
    if (got >= 0 || (errno != EAGAIN && errno != EINTR)) return got;
    pollfd waits{.fd = fd, .events = POLLIN, .revents = 0};
    if (::poll(&waits, 1, deadline.remaining_ms()) == 0) {
      errno = ETIMEDOUT;
      return -1;
    }
  }
}

// The answer, with its first line; and the same with each byte escaped.
char g_answer[32 * 1024];
char g_visible[sizeof g_answer * 4];

}  // namespace

bool is_control_verb(std::string_view verb) noexcept {
  return std::ranges::find(kVerbs, verb) != std::end(kVerbs);
}

bool ControlOptions::read(std::string_view of, int count, char** words) noexcept {
  verb = of;
  for (int i = 0; i < count; ++i) {
    const std::string_view word = words[i];
    if (word == "--json") {
      json = true;
    } else if (word == "--socket" || word == "--timeout") {
      if (i + 1 == count) return refuse(word, "a value is missing");
      const std::string_view value = words[++i];
      if (word == "--socket") {
        socket = words[i];
        continue;
      }
      const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), timeout_s);
      if (error != std::errc() || end != value.data() + value.size() || timeout_s < 1 || timeout_s > 86'400)
        return refuse(value, "--timeout takes 1 to 86400 seconds");
    } else {
      return refuse(word, "no such option (coirctl status --help tells)");
    }
  }
  return true;
}

int control(const ControlOptions& options) noexcept {
  const int fd = open_socket(options);
  if (fd < 0) return cannot_connect(options);
  char request[64], why[256];
  const int timeout_s = options.timeout_s != 0 ? options.timeout_s : options.verb == "reload" ? 60 : 5;
  const auto deadline = coir::Deadline::after(std::chrono::seconds(timeout_s));
  const std::string_view line = coir::format(request, "1 ", options.verb, options.json ? " json\n" : " text\n");
  // A refusal may be there before the request is.
  static_cast<void>(::send(fd, line.data(), line.size(), MSG_NOSIGNAL));
  std::size_t size = 0;
  bool answered = false;  // the first line is there
  while (size < sizeof g_answer) {
    // The end of the connection is that of coird.
    const bool waits_for_end = answered && options.verb == "stop";
    const ssize_t got =
        read_some(fd, g_answer + size, sizeof g_answer - size, waits_for_end ? coir::Deadline::never() : deadline);
    if (got == 0 || (got < 0 && errno == ECONNRESET && answered)) break;
    if (got < 0) {
      return fail(
          kUnknown, options,
          errno == ETIMEDOUT
              ? coir::format(why, "coird hangs: no answer in ", timeout_s, " s; try again, or restart it")
              : coir::format(why, "the connection broke off (", coir::Error::from_errno(errno), "); try again"));
    }
    size += static_cast<std::size_t>(got);
    answered = answered || memchr(g_answer, '\n', size) != nullptr;
  }
  ::close(fd);
  std::string_view text(g_answer, size);
  if (!answered) return fail(kUnknown, options, "coird has closed the connection without an answer; try again");
  const std::string_view head = text.substr(0, text.find('\n'));
  text.remove_prefix(head.size() + 1);
  coir::Formatter out(g_visible);
  if (!head.starts_with(kGreeting)) {
    add_visible(out, head.starts_with(kHead) ? head.substr(0, 64) : "no coird");
    return fail(kUnknown, options,
                coir::format(why, "another version answers there (", out.text(),
                             "): take coirctl " COIR_VERSION "'s own coird"));
  }
  std::string_view result = head.substr(kGreeting.size());
  result.remove_prefix(std::min(result.find(' ') + 1, result.size()));
  if (result != "ok") {
    if (result.starts_with("error ")) result.remove_prefix(6);
    add_visible(out, result);
    return fail(result.starts_with("not permitted") ? kUnknown : kRefused, options, out.text());
  }
  if (options.json) {
    write_text(text.empty() ? std::string_view("{\"schema\":1}\n") : text);
  } else {
    add_visible(out, text, true);
    write_text(out.text());
  }
  if (all_written()) return kHasDone;
  return fail(kRefused, options, "standard output cannot be written");
}
