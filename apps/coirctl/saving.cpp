#include "saving.h"

#include <coir/descriptor_stream.h>
#include <coir/format.h>
#include <coir/http/wire/query.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

Saving::Outcome Saving::open(const char* path, bool resume) noexcept {
  path_ = path;
  struct stat there_is;
  writes_through_ = path != nullptr && ::lstat(path, &there_is) == 0 && !S_ISREG(there_is.st_mode);
  resumes_ = resume && !writes_through_;
  if (path == nullptr || !resumes_) return {};
  coir::Formatter part(part_path_);
  coir::Formatter tag(tag_path_);
  part.add(path, ".part", '\0');
  tag.add(path, ".part.tag", '\0');
  if (!part.fits() || !tag.fits()) return std::unexpected(coir::Error{coir::ErrorCode::invalid});
  // Without its validator a part is of nobody knows which version.
  const auto known = coir::slurp(tag_path_, tag_);
  if (!known || known->empty()) return {};
  const auto there = coir::File::open(part_path_);
  if (!there) return {};
  const auto size = there->size();
  if (!size) return {};
  const std::string_view text(tag_, known->size());
  tag_size_ = std::min(text.find('\n'), text.size());
  if (tag_size_ < text.size()) {
    std::string_view length = text.substr(tag_size_ + 1);
    if (length.ends_with('\n')) length.remove_suffix(1);
    if (const auto bytes = coir::http::parse_integer(length); bytes && *bytes >= 0) {
      total_ = static_cast<std::uint64_t>(*bytes);
    }
  }
  have_ = *size;
  return {};
}

void Saving::forget() noexcept {
  have_ = 0;
  tag_size_ = 0;
  total_.reset();
  if (resumes_) ::unlink(tag_path_);
}

Saving::Outcome Saving::begin(bool continues, std::string_view tag, std::optional<std::uint64_t> total) noexcept {
  if (path_ == nullptr) return {};
  if (writes_through_) {
    into_ = ::open(path_, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0666);
    return into_ >= 0 ? Outcome() : std::unexpected(coir::Error::from_errno(errno));
  }
  if (!resumes_) {
    auto begun = coir::FileReplacement::begin(path_);
    if (!begun) return std::unexpected(begun.error());
    replacement_ = std::move(*begun);
    return {};
  }
  if (!continues) forget();
  auto opened = coir::File::open(part_path_, {.write = true, .create = true, .truncate = !continues, .append = true});
  if (!opened) return std::unexpected(opened.error());
  part_ = std::move(*opened);
  // A weak validator joins no two parts.
  if (continues || tag.empty() || tag.starts_with("W/") || tag.size() > kMostTag) return {};
  char text[sizeof tag_];
  return coir::replace_file(tag_path_, total ? coir::format(text, tag, "\n", *total, "\n") : tag);
}

Saving::Outcome Saving::write(std::span<const char> bytes) noexcept {
  have_ += bytes.size();
  if (replacement_.is_open()) return replacement_.write(bytes);
  if (part_.is_open()) return part_.write_all(bytes);
  while (!bytes.empty()) {
    const ssize_t written = ::write(into_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return std::unexpected(coir::Error::from_errno(errno));
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return {};
}

Saving::Outcome Saving::finish() noexcept {
  if (replacement_.is_open()) return replacement_.commit();
  if (writes_through_ && ::close(into_) != 0) return std::unexpected(coir::Error::from_errno(errno));
  if (!part_.is_open()) return {};
  if (auto synced = part_.sync(); !synced) return synced;
  static_cast<void>(part_.close());
  if (::rename(part_path_, path_) != 0) return std::unexpected(coir::Error::from_errno(errno));
  ::unlink(tag_path_);
  return {};
}
