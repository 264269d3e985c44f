#pragma once

#include <coir/deadline.h>
#include <coir/error.h>
#include <coir/file.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string_view>

#include "mqtt/message_queue.h"

namespace coir::mqtt {

// QueueRecord is a piece of a queue file: a message that was queued, or the id of one that is done with.
struct QueueRecord {
  bool done = false;
  PublishFields message;  // of one that is done only the id
};

// parse_record takes the record at the front of `bytes` and tells its size; 0: there is none that is whole and whose
// checksum holds. write_record writes one to the front of `out`; 0: it does not fit.
[[nodiscard]] std::size_t parse_record(std::string_view bytes, QueueRecord& record) noexcept;
[[nodiscard]] std::size_t write_record(std::span<char> out, const QueueRecord& record) noexcept;

// QueueFile keeps the messages of QoS 1 of a MessageQueue in a file that records are appended to:
//
//   coirmq1\n | length, CRC-32, id, kind, topic's length, topic, payload | ...        little endian
//
// A record that was cut off in the middle ends the file when it is read again. Once the file is twice as long as the
// queue may be it is replaced by one that holds what is still queued.
//
// An append is written before the call returns, so that it survives the process. It is synced only where `sync` asks:
// else a loss of power may take what the kernel has not written yet, for a sync of flash takes some 10 ms.
class QueueFile {
 public:
  // open reads what an earlier run has left into the queue, the oldest dropped where all does not fit, and goes on with
  // the file. Errors: invalid (the file is none of this kind), limit (it is too long to be one), File's.
  [[nodiscard]] std::expected<void, Error> open(const char* path, bool sync, std::size_t queue_bytes,
                                                MessageQueue& queue) noexcept;
  bool is_open() const noexcept { return path_ != nullptr; }

  // add is called before the message is queued, remove after it has left. Errors: File's, no_memory.
  [[nodiscard]] std::expected<void, Error> add(const PublishFields& message, const MessageQueue& queue) noexcept;
  [[nodiscard]] std::expected<void, Error> remove(std::uint16_t id, const MessageQueue& queue) noexcept;

 private:
  std::expected<void, Error> append(const QueueRecord& record, const MessageQueue& queue) noexcept;
  std::expected<void, Error> compact(const MessageQueue& queue) noexcept;

  File file_;
  const char* path_ = nullptr;
  std::size_t size_ = 0, most_ = 0;
  bool sync_ = false;
  bool torn_ = false;  // an append has failed in the middle
};

}  // namespace coir::mqtt
