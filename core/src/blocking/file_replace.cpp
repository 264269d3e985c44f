#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <coir/atomic.h>
#include <coir/file.h>
#include <coir/format.h>

#include "blocking/file_steps.h"

namespace coir {

namespace {

// Replacement is a file that is about to take the name of another. It goes away unless it has taken it.
class Replacement {
 public:
  explicit Replacement(const char* path) noexcept {
    const char* const slash = strrchr(path, '/');
    name_ = slash != nullptr ? slash + 1 : path;
    folder_length_ = slash == nullptr ? 0 : slash == path ? 1 : static_cast<std::size_t>(slash - path);
    path_ = path;
  }
  ~Replacement() {
    if (file_ >= 0) ::close(file_);
    if (written_name_[0] != '\0') unlinkat(folder_, written_name_, 0);
    if (folder_ >= 0) ::close(folder_);
  }

  std::expected<void, Error> open(std::optional<unsigned> mode) noexcept;
  std::expected<void, Error> take_name() noexcept;
  int file() const noexcept { return file_; }

 private:
  std::expected<void, Error> open_folder() noexcept;
  std::expected<void, Error> create(unsigned mode) noexcept;

  const char* path_;
  const char* name_;  // the part of path_ after its last slash
  std::size_t folder_length_;
  int folder_ = -1;
  int file_ = -1;
  char written_name_[24] = {};
};

// The path lies on a thread's own stack; not inlined, for stack_frames.txt knows it by name.
[[gnu::noinline]] std::expected<void, Error> Replacement::open_folder() noexcept {
  char folder[PATH_MAX];
  if (folder_length_ >= sizeof folder) return std::unexpected(Error::from_errno(ENAMETOOLONG));
  memcpy(folder, path_, folder_length_);
  folder[folder_length_] = '\0';
  folder_ = ::open(folder_length_ != 0 ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder_ < 0) return std::unexpected(Error::from_errno(errno));
  return {};
}

std::expected<void, Error> Replacement::create(unsigned mode) noexcept {
  static constinit SharedAtomic<std::uint64_t> count{0};
  for (int attempt = 0; attempt < 16; ++attempt) {
    // Unlikely to meet another's; O_EXCL finds out.
    const std::uint64_t number = (static_cast<std::uint64_t>(monotonic_ns()) * 0x9e3779b97f4a7c15u) ^
                                 (static_cast<std::uint64_t>(getpid()) << 40) ^
                                 (count.fetch_add(1, std::memory_order_relaxed) << 20);
    char name[sizeof written_name_];
    format(name, ".coir-", hex(number, 16), '\0');
    file_ = openat(folder_, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (file_ >= 0) {
      memcpy(written_name_, name, sizeof name);
      return {};
    }
    if (errno != EEXIST) break;
  }
  return std::unexpected(Error::from_errno(errno));
}

std::expected<void, Error> Replacement::open(std::optional<unsigned> mode) noexcept {
  if (*name_ == '\0') return std::unexpected(Error::from_errno(EISDIR));
  if (auto opened = open_folder(); !opened) return opened;
  struct stat old;
  const bool there = fstatat(folder_, name_, &old, AT_SYMLINK_NOFOLLOW) == 0;
  if (there && S_ISDIR(old.st_mode)) return std::unexpected(Error::from_errno(EISDIR));
  const bool keep = there && S_ISREG(old.st_mode);
  // Nobody reads it before it has the mode it is to have; without one to set, the umask decides.
  if (auto created = create(keep || mode ? 0600 : 0644); !created) return created;
  if (keep && (old.st_uid != geteuid() || old.st_gid != getegid())) {
    [[maybe_unused]] const int ignored = fchown(file_, old.st_uid, old.st_gid);
  }
  if ((keep || mode) && fchmod(file_, mode ? *mode : old.st_mode & 07777) != 0) {
    return std::unexpected(Error::from_errno(errno));
  }
  return {};
}

std::expected<void, Error> Replacement::take_name() noexcept {
  // close first: some file systems tell only then that there was no room.
  if (::close(std::exchange(file_, -1)) != 0 && errno != EINTR) return std::unexpected(Error::from_errno(errno));
  if (renameat(folder_, written_name_, folder_, name_) != 0) return std::unexpected(Error::from_errno(errno));
  written_name_[0] = '\0';
  return sync_file(folder_);
}

}  // namespace

std::expected<void, Error> replace_file(const char* path, std::span<const char> bytes, std::optional<unsigned> mode,
                                        Deadline deadline) noexcept {
  return detail::blocking_for(
      detail::BlockingKind::files,
      [&](const BlockingStop& stop) -> std::expected<void, Error> {
        Replacement replacement(path);
        if (auto opened = replacement.open(mode); !opened) return opened;
        if (auto written = write_pieces(replacement.file(), bytes, stop); !written) return written;
        if (auto synced = sync_file(replacement.file()); !synced) return synced;
        if (stop.wanted()) return std::unexpected(stop.why());
        return replacement.take_name();
      },
      deadline);
}

}  // namespace coir
