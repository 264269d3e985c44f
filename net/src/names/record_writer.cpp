#include "names/record_writer.h"

#include <string.h>

namespace coir::names {
namespace {

constexpr unsigned char kPointerByte = 0xc0;
constexpr std::size_t kFarthest = 0x3fff;  // what a pointer can reach

void put16(unsigned char* at, std::uint16_t value) noexcept {
  at[0] = static_cast<unsigned char>(value >> 8);
  at[1] = static_cast<unsigned char>(value);
}

}  // namespace

RecordWriter::RecordWriter(std::span<unsigned char> room, const MessageHeader& header) noexcept : room_(room) {
  put16(room_.data(), header.id);
  put16(room_.data() + 2, header.flags);
}

void RecordWriter::bytes(std::span<const unsigned char> from) noexcept {
  full_ |= from.size() > room_.size() - at_;
  if (full_) return;
  if (!from.empty()) memcpy(room_.data() + at_, from.data(), from.size());
  at_ += from.size();
}

void RecordWriter::u16(std::uint16_t value) noexcept {
  unsigned char both[2];
  put16(both, value);
  bytes(both);
}

// is_at tells whether the labels of `wire` stand at `at`, byte for byte; pointers there are this writer's own.
bool RecordWriter::is_at(std::size_t at, std::span<const unsigned char> wire) const noexcept {
  for (;;) {
    while ((room_[at] & kPointerByte) == kPointerByte) at = (room_[at] & ~kPointerByte & 0xffu) << 8 | room_[at + 1];
    const std::size_t size = 1u + room_[at];
    if (size > wire.size() || memcmp(room_.data() + at, wire.data(), size) != 0) return false;
    if (size == 1) return true;
    at += size;
    wire = wire.subspan(size);
  }
}

void RecordWriter::name(const Name& name, bool compress) noexcept {
  // A name that did not fit has noted places behind which nothing of this message stands.
  if (full_) return;
  auto rest = name.wire();
  // Suffixes that this name adds are found by the next one only: until its end they are unfinished.
  const std::uint8_t known = suffix_count_;
  while (rest.size() > 1) {
    for (std::uint8_t i = 0; compress && i < known; ++i) {
      if (!is_at(suffixes_[i], rest)) continue;
      return u16(static_cast<std::uint16_t>(kPointerByte << 8 | suffixes_[i]));
    }
    if (!full_ && suffix_count_ < kMostSuffixes && at_ <= kFarthest) {
      suffixes_[suffix_count_++] = static_cast<std::uint16_t>(at_);
    }
    const std::size_t size = 1u + rest[0];
    bytes(rest.first(size));
    rest = rest.subspan(size);
  }
  bytes(rest);
}

void RecordWriter::start(Section section) noexcept {
  section_ = section;
  entry_ = at_;
  suffixes_before_ = suffix_count_;
}

bool RecordWriter::ask(const Name& asked, std::uint16_t type, std::uint16_t klass) noexcept {
  start(question);
  name(asked);
  u16(type);
  u16(klass);
  data_ = 0;
  return end();
}

void RecordWriter::begin(Section section, const Name& owner, std::uint16_t type, std::uint16_t klass,
                         std::uint32_t ttl) noexcept {
  start(section);
  name(owner);
  u16(type);
  u16(klass);
  u16(static_cast<std::uint16_t>(ttl >> 16));
  u16(static_cast<std::uint16_t>(ttl));
  u16(0);
  data_ = at_;
}

bool RecordWriter::end() noexcept {
  if (full_) {
    at_ = entry_;
    suffix_count_ = suffixes_before_;
    full_ = false;
    return false;
  }
  if (data_ != 0) put16(room_.data() + data_ - 2, static_cast<std::uint16_t>(at_ - data_));
  ++counts_[section_];
  return true;
}

std::span<const unsigned char> RecordWriter::message() noexcept {
  for (std::size_t i = 0; i < 4; ++i) put16(room_.data() + 4 + 2 * i, counts_[i]);
  return room_.first(at_);
}

}  // namespace coir::names
