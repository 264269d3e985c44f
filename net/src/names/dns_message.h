#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

// Messages of DNS and of multicast DNS (RFC 1035, section 4): read in place, written into the caller's memory. Nothing here
// allocates, and nothing of a message is believed: what lies outside it, or goes round in circles, ends the reading.
namespace coir::names {

inline constexpr std::uint16_t kTypeA = 1, kTypeCname = 5, kTypeSoa = 6, kTypeAaaa = 28;
inline constexpr std::uint16_t kClassIn = 1;

// Name is a domain name as it stands in a message: its labels, each behind its length, and a zero. Names are compared
// without case.
class Name {
 public:
  static constexpr std::size_t kMost = 255;

  // set takes text, with a dot at its end or without. False: it is empty, a label is empty or over 63 bytes, or all is
  // too long; the name is then the root's.
  bool set(std::string_view text) noexcept;
  // append has the labels of `text` follow. False, as above: the name is as it was.
  bool append(std::string_view text) noexcept;
  std::span<const unsigned char> wire() const noexcept { return {bytes_, size_}; }
  // is compares with what stands uncompressed.
  bool is(std::span<const unsigned char> wire) const noexcept;

 private:
  friend class MessageReader;

  std::uint8_t size_ = 1;
  unsigned char bytes_[kMost] = {0};
};

struct MessageHeader {
  std::uint16_t id = 0;
  std::uint16_t flags = 0;
  std::uint16_t questions = 0;
  std::uint16_t answers = 0;
  std::uint16_t authorities = 0;
  std::uint16_t additionals = 0;

  static constexpr std::size_t kBytes = 12;
  static constexpr std::uint16_t kResponse = 0x8000, kOpcode = 0x7800, kAuthoritative = 0x0400, kTruncated = 0x0200,
                                 kRecursionDesired = 0x0100, kCode = 0x000f;
};

struct Question {
  std::size_t name_at = 0;  // where its name begins in the message
  std::uint16_t type = 0;
  std::uint16_t klass = 0;
};

struct Record {
  std::size_t name_at = 0;
  std::uint16_t type = 0;
  std::uint16_t klass = 0;
  std::uint32_t ttl = 0;  // seconds
  std::size_t data_at = 0;
  std::uint16_t data_size = 0;
};

// MessageReader goes through a message from its first byte on: the header, then as many questions and records as it
// announces.
class MessageReader {
 public:
  explicit MessageReader(std::span<const unsigned char> message) noexcept : message_(message) {}

  // Each is false where the message ends before, or is none.
  bool read(MessageHeader& header) noexcept;
  bool read(Question& question) noexcept;
  bool read(Record& record) noexcept;

  std::span<const unsigned char> data(const Record& record) const noexcept {
    return message_.subspan(record.data_at, record.data_size);
  }
  // name_is tells whether the name that begins at `at` is this one.
  bool name_is(std::size_t at, const Name& name) const noexcept;
  // copy_name takes the name that begins at `at`, its compression undone. False: it is none.
  bool copy_name(std::size_t at, Name& into) const noexcept;

 private:
  bool skip_name() noexcept;
  std::uint16_t u16(std::size_t at) const noexcept {
    return static_cast<std::uint16_t>(message_[at] << 8 | message_[at + 1]);
  }

  std::span<const unsigned char> message_;
  std::size_t at_ = 0;
};

// MessageWriter writes a message into memory of the caller's.
class MessageWriter {
 public:
  explicit MessageWriter(std::span<unsigned char> out) noexcept : out_(out) {}

  void write(const MessageHeader& header) noexcept;
  void write(const Name& name, std::uint16_t type, std::uint16_t klass) noexcept;  // a question

  // message is what was written; empty where it did not fit.
  std::span<const unsigned char> message() const noexcept {
    return full_ ? std::span<const unsigned char>() : out_.first(at_);
  }

 private:
  void u16(std::uint16_t value) noexcept;
  void bytes(std::span<const unsigned char> from) noexcept;

  std::span<unsigned char> out_;
  std::size_t at_ = 0;
  bool full_ = false;
};

}  // namespace coir::names
