#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <string_view>

namespace coir::test {

// Folder is a temporary folder, removed with all that is in it. It lies in TMPDIR, which scripts/test removes even if a test
// is killed.
class Folder {
 public:
  Folder() noexcept {
    umask(022);
    snprintf(path_, sizeof path_, "%s/coir-file.XXXXXX", getenv("TMPDIR") != nullptr ? getenv("TMPDIR") : "/tmp");
    if (mkdtemp(path_) == nullptr) abort();
  }
  ~Folder() {
    constexpr int kMostOpen = 8;
    nftw(
        path_, [](const char* path, const struct stat*, int, FTW*) { return ::remove(path); }, kMostOpen,
        FTW_DEPTH | FTW_PHYS);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const char* path() const noexcept { return path_; }
  const char* at(const char* name) noexcept {
    snprintf(file_, sizeof file_, "%s/%s", path_, name);
    return file_;
  }
  int count() noexcept {
    int files = 0;
    for_each([&](const char*) { ++files; });
    return files;
  }

 private:
  template <class F>
  void for_each(F f) noexcept {
    DIR* const folder = opendir(path_);
    while (const dirent* const entry = readdir(folder)) {
      if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) f(entry->d_name);
    }
    closedir(folder);
  }

  char path_[200];
  char file_[500];
};

// is_in_ram tells whether what is at `path` takes memory of the machine; ram_folder is a folder where it does, or null.
inline bool is_in_ram(const char* path) noexcept {
  struct statfs system;
  return statfs(path, &system) == 0 && (system.f_type == TMPFS_MAGIC || system.f_type == RAMFS_MAGIC);
}
inline const char* ram_folder() noexcept {
  for (const char* const path : {"/dev/shm", "/tmp"}) {
    if (is_in_ram(path)) return path;
  }
  return nullptr;
}

inline void put(const char* path, std::string_view text, unsigned mode = 0644) noexcept {
  const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, mode);
  if (fd < 0 || write(fd, text.data(), text.size()) != static_cast<ssize_t>(text.size())) abort();
  fchmod(fd, mode);
  close(fd);
}

inline bool holds(const char* path, std::string_view text) noexcept {
  static char bytes[1 << 16];
  const int fd = open(path, O_RDONLY);
  const ssize_t n = read(fd, bytes, sizeof bytes);
  close(fd);
  return n >= 0 && std::string_view(bytes, static_cast<std::size_t>(n)) == text;
}

inline unsigned mode_of(const char* path) noexcept {
  struct stat status;
  return stat(path, &status) == 0 ? status.st_mode & 07777 : 0;
}

// SmallDisk ends the files of this process at `bytes` while it lives: a full disk for those that have none to fill.
class SmallDisk {
 public:
  explicit SmallDisk(rlim_t bytes) noexcept {
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    rlimit limit = before_;
    limit.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~SmallDisk() { setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_;
};

}  // namespace coir::test
