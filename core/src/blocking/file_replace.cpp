#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <coir/atomic.h>
#include <coir/file.h>
#include <coir/format.h>

#include "blocking/file_steps.h"

#include <algorithm>
#include <utility>

namespace coir {
namespace {

constexpr std::string_view kTemporary = ".coir-";
constexpr std::size_t kDigits = 16;

}  // namespace

bool FileReplacement::is_temporary(std::string_view name) noexcept {
  return name.size() == kTemporary.size() + kDigits && name.starts_with(kTemporary) &&
         std::ranges::all_of(name.substr(kTemporary.size()),
                             [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool FileReplacement::may_sweep(int folder) noexcept {
  return ::flock(folder, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

// Steps is what a replacement has a thread do that may block.
class FileReplacement::Steps {
 public:
  static std::expected<void, Error> open(FileReplacement& self, const char* path,
                                         std::optional<unsigned> mode) noexcept;
  static std::expected<void, Error> open_at(FileReplacement& self, int folder, std::string_view name,
                                            std::optional<unsigned> mode) noexcept;
  static std::expected<void, Error> open_folder(FileReplacement& self, const char* path) noexcept;
  static std::expected<void, Error> finish(FileReplacement& self, const BlockingStop& stop) noexcept;

 private:
  static std::expected<void, Error> open_temporary(FileReplacement& self, std::optional<unsigned> mode) noexcept;
  static std::expected<void, Error> create(FileReplacement& self, unsigned mode) noexcept;
};

// A long path is walked in pieces, which lie where the name will: one as long as PATH_MAX would be a page of the stack.
std::expected<void, Error> FileReplacement::Steps::open_folder(FileReplacement& self, const char* path) noexcept {
  const char* const slash = strrchr(path, '/');
  const char* const name = slash != nullptr ? slash + 1 : path;
  if (*name == '\0') return std::unexpected(Error::from_errno(EISDIR));
  if (strlen(name) >= sizeof self.name_) return std::unexpected(Error::from_errno(ENAMETOOLONG));
  std::string_view rest = slash == nullptr ? std::string_view(".") : std::string_view(path, slash + 1);
  while (!rest.empty()) {
    // The rest, or as much of it as ends at a slash.
    constexpr std::size_t kMost = sizeof self.name_ - 1;
    const std::size_t end = rest.size() <= kMost ? rest.size() : rest.rfind('/', kMost);
    if (end == rest.npos) return std::unexpected(Error::from_errno(ENAMETOOLONG));
    const std::size_t bytes = std::max(end, std::size_t{1});
    memcpy(self.name_, rest.data(), bytes);
    self.name_[bytes] = '\0';
    rest.remove_prefix(std::min(rest.find_first_not_of('/', bytes), rest.size()));
    const int from = std::exchange(self.folder_, -1);
    self.folder_ =
        openat(from >= 0 ? from : AT_FDCWD, self.name_, (rest.empty() ? O_RDONLY : O_PATH) | O_DIRECTORY | O_CLOEXEC);
    const int error = errno;
    if (from >= 0) ::close(from);
    if (self.folder_ < 0) return std::unexpected(Error::from_errno(error));
  }
  strcpy(self.name_, name);
  return {};
}

std::expected<void, Error> FileReplacement::Steps::create(FileReplacement& self, unsigned mode) noexcept {
  static constinit SharedAtomic<std::uint64_t> count{0};
  for (int attempt = 0; attempt < 16; ++attempt) {
    // A collision is unlikely, and O_EXCL detects it.
    const std::uint64_t number = (static_cast<std::uint64_t>(monotonic_ns()) * 0x9e3779b97f4a7c15u) ^
                                 (static_cast<std::uint64_t>(getpid()) << 40) ^
                                 (count.fetch_add(1, std::memory_order_relaxed) << 20);
    char name[sizeof self.temporary_name_];
    format(name, kTemporary, hex(number, kDigits), '\0');
    self.file_ = openat(self.folder_, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (self.file_ >= 0) {
      memcpy(self.temporary_name_, name, sizeof name);
      return {};
    }
    if (errno != EEXIST) break;
  }
  return std::unexpected(Error::from_errno(errno));
}

std::expected<void, Error> FileReplacement::Steps::open(FileReplacement& self, const char* path,
                                                        std::optional<unsigned> mode) noexcept {
  if (auto opened = open_folder(self, path); !opened) return opened;
  return open_temporary(self, mode);
}

std::expected<void, Error> FileReplacement::Steps::open_at(FileReplacement& self, int folder, std::string_view name,
                                                           std::optional<unsigned> mode) noexcept {
  if (name.empty() || name == "." || name == ".." || name.find('/') != name.npos || name.find('\0') != name.npos) {
    return std::unexpected(Error{ErrorCode::invalid, EINVAL});
  }
  if (name.size() >= sizeof self.name_) return std::unexpected(Error::from_errno(ENAMETOOLONG));
  memcpy(self.name_, name.data(), name.size());
  self.name_[name.size()] = '\0';
  self.folder_ = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (self.folder_ < 0) return std::unexpected(Error::from_errno(errno));
  return open_temporary(self, mode);
}

std::expected<void, Error> FileReplacement::Steps::open_temporary(FileReplacement& self,
                                                                  std::optional<unsigned> mode) noexcept {
  // Keep sweepers out until the folder is closed. A lock that is held for longer than a sweep does not count.
  static_cast<void>(lock_soon(self.folder_, LOCK_SH));
  struct stat old;
  const bool there = fstatat(self.folder_, self.name_, &old, AT_SYMLINK_NOFOLLOW) == 0;
  if (there && S_ISDIR(old.st_mode)) return std::unexpected(Error::from_errno(EISDIR));
  const bool keep = there && S_ISREG(old.st_mode);
  // Keep it unreadable to others until its final mode is set; without a mode to set, the umask decides.
  if (auto created = create(self, keep || mode ? 0600 : 0644); !created) return created;
  if (keep && (old.st_uid != geteuid() || old.st_gid != getegid())) {
    [[maybe_unused]] const int ignored = fchown(self.file_, old.st_uid, old.st_gid);
  }
  if ((keep || mode) && fchmod(self.file_, mode ? *mode : old.st_mode & 07777) != 0) {
    return std::unexpected(Error::from_errno(errno));
  }
  return {};
}

std::expected<void, Error> FileReplacement::Steps::finish(FileReplacement& self, const BlockingStop& stop) noexcept {
  if (auto synced = sync_file(self.file_); !synced) return synced;
  if (stop.wanted()) return std::unexpected(stop.why());
  // Close first: some file systems report a full disk only then.
  if (::close(std::exchange(self.file_, -1)) != 0 && errno != EINTR) return std::unexpected(Error::from_errno(errno));
  if (renameat(self.folder_, self.temporary_name_, self.folder_, self.name_) != 0) {
    return std::unexpected(Error::from_errno(errno));
  }
  self.temporary_name_[0] = '\0';
  return sync_file(self.folder_);
}

FileReplacement& FileReplacement::operator=(FileReplacement&& other) noexcept {
  if (this == &other) return *this;
  abort();
  folder_ = std::exchange(other.folder_, -1);
  file_ = std::exchange(other.file_, -1);
  failed_ = other.failed_;
  memcpy(temporary_name_, other.temporary_name_, sizeof temporary_name_);
  other.temporary_name_[0] = '\0';
  strcpy(name_, other.name_);
  return *this;
}

std::expected<FileReplacement, Error> FileReplacement::begin(const char* path, std::optional<unsigned> mode,
                                                             Deadline deadline) noexcept {
  std::expected<FileReplacement, Error> made;
  const auto opened = detail::blocking_for(
      detail::BlockingKind::files, [&](const BlockingStop&) { return Steps::open(*made, path, mode); }, deadline);
  if (!opened) made = std::unexpected(opened.error());
  return made;
}

std::expected<FileReplacement, Error> FileReplacement::begin_at(int folder, std::string_view name,
                                                                std::optional<unsigned> mode,
                                                                Deadline deadline) noexcept {
  std::expected<FileReplacement, Error> made;
  const auto opened = detail::blocking_for(
      detail::BlockingKind::files, [&](const BlockingStop&) { return Steps::open_at(*made, folder, name, mode); },
      deadline);
  if (!opened) made = std::unexpected(opened.error());
  return made;
}

std::expected<void, Error> FileReplacement::write(std::span<const char> bytes, Deadline deadline) noexcept {
  if (file_ < 0) return std::unexpected(Error{ErrorCode::closed});
  auto written = detail::blocking_for(
      detail::BlockingKind::files, [&](const BlockingStop& stop) { return write_pieces(file_, bytes, stop); },
      deadline);
  if (!written) failed_ = written.error();
  return written;
}

std::expected<void, Error> FileReplacement::date_from(const timespec& changed) noexcept {
  if (file_ < 0) return std::unexpected(Error{ErrorCode::closed});
  const timespec times[2] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT}, changed};
  if (::futimens(file_, times) != 0) return std::unexpected(Error::from_errno(errno));
  return {};
}

std::expected<void, Error> FileReplacement::commit(Deadline deadline) noexcept {
  if (file_ < 0) return std::unexpected(Error{ErrorCode::closed});
  std::expected<void, Error> finished;
  if (failed_.code != ErrorCode{}) {
    finished = std::unexpected(failed_);
  } else {
    finished = detail::blocking_for(
        detail::BlockingKind::files, [&](const BlockingStop& stop) { return Steps::finish(*this, stop); }, deadline);
  }
  abort();
  return finished;
}

void FileReplacement::abort() noexcept {
  if (file_ >= 0) ::close(std::exchange(file_, -1));
  if (temporary_name_[0] != '\0') unlinkat(folder_, temporary_name_, 0);
  temporary_name_[0] = '\0';
  if (folder_ >= 0) ::close(std::exchange(folder_, -1));
}

std::expected<void, Error> replace_file(const char* path, std::span<const char> bytes, std::optional<unsigned> mode,
                                        Deadline deadline) noexcept {
  return detail::blocking_for(
      detail::BlockingKind::files,
      [&](const BlockingStop& stop) -> std::expected<void, Error> {
        FileReplacement next;
        if (auto opened = FileReplacement::Steps::open(next, path, mode); !opened) return opened;
        if (auto written = write_pieces(next.file_, bytes, stop); !written) return written;
        return FileReplacement::Steps::finish(next, stop);
      },
      deadline);
}

std::expected<void, Error> remove_file(const char* path, Deadline deadline) noexcept {
  return detail::blocking_for(
      detail::BlockingKind::files,
      [&](const BlockingStop&) -> std::expected<void, Error> {
        FileReplacement old;
        if (auto opened = FileReplacement::Steps::open_folder(old, path); !opened) return opened;
        if (unlinkat(old.folder_, old.name_, 0) != 0) return std::unexpected(Error::from_errno(errno));
        return sync_file(old.folder_);
      },
      deadline);
}

}  // namespace coir
