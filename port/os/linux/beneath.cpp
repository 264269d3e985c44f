#include <coir/port/atomic.h>
#include <coir/port/beneath.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <charconv>
#include <cstdint>
#include <string_view>

namespace coir::port {
namespace {

constexpr int kReadFlags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
constexpr int kWriteFlags = O_WRONLY | O_TRUNC | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
// Finds what a name stands for without opening it: to open a FIFO or a device may set something off.
constexpr int kFindFlags = O_PATH | O_CLOEXEC;

// As in <linux/openat2.h>, which older kernel headers lack.
struct OpenHow {
  std::uint64_t flags;
  std::uint64_t mode;
  std::uint64_t resolve;
};
constexpr std::uint64_t kResolveNoMagicLinks = 0x02;
constexpr std::uint64_t kResolveBeneath = 0x08;
constexpr long kOpenat2 = 437;  // on every architecture

constinit SharedAtomic<bool> openat2_missing{false};

// Directories is the way down from the root: ".." in a link goes back up it, never by asking the file system.
class Directories {
 public:
  explicit Directories(int root) noexcept : root_(root) {}
  ~Directories() {
    while (depth_ > 0) ::close(open_[--depth_]);
  }
  int current() const noexcept { return depth_ == 0 ? root_ : open_[depth_ - 1]; }
  bool enter(int directory) noexcept {
    if (depth_ == kMost) return false;
    open_[depth_++] = directory;
    return true;
  }
  bool leave() noexcept {
    if (depth_ == 0) return false;
    ::close(open_[--depth_]);
    return true;
  }

 private:
  static constexpr int kMost = 32;
  int root_;
  int depth_ = 0;
  int open_[kMost];
};

// open_found opens, by those flags, what `found` is a name of, and closes `found`. Directories are returned as they are, and
// what is neither a directory nor a regular file is not there. `again` opens it by its path once more, where there is
// no /proc to open it by: then it has to be the same file still.
template <class Again>
int open_found(int found, int flags, Again again) noexcept {
  struct stat before, after;
  int outcome = ::fstat(found, &before) != 0 ? -errno : 0;
  if (outcome == 0 && !S_ISREG(before.st_mode) && !S_ISDIR(before.st_mode)) outcome = -ENOENT;
  if (outcome != 0) {
    ::close(found);
    return outcome;
  }
  if (S_ISDIR(before.st_mode)) return found;
  constexpr std::string_view kPrefix = "/proc/self/fd/";
  char link[kPrefix.size() + 12] = {};
  memcpy(link, kPrefix.data(), kPrefix.size());
  std::to_chars(link + kPrefix.size(), link + sizeof link - 1, found);
  int fd = ::open(link, flags);
  outcome = fd < 0 ? -errno : fd;
  ::close(found);
  if (outcome != -ENOENT && outcome != -ENOTDIR) return outcome;
  fd = again();
  if (fd < 0) return -errno;
  if (::fstat(fd, &after) == 0 && after.st_dev == before.st_dev && after.st_ino == before.st_ino) return fd;
  ::close(fd);
  return -ENOENT;
}

int walk(int root, const char* relative, std::span<char> work, int flags) noexcept;

// Not inlined for the sake of errno, as in net/src/socket/kernel.h.
[[gnu::noinline]] int open_by(int root, const char* relative, std::span<char> work, int flags) noexcept {
  if (!openat2_missing.load(std::memory_order_relaxed)) {
    OpenHow how = {.flags = kFindFlags, .mode = 0, .resolve = kResolveBeneath | kResolveNoMagicLinks};
    for (int tries = 0; tries < 8; ++tries) {
      const long fd = ::syscall(kOpenat2, root, relative, &how, sizeof how);
      if (fd >= 0) {
        how.flags = static_cast<std::uint64_t>(flags);
        return open_found(static_cast<int>(fd), flags, [&]() noexcept {
          return static_cast<int>(::syscall(kOpenat2, root, relative, &how, sizeof how));
        });
      }
      // EAGAIN: something was renamed while ".." of a link was resolved.
      if (errno == EINTR || errno == EAGAIN) continue;
      // Some sandboxes answer EPERM to system calls that they do not know; open(2) itself hardly ever does.
      if (errno != ENOSYS && errno != EPERM) return -errno;
      if (errno == ENOSYS) openat2_missing.store(true, std::memory_order_relaxed);
      break;
    }
  }
  return walk(root, relative, work, flags);
}

int walk(int root, const char* relative, std::span<char> work, int flags) noexcept {
  constexpr int kMostLinks = 8;
  constexpr std::size_t kMostName = 255;
  Directories directories(root);
  std::string_view rest = relative;
  for (int links = 0;;) {
    while (rest.starts_with('/')) rest.remove_prefix(1);
    const std::size_t slash = rest.find('/');
    const std::string_view part = rest.substr(0, slash);
    std::string_view after = rest.substr(slash == rest.npos ? rest.size() : slash + 1);
    while (after.starts_with('/')) after.remove_prefix(1);
    if (part == "..") {
      if (!directories.leave()) return -EXDEV;
      rest = after.empty() ? std::string_view(".") : after;
      continue;
    }
    if (part.size() > kMostName) return -ENAMETOOLONG;
    char name[kMostName + 1];
    memcpy(name, part.data(), part.size());
    name[part.size()] = '\0';
    if (part.empty() || part == ".") {
      if (!after.empty()) {
        rest = after;
        continue;
      }
      const int fd = ::openat(directories.current(), ".", kFindFlags | O_DIRECTORY);
      return fd < 0 ? -errno : fd;
    }
    if (after.empty()) {
      const int fd = ::openat(directories.current(), name, kFindFlags | O_NOFOLLOW);
      if (fd < 0) return -errno;
      struct stat info;
      // If it cannot be looked at, open_found tells.
      if (::fstat(fd, &info) != 0 || !S_ISLNK(info.st_mode)) {
        return open_found(fd, flags,
                          [&]() noexcept { return ::openat(directories.current(), name, flags | O_NOFOLLOW); });
      }
      // A link in the last place is read below.
      ::close(fd);
    } else {
      const int fd = ::openat(directories.current(), name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
      if (fd >= 0) {
        if (!directories.enter(fd)) {
          ::close(fd);
          return -ENAMETOOLONG;
        }
        rest = after;
        continue;
      }
      if (errno != ENOTDIR && errno != ELOOP) return -errno;
    }
    if (++links > kMostLinks) return -ELOOP;
    // The rest of the path moves to the end of the memory, the link's target in front of it.
    if (after.size() + 2 > work.size()) return -ENAMETOOLONG;
    char* const tail = work.data() + work.size() - after.size();
    memmove(tail, after.data(), after.size());
    const std::size_t room = work.size() - after.size() - 1;
    const ssize_t size = ::readlinkat(directories.current(), name, work.data(), room);
    if (size < 0) return errno == EINVAL ? -ENOTDIR : -errno;
    if (static_cast<std::size_t>(size) == room) return -ENAMETOOLONG;
    if (size > 0 && work[0] == '/') return -EXDEV;
    char* const joint = work.data() + size;
    *joint = '/';
    memmove(joint + 1, tail, after.size());
    rest = {work.data(), static_cast<std::size_t>(size) + (after.empty() ? 0 : 1 + after.size())};
  }
}

}  // namespace

int open_beneath(int root, const char* relative, std::span<char> work) noexcept {
  return open_by(root, relative, work, kReadFlags);
}

int open_beneath_to_write(int root, const char* relative, std::span<char> work) noexcept {
  return open_by(root, relative, work, kWriteFlags);
}

int walk_beneath(int root, const char* relative, std::span<char> work) noexcept {
  return walk(root, relative, work, kReadFlags);
}

}  // namespace coir::port
