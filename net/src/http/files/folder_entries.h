#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace coir::http {

// FolderEntries reads the names in an open directory, without memory of the C library. "." and ".." are left out.
class FolderEntries {
 public:
  enum class Type : unsigned char { file, folder, other };
  struct Entry {
    std::string_view name;  // NUL-terminated; valid until the next call
    Type type;              // a link counts as a file: it is looked at when it is asked for
  };

  // `folder` is open for reading; reading begins at its start. `memory` holds 512 bytes or more and is aligned to 8.
  FolderEntries(int folder, std::span<char> memory) noexcept;

  // next returns the next entry, absent after the last. May block.
  std::optional<Entry> next() noexcept;

  // failed is the -errno that has ended the list too early, 0 if none has.
  int failed() const noexcept { return failed_; }

 private:
  int folder_;
  int failed_ = 0;
  std::span<char> memory_;
  std::size_t at_ = 0;
  std::size_t end_ = 0;
};

}  // namespace coir::http
