#include "private_file.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "complaint.h"

namespace {

// exposed tells why an open file is not this process's user's or root's alone, null if it is.
const char* exposed(int fd) noexcept {
  struct stat info;
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) return "it is not a file";
  if ((info.st_mode & 077) != 0) return "others can read or change it";
  if (info.st_uid != ::geteuid() && info.st_uid != 0) return "it belongs to somebody else";
  return nullptr;
}

}  // namespace

std::optional<coir::File> open_private(const char* path, const char* cure) noexcept {
  auto file = coir::File::open(path);
  if (!file) return complain(cure, {path, ": ", file.error()}), std::nullopt;
  if (const char* const why = exposed(file->fd()))
    return complain("chmod 600, and make coird's user its owner", {path, ": ", why}), std::nullopt;
  return std::move(*file);
}

std::optional<std::string_view> read_secret_line(const char* path, const char* cure, std::span<char> room) noexcept {
  const auto file = open_private(path, cure);
  if (!file) return std::nullopt;
  const auto size = file->read_all(room);
  if (!size) return complain(cure, {path, ": ", size.error()}), std::nullopt;
  const std::string_view text(room.data(), *size);
  return text.substr(0, text.find_first_of("\r\n"));
}

SecretBytes::~SecretBytes() {
  if (bytes.size() != 0) explicit_bzero(const_cast<char*>(bytes.bytes().data()), bytes.size());
}
