#include "http/files/folder_entries.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace coir::http {
namespace {

// As the kernel writes it (linux_dirent64).
struct Record {
  std::uint64_t inode;
  std::int64_t offset;
  std::uint16_t size;
  std::uint8_t type;
  char name[1];
};

}  // namespace

FolderEntries::FolderEntries(int folder, std::span<char> memory) noexcept : folder_(folder), memory_(memory) {
  ::lseek(folder, 0, SEEK_SET);
}

std::optional<FolderEntries::Entry> FolderEntries::next() noexcept {
  for (;;) {
    if (at_ == end_) {
      const long got = ::syscall(SYS_getdents64, folder_, memory_.data(), memory_.size());
      if (got < 0) failed_ = -errno;
      if (got <= 0) return {};
      at_ = 0;
      end_ = static_cast<std::size_t>(got);
    }
    const auto& record = *reinterpret_cast<const Record*>(memory_.data() + at_);
    at_ += record.size;
    const std::string_view name = record.name;
    if (name == "." || name == "..") continue;
    std::uint8_t type = record.type;
    if (struct stat info; type == DT_UNKNOWN && ::fstatat(folder_, record.name, &info, AT_SYMLINK_NOFOLLOW) == 0) {
      type = S_ISDIR(info.st_mode)   ? DT_DIR
             : S_ISREG(info.st_mode) ? DT_REG
             : S_ISLNK(info.st_mode) ? DT_LNK
                                     : DT_UNKNOWN;
    }
    const Type found = type == DT_DIR ? Type::folder : type == DT_REG || type == DT_LNK ? Type::file : Type::other;
    return Entry{name, found};
  }
}

}  // namespace coir::http
