#include "fastcgi/record.h"

#include <string.h>

#include <algorithm>

namespace coir::http {
namespace {

constexpr std::uint8_t kVersion = 1;
constexpr std::size_t kShortLength = 127;
// A length in four bytes has its highest bit set.
constexpr std::uint8_t kLong = 0x80;

void write_long(char* into, std::size_t length) noexcept {
  into[0] = static_cast<char>(length >> 24 | kLong);
  into[1] = static_cast<char>(length >> 16);
  into[2] = static_cast<char>(length >> 8);
  into[3] = static_cast<char>(length);
}

}  // namespace

void write_fastcgi_header(std::span<char, kFastCgiHeader> into, FastCgiType type, std::uint16_t id,
                          std::size_t bytes) noexcept {
  into[0] = static_cast<char>(kVersion);
  into[1] = static_cast<char>(type);
  into[2] = static_cast<char>(id >> 8);
  into[3] = static_cast<char>(id);
  into[4] = static_cast<char>(bytes >> 8);
  into[5] = static_cast<char>(bytes);
  into[6] = 0;
  into[7] = 0;
}

void FastCgiParams::put(std::string_view bytes) noexcept {
  if (memory_.size() - used_ < bytes.size()) {
    fits_ = false;
    return;
  }
  if (!bytes.empty()) memcpy(memory_.data() + used_, bytes.data(), bytes.size());
  used_ += bytes.size();
}

void FastCgiParams::add(std::string_view name, std::string_view value) noexcept {
  char lengths[8];
  std::size_t count = 0;
  for (const std::size_t length : {name.size(), value.size()}) {
    if (length <= kShortLength) {
      lengths[count++] = static_cast<char>(length);
    } else {
      write_long(lengths + count, length);
      count += 4;
    }
  }
  put({lengths, count});
  put(name);
  put(value);
}

void FastCgiParams::begin(std::string_view name) noexcept {
  char lengths[8];
  std::size_t count = 4;
  if (name.size() <= kShortLength) {
    lengths[0] = static_cast<char>(name.size());
    count = 1;
  } else {
    write_long(lengths, name.size());
  }
  write_long(lengths + count, 0);
  value_at_ = used_ + count;
  put({lengths, count + 4});
  put(name);
  data_at_ = used_;
}

void FastCgiParams::append(std::string_view part) noexcept {
  put(part);
}

void FastCgiParams::end() noexcept {
  if (fits_) write_long(memory_.data() + value_at_, used_ - data_at_);
}

// read_header is false while the header is not whole.
bool FastCgiReader::read_header(std::span<char>& bytes) noexcept {
  const std::size_t taken = std::min<std::size_t>(kFastCgiHeader - have_, bytes.size());
  if (taken != 0) memcpy(header_ + have_, bytes.data(), taken);
  bytes = bytes.subspan(taken);
  have_ = static_cast<std::uint8_t>(have_ + taken);
  if (have_ != kFastCgiHeader) return false;
  left_ = static_cast<std::uint16_t>(header_[4] << 8 | header_[5]);
  padding_ = header_[6];
  end_have_ = 0;
  return true;
}

FastCgiEvent FastCgiReader::next(std::span<char>& bytes) noexcept {
  using enum FastCgiEvent::Kind;
  for (;;) {
    if (have_ != kFastCgiHeader && !read_header(bytes)) return {};
    const auto type = static_cast<FastCgiType>(header_[1]);
    if (header_[0] != kVersion) return {.kind = bad};
    const bool mine = (header_[2] << 8 | header_[3]) == id_;
    const bool ends = mine && type == FastCgiType::end_request;
    if (ends && left_ + end_have_ != sizeof end_) return {.kind = bad};
    const std::size_t size = std::min<std::size_t>(left_, bytes.size());
    const std::span<char> content = bytes.first(size);
    bytes = bytes.subspan(size);
    left_ = static_cast<std::uint16_t>(left_ - size);
    if (ends && size != 0) {
      memcpy(end_ + end_have_, content.data(), size);
      end_have_ = static_cast<std::uint8_t>(end_have_ + size);
    }
    if (left_ == 0) {
      // An end counts once its padding has come: what follows is the next request's.
      const std::size_t skipped = std::min<std::size_t>(padding_, bytes.size());
      bytes = bytes.subspan(skipped);
      padding_ = static_cast<std::uint8_t>(padding_ - skipped);
      if (padding_ == 0) have_ = 0;
    }
    if (ends) {
      if (have_ != 0) return {};
      if (end_[4] > static_cast<std::uint8_t>(FastCgiEnd::unknown_role)) return {.kind = bad};
      return {.kind = ended, .end = static_cast<FastCgiEnd>(end_[4])};
    }
    if (mine && size != 0 && type == FastCgiType::output) return {.kind = output, .bytes = content};
    if (mine && size != 0 && type == FastCgiType::errors) return {.kind = errors, .bytes = content};
    if (have_ != 0 && bytes.empty()) return {};
  }
}

}  // namespace coir::http
