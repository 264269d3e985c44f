#pragma once

#include <coir/file.h>

#include <cstdint>
#include <expected>
#include <optional>
#include <string_view>

// Saving is where fetched content goes: to standard output; to a device, a pipe or where a link leads, which are written to;
// to a file that is replaced as a whole; or, to be resumed, to FILE.part, which becomes FILE at the end. FILE.part.tag holds
// the validator of the version that FILE.part is of, and on a second line its length, where that was known.
class Saving {
 public:
  using Outcome = std::expected<void, coir::Error>;

  // open makes ready. `path` null is standard output. Errors: invalid (the path is too long), those of File.
  Outcome open(const char* path, bool resume) noexcept;

  // have is how much has come, earlier of the version `tag`, which is `total` bytes long if that is known; 0 where there
  // is nothing to go on from.
  std::uint64_t have() const noexcept { return have_; }
  std::string_view tag() const noexcept { return {tag_, tag_size_}; }
  std::optional<std::uint64_t> total() const noexcept { return total_; }

  // forget makes what came earlier worth nothing, for this call and the next ones.
  void forget() noexcept;

  // begin is called when the response is there. `continues` tells that it is the rest of what came earlier.
  Outcome begin(bool continues, std::string_view tag, std::optional<std::uint64_t> total) noexcept;
  Outcome write(std::span<const char> bytes) noexcept;
  // finish gives the file its name.
  Outcome finish() noexcept;

 private:
  static constexpr std::size_t kPathBytes = 512;
  static constexpr std::size_t kMostTag = 128;

  const char* path_ = nullptr;
  bool resumes_ = false;
  bool writes_through_ = false;  // what lies at the path is no file to be replaced
  int into_ = 1;
  coir::FileReplacement replacement_;
  coir::File part_;
  std::uint64_t have_ = 0;
  std::optional<std::uint64_t> total_;
  std::size_t tag_size_ = 0;
  char tag_[kMostTag + 24] = {};
  char part_path_[kPathBytes] = {};
  char tag_path_[kPathBytes] = {};
};
