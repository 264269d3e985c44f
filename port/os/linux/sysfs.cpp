#include "sysfs.h"

#include <string.h>

namespace coir::port::sysfs {

void Path::add(std::string_view part) noexcept {
  fits_ = fits_ && part.size() < sizeof text_ - size_;
  if (!fits_) return;
  memcpy(text_ + size_, part.data(), part.size());
  size_ += part.size();
}

void Path::add(std::uint32_t number) noexcept {
  add(Digits(number).text());
}

// Not inlined: several in one function would take more stack than a fiber has.
[[gnu::noinline]] int open_file(int root, const Path& path, bool to_write) noexcept {
  if (path.text() == nullptr) return -ENAMETOOLONG;
  char work[512];
  return to_write ? open_beneath_to_write(root, path.text(), work) : open_beneath(root, path.text(), work);
}

void read_text(int fd, Content& into) noexcept {
  const ssize_t got = ::pread(fd, into.bytes, sizeof into.bytes, 0);
  into.error = got < 0 ? errno : 0;
  into.size = got < 0 ? 0 : static_cast<std::size_t>(got);
  while (into.size > 0 && (into.bytes[into.size - 1] == '\n' || into.bytes[into.size - 1] == ' ')) --into.size;
}

[[gnu::noinline]] Content read_file(int root, const Path& path) noexcept {
  Content content;
  const Descriptor file(open_file(root, path, false));
  if (file.get() < 0) {
    content.error = -file.get();
  } else {
    read_text(file.get(), content);
  }
  return content;
}

int write_file(int root, const Path& path, std::string_view text) noexcept {
  const Descriptor file(open_file(root, path, true));
  if (file.get() < 0) return -file.get();
  const ssize_t wrote = ::write(file.get(), text.data(), text.size());
  return wrote < 0 ? errno : wrote == static_cast<ssize_t>(text.size()) ? 0 : EIO;
}

bool is_name(std::string_view name) noexcept {
  return !name.empty() && name != "." && name != ".." && name.find('/') == name.npos && name.find('\0') == name.npos;
}

}  // namespace coir::port::sysfs
