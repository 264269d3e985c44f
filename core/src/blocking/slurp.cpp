#include <coir/file.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include <coir/utf8.h>

namespace coir {

UnsharedFile open_unshared(const char* path, int flags, unsigned mode) noexcept {
  flags |= O_CLOEXEC | O_NOFOLLOW;
  UnsharedFile file;
  file.fd = ::open(path, flags);
  file.created = mode != 0 && file.fd < 0 && errno == ENOENT;
  if (file.created) file.fd = ::open(path, flags | O_CREAT | O_EXCL, mode);
  if (file.created && file.fd < 0 && errno == EEXIST) {
    // Another process has created it meanwhile.
    file.created = false;
    file.fd = ::open(path, flags);
  }
  struct stat status;
  if (file.fd < 0 || ::fstat(file.fd, &status) != 0) {
    file.error = errno;
  } else if (!S_ISREG(status.st_mode) || status.st_nlink != 1) {
    file.error = EPERM;
  }
  if (file.error != 0 && file.fd >= 0) ::close(std::exchange(file.fd, -1));
  return file;
}

std::expected<FileBytes, Error> slurp(const char* path, Account& account, std::size_t most,
                                      Deadline deadline) noexcept {
  const auto file = File::open(path, {}, deadline);
  if (!file) return std::unexpected(file.error());
  auto bytes = file->read_all(account, most, deadline);
  if (bytes && !is_utf8(bytes->text())) return std::unexpected(Error{ErrorCode::invalid, EILSEQ});
  return bytes;
}

std::expected<std::string_view, Error> slurp(const char* path, std::span<char> into, Deadline deadline) noexcept {
  const auto file = File::open(path, {}, deadline);
  if (!file) return std::unexpected(file.error());
  const auto size = file->read_all(into, deadline);
  if (!size) return std::unexpected(size.error());
  const std::string_view text(into.data(), *size);
  if (!is_utf8(text)) return std::unexpected(Error{ErrorCode::invalid, EILSEQ});
  return text;
}

}  // namespace coir
