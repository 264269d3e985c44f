#include "names/dns_message.h"

#include <string.h>

namespace coir::names {
namespace {

constexpr unsigned kPointer = 0xc0, kLongestLabel = 63;

constexpr unsigned char lower(unsigned char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<unsigned char>(c | 0x20) : c;
}

bool same(std::span<const unsigned char> one, std::span<const unsigned char> other) noexcept {
  if (one.size() != other.size()) return false;
  for (std::size_t i = 0; i < one.size(); ++i) {
    if (lower(one[i]) != lower(other[i])) return false;
  }
  return true;
}

// Labels goes through the labels of a name. A pointer leads to what stands before the name or part that holds it: so the
// way ends.
class Labels {
 public:
  Labels(std::span<const unsigned char> message, std::size_t at) noexcept : message_(message), at_(at), before_(at) {}

  // next finds the next label, with its length in front; the last is the root's, of one byte. False: there is none.
  bool next(std::span<const unsigned char>& label) noexcept {
    while (at_ < message_.size()) {
      const unsigned size = message_[at_];
      if ((size & kPointer) == kPointer) {
        if (at_ + 1 >= message_.size()) return false;
        const std::size_t to = (size & ~kPointer) << 8 | message_[at_ + 1];
        if (end_ == 0) end_ = at_ + 2;
        if (to >= before_) return false;
        at_ = before_ = to;
        continue;
      }
      if (size > kLongestLabel || at_ + 1 + size > message_.size() || (taken_ += 1 + size) > Name::kMost) return false;
      label = message_.subspan(at_, 1 + size);
      at_ += 1 + size;
      return true;
    }
    return false;
  }

  // end is what follows the name, once its last label was found.
  std::size_t end() const noexcept { return end_ == 0 ? at_ : end_; }

 private:
  std::span<const unsigned char> message_;
  std::size_t at_, before_, end_ = 0, taken_ = 0;
};

}  // namespace

bool Name::set(std::string_view text) noexcept {
  size_ = 1;
  bytes_[0] = 0;
  return append(text);
}

bool Name::append(std::string_view text) noexcept {
  if (text.ends_with('.')) text.remove_suffix(1);
  std::size_t at = size_ - 1u;
  if (text.empty() || at + text.size() + 2 > kMost) return false;
  while (!text.empty()) {
    const std::string_view label = text.substr(0, text.find('.'));
    if (label.empty() || label.size() > kLongestLabel || label.size() + 1 == text.size()) {
      bytes_[size_ - 1u] = 0;
      return false;
    }
    bytes_[at++] = static_cast<unsigned char>(label.size());
    memcpy(bytes_ + at, label.data(), label.size());
    at += label.size();
    text.remove_prefix(label.size() == text.size() ? label.size() : label.size() + 1);
  }
  bytes_[at++] = 0;
  size_ = static_cast<std::uint8_t>(at);
  return true;
}

bool Name::is(std::span<const unsigned char> wire) const noexcept {
  return same(this->wire(), wire);
}

bool MessageReader::read(MessageHeader& header) noexcept {
  if (message_.size() < MessageHeader::kBytes) return false;
  header = {u16(0), u16(2), u16(4), u16(6), u16(8), u16(10)};
  at_ = MessageHeader::kBytes;
  return true;
}

bool MessageReader::skip_name() noexcept {
  Labels labels(message_, at_);
  for (std::span<const unsigned char> label; labels.next(label);) {
    if (label.size() > 1) continue;
    at_ = labels.end();
    return true;
  }
  return false;
}

bool MessageReader::read(Question& question) noexcept {
  question.name_at = at_;
  if (!skip_name() || at_ + 4 > message_.size()) return false;
  question.type = u16(at_);
  question.klass = u16(at_ + 2);
  at_ += 4;
  return true;
}

bool MessageReader::read(Record& record) noexcept {
  record.name_at = at_;
  if (!skip_name() || at_ + 10 > message_.size()) return false;
  record.type = u16(at_);
  record.klass = u16(at_ + 2);
  record.ttl = static_cast<std::uint32_t>(u16(at_ + 4)) << 16 | u16(at_ + 6);
  record.data_size = u16(at_ + 8);
  record.data_at = at_ + 10;
  at_ = record.data_at + record.data_size;
  return at_ <= message_.size();
}

bool MessageReader::name_is(std::size_t at, const Name& name) const noexcept {
  const auto wanted = name.wire();
  std::size_t done = 0;
  Labels labels(message_, at);
  for (std::span<const unsigned char> label; labels.next(label);) {
    if (done + label.size() > wanted.size() || !same(label, wanted.subspan(done, label.size()))) return false;
    done += label.size();
    if (label.size() == 1) return done == wanted.size();
  }
  return false;
}

bool MessageReader::copy_name(std::size_t at, Name& into) const noexcept {
  std::size_t done = 0;
  Labels labels(message_, at);
  for (std::span<const unsigned char> label; labels.next(label);) {
    memcpy(into.bytes_ + done, label.data(), label.size());
    done += label.size();
    if (label.size() > 1) continue;
    into.size_ = static_cast<std::uint8_t>(done);
    return true;
  }
  into.size_ = 1;
  into.bytes_[0] = 0;
  return false;
}

void MessageWriter::bytes(std::span<const unsigned char> from) noexcept {
  full_ |= from.size() > out_.size() - at_;
  if (full_) return;
  memcpy(out_.data() + at_, from.data(), from.size());
  at_ += from.size();
}

void MessageWriter::u16(std::uint16_t value) noexcept {
  const unsigned char both[] = {static_cast<unsigned char>(value >> 8), static_cast<unsigned char>(value)};
  bytes(both);
}

void MessageWriter::write(const MessageHeader& header) noexcept {
  for (const std::uint16_t each :
       {header.id, header.flags, header.questions, header.answers, header.authorities, header.additionals}) {
    u16(each);
  }
}

void MessageWriter::write(const Name& name, std::uint16_t type, std::uint16_t klass) noexcept {
  bytes(name.wire());
  u16(type);
  u16(klass);
}

}  // namespace coir::names
