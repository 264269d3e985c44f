#include "mqtt/queue_file.h"

#include <coir/detail/accounts.h>
#include <coir/mqtt.h>
#include <string.h>

#include <array>

namespace coir::mqtt {

namespace {

constexpr std::string_view kMagic = "coirmq1\n";
constexpr std::size_t kHead = 8;  // length and checksum
constexpr std::size_t kFixed = 5;
// The most that a queue of any size leaves: twice its bytes and 1,024, and one append, which is at most a queue long.
constexpr std::size_t kLongest = 3 * Buffer::kMost + 2048;
constexpr unsigned kDone = 0x80, kRetained = 4;

// The CRC-32 of Ethernet and gzip, by halves of a byte: a table of 64 bytes.
constexpr auto kCrcTable = [] {
  std::array<std::uint32_t, 16> table{};
  for (std::uint32_t i = 0; i < 16; ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 4; ++bit) value = (value & 1) != 0 ? value >> 1 ^ 0xedb88320u : value >> 1;
    table[i] = value;
  }
  return table;
}();

std::uint32_t checksum(std::string_view bytes) noexcept {
  std::uint32_t crc = ~0u;
  for (const char each : bytes) {
    crc ^= static_cast<unsigned char>(each);
    crc = crc >> 4 ^ kCrcTable[crc & 15];
    crc = crc >> 4 ^ kCrcTable[crc & 15];
  }
  return ~crc;
}

void put(char* to, std::uint32_t value, int bytes) noexcept {
  for (int i = 0; i < bytes; ++i) to[i] = static_cast<char>(value >> 8 * i);
}

std::uint32_t take(std::string_view from, std::size_t at, std::size_t bytes) noexcept {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i) value |= std::uint32_t{static_cast<unsigned char>(from[at + i])} << 8 * i;
  return value;
}

std::size_t record_bytes(const PublishFields& message) noexcept {
  return kHead + kFixed + message.topic.size() + message.payload.size();
}

}  // namespace

std::size_t parse_record(std::string_view bytes, QueueRecord& record) noexcept {
  if (bytes.size() < kHead + kFixed) return 0;
  const std::size_t length = take(bytes, 0, 4);
  if (length < kFixed || length > bytes.size() - kHead) return 0;
  const std::string_view body = bytes.substr(kHead, length);
  if (checksum(body) != take(bytes, 4, 4)) return 0;
  const std::uint32_t kind = take(body, 2, 1), topic = take(body, 3, 2);
  record = {};
  record.message.id = static_cast<std::uint16_t>(take(body, 0, 2));
  record.message.qos = 1;
  if (record.message.id == 0 || record.message.id > kLastMessageId || topic > length - kFixed) return 0;
  record.done = kind == kDone;
  if (record.done) return length == kFixed && topic == 0 ? kHead + length : 0;
  record.message.topic = body.substr(kFixed, topic);
  record.message.payload = body.substr(kFixed + topic);
  record.message.retained = kind == kRetained;
  if ((kind & ~kRetained) != 0 || !may_publish(record.message.topic)) return 0;
  return kHead + length;
}

std::size_t write_record(std::span<char> out, const QueueRecord& record) noexcept {
  const PublishFields& message = record.message;
  const std::size_t size = record_bytes(message);
  if (out.size() < size) return 0;
  char* const body = out.data() + kHead;
  put(body, message.id, 2);
  body[2] = static_cast<char>(record.done ? kDone : message.retained ? kRetained : 0);
  put(body + 3, static_cast<std::uint32_t>(message.topic.size()), 2);
  if (!message.topic.empty()) memcpy(body + kFixed, message.topic.data(), message.topic.size());
  if (!message.payload.empty()) {
    memcpy(body + kFixed + message.topic.size(), message.payload.data(), message.payload.size());
  }
  put(out.data(), static_cast<std::uint32_t>(size - kHead), 4);
  put(out.data() + 4, checksum({body, size - kHead}), 4);
  return size;
}

std::expected<void, Error> QueueFile::open(const char* path, bool sync, std::size_t queue_bytes,
                                           MessageQueue& queue) noexcept {
  // As much again of messages that are done, and records that say so.
  most_ = 2 * queue_bytes + 1024;
  sync_ = sync;
  if (auto old = File::open(path)) {
    // An earlier run's queue may have been larger.
    const auto content = old->read_all(account::buffers, kLongest);
    if (!content && content.error() != ErrorCode::end_of_stream) return std::unexpected(content.error());
    std::string_view rest = content ? content->text() : std::string_view();
    if (!rest.empty() && !rest.starts_with(kMagic) && !kMagic.starts_with(rest)) {
      return std::unexpected(Error{ErrorCode::invalid});
    }
    rest.remove_prefix(std::min(rest.size(), kMagic.size()));
    QueueRecord record;
    queue.restart();
    while (const std::size_t size = parse_record(rest, record)) {
      rest.remove_prefix(size);
      if (record.done) {
        static_cast<void>(queue.acknowledge(record.message.id));
        continue;
      }
      if (!queue.can_hold(record.message)) continue;
      while (!queue.has_room(record.message)) static_cast<void>(queue.drop_oldest());
      queue.push(record.message);
      PublishFields sent;
      while (queue.next(sent, SIZE_MAX)) queue.took();
    }
    queue.mark_sent();
    queue.restart();
  } else if (old.error() != ErrorCode::not_found) {
    return std::unexpected(old.error());
  }
  path_ = path;
  if (auto done = compact(queue); !done) {
    path_ = nullptr;
    return done;
  }
  return {};
}

std::expected<void, Error> QueueFile::add(const PublishFields& message, const MessageQueue& queue) noexcept {
  return append({.message = message}, queue);
}

std::expected<void, Error> QueueFile::remove(std::uint16_t id, const MessageQueue& queue) noexcept {
  return append({.done = true, .message = {.id = id}}, queue);
}

std::expected<void, Error> QueueFile::append(const QueueRecord& record, const MessageQueue& queue) noexcept {
  if (torn_ || size_ > most_) {
    if (auto done = compact(queue); !done) return done;
  }
  auto room = Buffer::take(record_bytes(record.message));
  if (!room) return std::unexpected(room.error());
  const std::size_t size = write_record(room->bytes(), record);
  torn_ = true;
  if (auto written = file_.write_all(room->bytes().first(size)); !written) return written;
  if (sync_ && !record.done) {
    if (auto synced = file_.sync(); !synced) return synced;
  }
  torn_ = false;
  size_ += size;
  return {};
}

std::expected<void, Error> QueueFile::compact(const MessageQueue& queue) noexcept {
  std::size_t size = kMagic.size();
  queue.each([&](const PublishFields& message) { size += record_bytes(message); });
  auto next = FileReplacement::begin(path_, 0600);
  if (!next) return std::unexpected(next.error());
  auto room = Buffer::take(Buffer::kLeast);
  if (!room) return std::unexpected(room.error());
  std::expected<void, Error> written = next->write(kMagic);
  queue.each([&](const PublishFields& message) {
    if (!written) return;
    const std::size_t needed = record_bytes(message);
    if (needed > room->size()) {
      room->give();
      room = Buffer::take(needed);
      if (!room) {
        written = std::unexpected(room.error());
        return;
      }
    }
    written = next->write(room->bytes().first(write_record(room->bytes(), {.message = message})));
  });
  if (!written) return written;
  if (auto done = next->commit(); !done) return done;
  auto file = File::open(path_, {.append = true});
  if (!file) return std::unexpected(file.error());
  file_ = std::move(*file);
  size_ = size;
  torn_ = false;
  return {};
}

}  // namespace coir::mqtt
