#include "sandbox.h"

#include <coir/config.h>
#include <coir/format.h>
#include <coir/port/landlock.h>
#include <coir/port/seccomp.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <span>
#include <string_view>

#include "complaint.h"

namespace {

struct sigaction g_before;  // the record of how coird ends, if there is one

// on_refused_call tells the call's name and ends coird. It is called in the middle of anything: it only writes.
void on_refused_call(int signal, siginfo_t* info, void* context) noexcept {
  char line[160];
  const char* const name = coir::port::system_call_name(info->si_syscall);
  coir::Formatter out(line);
  out.add("coird: system call ");
  if (name != nullptr) out.add(std::string_view(name), ", number ");
  out.add(info->si_syscall, ", is not allowed; coird ends (--no-sandbox allows all)\n");
  const std::string_view text = out.text();
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
  if ((g_before.sa_flags & SA_SIGINFO) != 0) return g_before.sa_sigaction(signal, info, context);
  ::signal(signal, SIG_DFL);
  raise(signal);
}

bool starts_programs([[maybe_unused]] const Options& options) noexcept {
#if COIRD_MCP
  const auto& mounts = options.mcp.mounts;
  return std::any_of(mounts.texts, mounts.texts + mounts.count,
                     [](std::string_view text) { return !is_web_url(text.substr(text.find('=') + 1)); });
#else
  return false;
#endif
}

bool has_sandbox(const Options& options) noexcept {
  constexpr bool kSanitized = COIR_ASAN || COIR_TSAN;  // a sanitizer calls more, at the end too
  return !kSanitized && !options.no_sandbox && !starts_programs(options);
}

// tell warns of a part of the sandbox that is missing although the kernel has it. There is nothing to tell of a kernel
// without it: the board's has none, and --probe says so.
void tell(const char* what, int error) noexcept {
  if (error == 0 || error == ENOSYS || error == EOPNOTSUPP || error == EINVAL) return;
  warn({"the sandbox is not whole: ", what, ": ", coir::Error::from_errno(error)});
}

}  // namespace

void keep_writes(const Options& options) noexcept {
  if (!has_sandbox(options)) return;
  // Content for FastCGI that is too long to keep lies in /tmp.
  const char* folders[] = {options.state, "/tmp", "/dev", "/sys", options.sysfs, nullptr, nullptr};
  std::size_t count = std::size(folders) - 2;
  static char writable[4096];  // too large for a stack
  if (options.root != nullptr && options.writable != nullptr) {
    folders[count++] = writable;
    coir::Formatter(writable).add(options.root, "/", options.writable, '\0');
  }
  static char of_log[512];
  if (options.log_file != nullptr) {
    const std::string_view path = options.log_file;
    const std::size_t slash = path.rfind('/');
    folders[count++] = of_log;
    coir::Formatter(of_log).add(slash == path.npos ? "." : path.substr(0, std::max<std::size_t>(slash, 1)), '\0');
    // A folder that comes later, with a stick, is allowed by the one in which it will be; all of "/" is too much for it.
    while (char* const end = ::access(of_log, F_OK) != 0 ? strrchr(of_log, '/') : nullptr) *end = '\0';
  }
  tell("files can be written anywhere", coir::port::keep_writes_to(std::span(folders).first(count)));
}

void keep_calls(const Options& options) noexcept {
  if (!has_sandbox(options)) return;
  struct sigaction action{};
  action.sa_sigaction = on_refused_call;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  sigaction(SIGSYS, &action, &g_before);
  tell("all system calls are allowed", coir::port::keep_service_calls());
}
