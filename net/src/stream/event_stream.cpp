#include <coir/cancellation.h>
#include <coir/events.h>
#include <coir/format.h>
#include <string.h>

#include <algorithm>
#include <span>

#include "http/session/keeper.h"
#include "socket/kernel.h"
#include "stream/event_encoder.h"

namespace coir::http {
namespace {

using namespace std::chrono_literals;

// Small pieces of an event are gathered on the fiber's stack; larger ones are sent from where they are.
constexpr std::size_t kGathered = 512;

}  // namespace

std::expected<EventStream, Error> EventStream::open(Exchange& exchange, const EventStreamOptions& options) noexcept {
  const Method method = exchange.request().method;
  if (method != Method::get && method != Method::head) {
    exchange.respond_status(405, "Allow: GET, HEAD\r\n");
    return std::unexpected(Error{ErrorCode::invalid});
  }
  ResponseHead& head = exchange.start(200);
  head.field("Content-Type", "text/event-stream");
  head.fixed("Cache-Control: no-store\r\nX-Accel-Buffering: no\r\n");
  if (auto opened = Keeper::open(exchange, Keeper::Opening::content); !opened) return std::unexpected(opened.error());
  auto detached = Detached::from(exchange);
  if (!detached) return std::unexpected(detached.error());

  EventStream stream(std::move(*detached), options);
  if (options.vanished_after > 0ms) {
    kernel::give_up_after(stream.detached_.stream().fd(), static_cast<unsigned>(options.vanished_after.count()));
  }
  // Something at once: some clients, and what lies between, tell their program nothing of a stream without a byte.
  char memory[64];
  const std::string_view first =
      options.retry > 0ms ? format(memory, "retry: ", options.retry.count(), "\n\n") : kKeepAlive;
  if (auto begun = stream.write(first, Deadline::never()); !begun) {
    return std::unexpected(Error{ErrorCode::closed});
  }
  return stream;
}

std::expected<void, Error> EventStream::send(const ServerEvent& event, Deadline deadline) noexcept {
  if (!is_event(event)) return std::unexpected(Error{ErrorCode::invalid});
  if (auto heard = hear(); !heard) return heard;
  char gathered[kGathered];
  std::size_t used = 0;
  EventEncoder encoder(event);
  for (std::string_view piece = encoder.next(); !piece.empty(); piece = encoder.next()) {
    if (piece.size() > kGathered - used) {
      if (auto written = write({gathered, used}, deadline); !written) return written;
      used = 0;
    }
    if (piece.size() <= kGathered) {
      memcpy(gathered + used, piece.data(), piece.size());
      used += piece.size();
    } else if (auto written = write(piece, deadline); !written) {
      return written;
    }
  }
  return write({gathered, used}, deadline);
}

std::expected<void, Error> EventStream::keep_alive(Deadline deadline) noexcept {
  if (auto heard = hear(); !heard) return heard;
  return write(kKeepAlive, deadline);
}

std::expected<void, Error> EventStream::pause(Deadline until) noexcept {
  for (;;) {
    // The wait is a read, which finds that the client has hung up.
    char dropped[64];
    const Deadline next = std::min(until, keep_alive_at_);
    if (auto heard = hear(); !heard) return heard;
    const auto got = read_while_serving(dropped, next);
    if (!got && got.error().ends_waits()) return std::unexpected(got.error());
    if (!got && !got.error().is_late()) return end(Error{ErrorCode::closed});
    if (until.passed()) return {};
    if (!got && keep_alive_at_.passed()) {
      // A client that takes single bytes must not hold the pause for ever.
      if (auto written = keep_alive(detached_.write_limit()); !written) return written;
    }
  }
}

// read_while_serving is a read that the server's stop ends with closed.
std::expected<std::size_t, Error> EventStream::read_while_serving(std::span<char> into, Deadline deadline) noexcept {
  CancelScope serving;
  const CancellationWatch watch(detached_.stops(), serving);
  auto got = detached_.stream().read(into, deadline);
  if (!got && got.error() == ErrorCode::cancelled && serving.caused(got.error())) {
    return std::unexpected(Error{ErrorCode::closed});
  }
  return got;
}

// hear drops what the client says. It fails when the client has hung up, or the server stops.
std::expected<void, Error> EventStream::hear() noexcept {
  if (detached_.is_closed()) return std::unexpected(Error{ErrorCode::closed});
  if (detached_.stops().cancelled()) return end(Error{ErrorCode::closed});
  constexpr int kMost = 8;
  char dropped[64];
  for (int reads = 0; reads < kMost; ++reads) {
    const auto got = detached_.stream().read(dropped, Deadline::now());
    if (got) continue;
    if (got.error() == ErrorCode::timed_out) return {};
    return got.error() == ErrorCode::cancelled ? std::unexpected(got.error()) : end(Error{ErrorCode::closed});
  }
  return end(Error{ErrorCode::closed});
}

std::expected<void, Error> EventStream::write(std::string_view bytes, Deadline deadline) noexcept {
  if (auto written = detached_.write(bytes, deadline); !written) {
    // The client must not take what was sent in part for whole.
    detached_.abandon();
    return std::unexpected(written.error());
  }
  keep_alive_at_ = keep_alive_ > 0ms ? Deadline::after(keep_alive_) : Deadline::never();
  return {};
}

std::unexpected<Error> EventStream::end(Error error) noexcept {
  detached_.close();
  return std::unexpected(error);
}

}  // namespace coir::http
