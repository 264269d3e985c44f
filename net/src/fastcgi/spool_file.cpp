#include "fastcgi/spool_file.h"

#include <coir/blocking.h>
#include <coir/detail/accounts.h>
#include <coir/port/memory.h>
#include <coir/pressure.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>

#include "base/rounded.h"
#include "http/files/open_file.h"

namespace coir::http {
namespace {

// is_in_ram: one that cannot be asked is taken for RAM.
bool is_in_ram(int fd) noexcept {
  struct statfs system;
  if (::fstatfs(fd, &system) != 0) return true;
  // Its type is signed in some C libraries.
  const auto magic = static_cast<std::uint32_t>(system.f_type);
  return magic == TMPFS_MAGIC || magic == RAMFS_MAGIC;
}

}  // namespace

int SpoolFile::open(Exchange& exchange, const char* folder) noexcept {
  const int opened = with_room(exchange, [folder] {
    return blocking([folder] {
             const int fd = ::open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
             return fd < 0 ? -errno : fd;
           })
        .value_or(-ENOMEM);
  });
  if (opened < 0) return opened;
  file_ = File(opened);
  in_ram_ = is_in_ram(opened);
  return 0;
}

std::expected<void, Error> SpoolFile::write(std::span<const char> bytes) noexcept {
  const std::size_t pages = rounded(size_ + bytes.size(), port::kPageBytes);
  if (in_ram_ && pages > charged_) {
    if (!Pressure::charge(account::http, pages - charged_)) return std::unexpected(Error{ErrorCode::no_memory});
    charged_ = pages;
  }
  size_ += bytes.size();
  return file_.write_all(bytes);
}

void SpoolFile::close() noexcept {
  static_cast<void>(file_.close());
  if (charged_ != 0) account::http.refund(charged_);
  charged_ = 0;
}

}  // namespace coir::http
