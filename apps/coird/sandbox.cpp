#include "sandbox.h"

#include <coir/config.h>
#include <coir/format.h>
#include <coir/port/landlock.h>
#include <coir/port/seccomp.h>
#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <span>
#include <string_view>

#include "complaint.h"
#include "in_folder.h"

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

[[gnu::noinline]] bool is_everything(const char* folder) noexcept {
  struct stat one, all;
  return ::stat(folder, &one) == 0 && ::stat("/", &all) == 0 && one.st_dev == all.st_dev && one.st_ino == all.st_ino;
}

// LogFolders are those in which the log's file can be written: its own. If the file is not there yet, the folder may come with
// a stick: then the nearest one that is there, and the one above, as a mount hides the folder below it and the rule for it. All
// of "/" is too much for that.
struct LogFolders {
  explicit LogFolders(const char* file) noexcept : own(file), above(own) {
    if (::access(file, F_OK) == 0) return;
    while (::access(own.text, F_OK) != 0 && own.text[0] != '\0') own = FolderOf(own.text);
    above = FolderOf(own.text);
    for (FolderOf* each : {&own, &above}) {
      if (is_everything(each->text)) each->text[0] = '\0';
    }
  }
  FolderOf own, above;
};

}  // namespace

void keep_writes(const Options& options) noexcept {
  if (!has_sandbox(options)) return;
  // Content for FastCGI that is too long to keep lies in /tmp.
  const char* folders[] = {options.state, "/tmp", "/dev", "/sys", options.sysfs, nullptr, nullptr, nullptr};
  std::size_t count = std::size(folders) - 3;
  static char writable[4096];  // too large for a stack
  if (options.root != nullptr && options.writable != nullptr) {
    folders[count++] = writable;
    coir::Formatter(writable).add(options.root, "/", options.writable, '\0');
  }
  std::optional<LogFolders> of_log;
  if (options.log_file != nullptr) {
    of_log.emplace(options.log_file);
    folders[count++] = of_log->own.text;
    folders[count++] = of_log->above.text;
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
