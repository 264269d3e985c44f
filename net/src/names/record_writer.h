#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "names/dns_message.h"

namespace coir::names {

inline constexpr std::uint16_t kTypePtr = 12, kTypeTxt = 16, kTypeSrv = 33, kTypeNsec = 47, kTypeAny = 255;
inline constexpr std::uint16_t kClassAny = 255;
// Bits of the class in multicast DNS (RFC 6762, 10.2 and 5.4): the record replaces all that are known of its name and type;
// the answer to the question may come by unicast.
inline constexpr std::uint16_t kCacheFlush = 0x8000, kUnicastWanted = 0x8000;

// RecordWriter writes a message with questions and records into memory of the caller's, at most 16 KB of it. Names are
// compressed by what the message holds already. A record that does not fit is taken back whole, so that the message can
// be sent and another begun.
//
//   RecordWriter out(room, {.flags = MessageHeader::kResponse});
//   out.begin(RecordWriter::answer, name, kTypeSrv, kClassIn, 120);
//   out.u16(0); ... out.name(target);
//   if (!out.end()) ...
class RecordWriter {
 public:
  enum Section : std::uint8_t { question, answer, authority, additional };

  // `room` holds a header at least; the counts in `header` are set by what is written.
  RecordWriter(std::span<unsigned char> room, const MessageHeader& header) noexcept;

  // ask writes a question. False: it does not fit.
  bool ask(const Name& name, std::uint16_t type, std::uint16_t klass) noexcept;

  // begin writes a record's name and head; its data follows by bytes, u16 and name, and end closes it. Sections are
  // written in their order. False: it did not fit, and is not there.
  void begin(Section section, const Name& name, std::uint16_t type, std::uint16_t klass, std::uint32_t ttl) noexcept;
  void bytes(std::span<const unsigned char> from) noexcept;
  void u16(std::uint16_t value) noexcept;
  void name(const Name& name, bool compress = true) noexcept;
  bool end() noexcept;

  std::uint16_t count(Section section) const noexcept { return counts_[section]; }
  // message is all that was written, its head with the counts.
  std::span<const unsigned char> message() noexcept;

 private:
  static constexpr std::size_t kMostSuffixes = 32;

  void start(Section section) noexcept;
  bool is_at(std::size_t at, std::span<const unsigned char> wire) const noexcept;

  std::span<unsigned char> room_;
  std::size_t at_ = MessageHeader::kBytes, entry_ = 0, data_ = 0;
  std::uint16_t counts_[4] = {};
  std::uint16_t suffixes_[kMostSuffixes];  // where names, and the ends of names, stand
  std::uint8_t suffix_count_ = 0, suffixes_before_ = 0;
  Section section_ = question;
  bool full_ = false;
};

}  // namespace coir::names
