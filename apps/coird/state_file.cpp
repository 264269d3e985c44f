#include "state_file.h"

#include <coir/blocking.h>
#include <coir/file.h>
#include <coir/sum.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "complaint.h"
#include "identity.h"
#include "in_folder.h"

namespace {

constexpr mode_t kHeld = S_ISVTX;
bool is_held(const struct stat& folder) noexcept {
  return S_ISDIR(folder.st_mode) && folder.st_uid == ::geteuid() && (folder.st_mode & (kHeld | 022)) == kHeld;
}

// give gives a held folder to whom coird becomes: returns 0, or errno. If it is cut off before the folder has its owner, the
// folder is still held.
int give(const char* folder, const Identity& owner) noexcept {
  const coir::File made(::open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat status;
  if (!made.is_open() || ::fstat(made.fd(), &status) != 0) return errno;
  // Another folder, or a file system that keeps no marks.
  if (!is_held(status)) return owner.changes ? EPERM : 0;
  if (owner.changes && ::fchown(made.fd(), owner.user, owner.group) != 0) return errno;
  return ::fchmod(made.fd(), status.st_mode & 07777 & ~kHeld) == 0 ? 0 : errno;
}

}  // namespace

bool is_held(const char* folder) noexcept {
  struct stat status;
  return ::lstat(folder, &status) == 0 && is_held(status);
}

void make_state_folder(const Options& options, bool good) noexcept {
  // The next option, rather, where the name is missing.
  if (!good && options.state[0] == '-') return;
  struct stat status;
  const bool there = ::lstat(options.state, &status) == 0;
  if (there && !is_held(status)) return;
  Identity owner;
  const bool known = good && find_owner(options, owner) == nullptr;
  if (!there && ::mkdir(options.state, 0755 | kHeld) != 0) return;
  // A folder that was made for somebody else would be useless for good.
  if (const int error = known ? give(options.state, owner) : 0; error != 0)
    warn({options.state, ": not owned by the user of --user: ", coir::Error::from_errno(error)});
  if (there) return;
  // Else a loss of power could take the folder, with all that was written there.
  auto parent = coir::File::open(InFolder(options.state, "..").text);
  if (parent) static_cast<void>(parent->sync());
}

void remove_leftovers(const char* folder) noexcept {
  DIR* const entries = ::opendir(folder);
  if (entries == nullptr) return;
  const bool may_sweep = coir::FileReplacement::may_sweep(::dirfd(entries));
  while (const dirent* const each = may_sweep ? ::readdir(entries) : nullptr) {
    if (coir::FileReplacement::is_temporary(each->d_name)) ::unlinkat(::dirfd(entries), each->d_name, 0);
  }
  ::closedir(entries);
}

std::expected<coir::File, coir::Error> open_state(const char* path, int access) noexcept {
  return coir::blocking_borrowed([&](const coir::BlockingStop&) noexcept -> std::expected<coir::File, coir::Error> {
    const coir::UnsharedFile opened = coir::open_unshared(path, access | O_NONBLOCK | O_NOCTTY, 0);
    if (opened.error != 0) return std::unexpected(coir::Error::from_errno(opened.error));
    return coir::File(opened.fd);
  });
}

std::optional<std::string_view> read_state(const char* path, std::span<char> room, std::size_t bare) noexcept {
  const auto file = open_state(path);
  if (!file && file.error() == coir::ErrorCode::not_found) return std::nullopt;
  const auto size = file ? file->read_all(room) : std::unexpected(file.error());
  if (!size && size.error() != coir::ErrorCode::limit) return warn({path, ": ", describe(size.error())}), std::nullopt;
  if (bare != 0 && size == bare) return std::string_view(room.data(), bare);
  const auto content = size ? coir::whole_text({room.data(), *size}) : std::nullopt;
  if (!content) warn({path, ": damaged, and left out"});
  return content;
}

std::expected<void, coir::Error> write_state(const char* path, std::span<const char> content,
                                             std::optional<timespec> date, std::string_view end) noexcept {
  char line[coir::kSumLineBytes];
  auto next = coir::FileReplacement::begin(path, 0600);
  if (!next) return std::unexpected(next.error());
  // A write that fails has commit fail.
  static_cast<void>(next->write(content));
  static_cast<void>(next->write(end));
  static_cast<void>(next->write(coir::sum_line(coir::sum_of(end, coir::sum_of(content)), line)));
  if (date) static_cast<void>(next->date_from(*date));
  return next->commit();
}

std::expected<void, coir::Error> rewrite_state(const char* path, std::string_view content) noexcept {
  char line[coir::kSumLineBytes];
  const std::string_view end = coir::sum_line(coir::sum_of(content), line);
  auto file = open_state(path, O_WRONLY);
  if (!file) return std::unexpected(file.error());
  if (auto written = file->write_all(content); !written) return written;
  if (auto written = file->write_all(end); !written) return written;
  if (::ftruncate(file->fd(), static_cast<off_t>(content.size() + end.size())) != 0)
    return std::unexpected(coir::Error::from_errno(errno));
  return file->sync();
}

void tell_unkept(const char* path, coir::Error error) noexcept {
  if (error.sys != EROFS && error != coir::ErrorCode::not_found) warn({path, ": it stays as it was: ", error});
}
