#include <coir/port/landlock.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace coir::port {
namespace {

// As in linux/landlock.h, which not all headers of kernels have. The numbers are the same on every CPU.
constexpr long kCreateRuleset = 444, kAddRule = 445, kRestrictSelf = 446;
constexpr unsigned kAskVersion = 1;
constexpr int kBelowFolder = 1;

enum : std::uint64_t {
  kExecute = 1 << 0,
  kWriteFile = 1 << 1,
  kRemoveFolder = 1 << 4,
  kMakeCharacterDevice = 1 << 6,
  kMakeFolder = 1 << 7,
  kMakeFile = 1 << 8,
  kMakePipe = 1 << 10,
  kMakeBlockDevice = 1 << 11,
  kMakeLink = 1 << 12,
  kMoveBetweenFolders = 1 << 13,  // since version 2
  kTruncate = 1 << 14,            // since version 3
};

struct Ruleset {
  std::uint64_t denied;
};

struct [[gnu::packed]] FolderRule {
  std::uint64_t allowed;
  std::int32_t folder;
};

// denied_by lists what a kernel's version can deny and a service does outside of its folders by mistake only. Sockets of
// listeners are made and removed anywhere.
std::uint64_t denied_by(long version) noexcept {
  std::uint64_t denied = kExecute | kWriteFile | kRemoveFolder | kMakeCharacterDevice | kMakeFolder | kMakeFile |
                         kMakePipe | kMakeBlockDevice | kMakeLink;
  if (version >= 2) denied |= kMoveBetweenFolders;
  if (version >= 3) denied |= kTruncate;
  return denied;
}

int allow_below(int ruleset, std::uint64_t allowed, const char* folder) noexcept {
  const int fd = open(folder, O_PATH | O_CLOEXEC);
  if (fd < 0) return 0;
  const FolderRule rule = {.allowed = allowed, .folder = fd};
  const int error = syscall(kAddRule, ruleset, kBelowFolder, &rule, 0) == 0 ? 0 : errno;
  close(fd);
  return error;
}

}  // namespace

int keep_writes_to(std::span<const char* const> folders) noexcept {
  const long version = syscall(kCreateRuleset, nullptr, 0, kAskVersion);
  if (version <= 0) return version < 0 ? errno : ENOSYS;
  const Ruleset denied = {denied_by(version)};
  const long ruleset = syscall(kCreateRuleset, &denied, sizeof denied, 0);
  if (ruleset < 0) return errno;
  int error = 0;
  for (const char* const folder : folders) {
    if (error == 0) error = allow_below(static_cast<int>(ruleset), denied.denied & ~kExecute, folder);
  }
  if (error == 0 && (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || syscall(kRestrictSelf, ruleset, 0) != 0))
    error = errno;
  close(static_cast<int>(ruleset));
  return error;
}

}  // namespace coir::port
