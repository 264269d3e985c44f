#include "private_file.h"

#include <sys/stat.h>
#include <unistd.h>

const char* exposed(int fd) noexcept {
  struct stat info;
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) return "it is not a file";
  if ((info.st_mode & 077) != 0) return "others can read or change it";
  if (info.st_uid != ::geteuid() && info.st_uid != 0) return "it belongs to somebody else";
  return nullptr;
}
