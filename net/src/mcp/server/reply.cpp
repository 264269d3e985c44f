#include <coir/format.h>
#include <string.h>

#include "http/session/keeper.h"
#include "mcp/message/raw_json.h"
#include "mcp/server/incoming.h"

namespace coir::mcp {
namespace {

// reply.cpp: the Reply of incoming.h.

constexpr std::size_t kMostStreams = 8;  // of a session, remembered

}  // namespace

Reply::~Reply() {
  if (stream_ == nullptr) return;
  core_.sessions.end_stream(*session_, stream_);
  core_.sessions.release_stream(*session_, stream_);
}

bool Reply::begin_stream() noexcept {
  if (streams_) return true;
  if (!may_stream() || gone_) return false;
  streams_ = true;
  http::ResponseHead& head = exchange_.start(200);
  head.fixed("Content-Type: text/event-stream\r\nCache-Control: no-store\r\nX-Accel-Buffering: no\r\n");
  if (era_ == Era::modern) {
    gone_ = !exchange_.begin_chunked();
    return !gone_;
  }
  if (!http::Keeper::open(exchange_, http::Keeper::Opening::content)) {
    gone_ = true;
  } else if (auto detached = http::Detached::from(exchange_)) {
    detached_.emplace(std::move(*detached));
  } else {
    gone_ = true;
  }
  if (session_ == nullptr) return !gone_;
  const std::int64_t forget_before = monotonic_ns() - core_.options.stream_lifetime.count() * 1'000'000;
  stream_ = core_.sessions.begin_stream(*session_, kMostStreams, forget_before);
  // The first event has an id by which the client comes again, and nothing else. Clients of the earlier revisions take
  // each event's data for a message.
  if (stream_ != nullptr && session_->version >= Version::v2025_11_25) {
    char event[64];
    write(format(event, "id: ", stream_->number, "-0\nretry: ", core_.options.retry.count(), "\ndata: \n\n"));
  }
  return !gone_ || stream_ != nullptr;
}

bool Reply::write(std::string_view bytes) noexcept {
  if (gone_) return false;
  bool written;
  if (era_ == Era::modern) {
    written = exchange_.write(bytes) && exchange_.flush();
  } else {
    written = detached_ && detached_->write(bytes);
  }
  gone_ = !written;
  if (gone_ && detached_) detached_->close();
  return written;
}

bool Reply::send(std::string_view json) noexcept {
  char room[512];
  Text event(room, core_.options.max_result_bytes + 64);
  if (stream_ != nullptr) {
    char line[40];
    put(event, format(line, "id: ", stream_->number, "-", stream_->events + 1, "\n"));
  }
  put(event, "data: ");
  // The program's JSON, or another server's, may have several lines.
  if (char* const data = event.take(json.size())) {
    memcpy(data, json.data(), json.size());
    detail::blank_ends_of_lines({data, json.size()});
  }
  put(event, "\n\n");
  if (event.failed()) return send_in_pieces(json);
  if (stream_ != nullptr) record(*stream_, event.view(), core_.options.max_stream_bytes);
  return write(event.view()) || stream_ != nullptr;
}

// send_in_pieces sends an event for which there is no memory. A stream does not record it. Its frame is its own: send has
// as much already.
[[gnu::noinline]] bool Reply::send_in_pieces(std::string_view json) noexcept {
  bool sent = write("data: ");
  while (sent && !json.empty()) {
    char piece[512];
    const std::size_t bytes = json.copy(piece, sizeof piece);
    detail::blank_ends_of_lines({piece, bytes});
    json.remove_prefix(bytes);
    sent = write({piece, bytes});
  }
  return sent && write("\n\n");
}

bool Reply::notify(std::string_view json) noexcept {
  return begin_stream() && send(json);
}

void Reply::finish(int status, std::string_view json) noexcept {
  if (batch_ != nullptr) {
    if (batch_->size() > 1) put(*batch_, ",");
    put(*batch_, json);
  } else if (!streams_) {
    exchange_.respond(status, "application/json", json);
  } else {
    send(json);
    if (detached_ && !gone_) detached_->close();
  }
}

void Reply::disconnect() noexcept {
  if (era_ == Era::modern || session_ == nullptr || !begin_stream() || stream_ == nullptr) return;
  gone_ = true;
  if (detached_) detached_->close();
}

}  // namespace coir::mcp
