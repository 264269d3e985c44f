#pragma once

// Small text files below a folder like /sys, for the drivers of a board's parts.

#include <coir/port/beneath.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

namespace coir::port::sysfs {

// Path is a path below the root, made of texts and numbers.
class Path {
 public:
  template <class... Parts>
  explicit Path(const Parts&... parts) noexcept {
    (add(parts), ...);
  }
  // text is null if the path is too long.
  const char* text() const noexcept { return fits_ ? text_ : nullptr; }

 private:
  void add(std::string_view part) noexcept;
  void add(std::uint32_t number) noexcept;

  char text_[160] = {};
  std::size_t size_ = 0;
  bool fits_ = true;
};

// Descriptor closes its file. A negative one is an errno.
class Descriptor {
 public:
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const noexcept { return fd_; }
  int release() noexcept { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

// Content is the text of a small file without its end of line, or an errno.
struct Content {
  char bytes[64];  // a number or a name
  std::size_t size = 0;
  int error = 0;
  std::string_view text() const noexcept { return {bytes, size}; }
};

// Digits is a number as text.
struct Digits {
  explicit Digits(std::uint32_t number) noexcept
      : size(static_cast<std::size_t>(std::to_chars(bytes, bytes + sizeof bytes, number).ptr - bytes)) {}
  std::string_view text() const noexcept { return {bytes, size}; }

  char bytes[10];
  std::size_t size;
};

// open_file returns a descriptor or -errno.
int open_file(int root, const Path& path, bool to_write) noexcept;

void read_text(int fd, Content& into) noexcept;
Content read_file(int root, const Path& path) noexcept;

// write_file returns 0 or an errno. A driver refuses a value by failing the write.
int write_file(int root, const Path& path, std::string_view text) noexcept;

// is_name tells whether a name is that of one file: no path leads anywhere else by it.
bool is_name(std::string_view name) noexcept;

// parse reads a whole decimal number; it returns 0 or an errno.
template <class Number>
int parse(std::string_view text, Number& into) noexcept {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into);
  return error == std::errc() && end == text.data() + text.size() ? 0 : EINVAL;
}
template <class Number>
int parse(const Content& content, Number& into) noexcept {
  return content.error != 0 ? content.error : parse(content.text(), into);
}

// put_name copies as much of a name as fits, and ends it with a NUL.
template <std::size_t kSize>
void put_name(char (&into)[kSize], std::string_view name) noexcept {
  const std::size_t size = name.copy(into, kSize - 1);
  into[size] = '\0';
}

// each_entry hands the names of a folder to `take`, as long as that returns true. A missing folder has none.
template <class Take>
int each_entry(int root, const Path& folder, Take take) noexcept {
  const Descriptor found(open_file(root, folder, false));
  if (found.get() < 0) return found.get() == -ENOENT ? 0 : -found.get();
  const Descriptor readable(::openat(found.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (readable.get() < 0) return errno;
  // No opendir: it takes memory that no account knows.
  alignas(std::uint64_t) char entries[288];  // no name has more than 255 bytes
  for (;;) {
    const long size = syscall(SYS_getdents64, readable.get(), entries, sizeof entries);
    if (size <= 0) return size == 0 ? 0 : errno;
    for (long at = 0; at < size;) {
      // The kernel's struct linux_dirent64: two numbers of 64 bits, the entry's size, its type, its name.
      constexpr std::size_t kSizeAt = 16, kNameAt = 19;
      std::uint16_t bytes;
      memcpy(&bytes, entries + at + kSizeAt, sizeof bytes);
      const std::string_view name = entries + at + kNameAt;
      at += bytes;
      if (is_name(name) && !take(name)) return 0;
    }
  }
}

}  // namespace coir::port::sysfs
