// Input of an application: a request's parameters and content. Declared in fastcgi/fastcgi_exchange.h.
#include <algorithm>

#include "fastcgi/fastcgi_exchange.h"
#include "http/files/open_file.h"
#include "http/session/engine.h"
#include "outbound/fault.h"

namespace coir::http {
namespace {

constexpr std::size_t kPieceBytes = 16 * 1024;
// Content begins to be kept in so much.
constexpr std::size_t kLeastKept = Buffer::kLeast;
constexpr std::size_t kMostBeginning = 64 * 1024 + 64;
// So much is heard before content has its turn again.
constexpr std::size_t kMostHeard = 64 * 1024;

}  // namespace

FastCgiExchange::Outcome FastCgiExchange::send_parameters() noexcept {
  room = exchange.scratch();
  std::string_view beginning = write_beginning(room);
  for (std::size_t bytes = 16 * 1024; beginning.empty(); bytes = kMostBeginning) {
    if (room.size() >= kMostBeginning) return std::unexpected(Error{ErrorCode::invalid});
    if (auto grown = grow(std::max(bytes, room.size() + 1)); !grown) return grown;
    beginning = write_beginning(room);
  }
  if (auto sent = send_beginning(beginning, {}, {rules.idle}); !sent) return sent;
  sent_whole = input_bytes == 0;
  room = {};
  larger.give();
  return {};
}

// keeps_content: content that is here already keeps no process waiting.
bool FastCgiExchange::keeps_content() const noexcept {
  if (request.framing == Framing::chunked) return true;
  return request.framing == Framing::length && rules.buffers && rules.spool != nullptr &&
         session.body_left_ > session.end_ - session.body_at_;
}

// keep_content reads all content. It returns the status of what cannot be kept, else 0; client_left: it has not come whole.
// While the client sends nothing, all that it holds is what has come of the content and is in no file.
int FastCgiExchange::keep_content() noexcept {
  if (request.framing == Framing::length && request.content_length > rules.most_spooled) {
    exchange.close_after();
    return 413;
  }
  Error failed;
  std::size_t held = 0;  // bytes of content in `kept`
  for (bool waits = true; !session.body_done_;) {
    if (waits) {
      if (held == 0) kept.give();
      leave_memory();
      const auto awaited = session.await_content(-1);
      if (!awaited) {
        failed = awaited.error();
        break;
      }
    }
    if (!kept) {
      auto taken = Buffer::take(spooled.is_open() ? kPieceBytes : kLeastKept);
      if (!taken) return 503;
      kept = std::move(*taken);
    }
    const auto got = read_piece(kept.bytes().subspan(kFastCgiHeader + held));
    waits = !got && got.error().is_late() && !client_failed();
    if (waits) continue;
    if (!got) {
      failed = got.error();
      break;
    }
    held += *got;
    input_bytes += *got;
    if (input_bytes > rules.most_spooled) {
      exchange.close_after();
      return 413;
    }
    const bool is_full = kFastCgiHeader + held == kept.size();
    if (!spooled.is_open() && (!is_full || session.body_done_)) continue;
    if (!spooled.is_open() && kept.size() < kPieceBytes) {
      if (!kept.grow(kept.size())) return 503;
      continue;
    }
    if (const int status = save_piece(held); status != 0) return status;
    held = 0;
  }
  if (!session.body_done_) {
    // A client that has left shows in the session; else the kernel is short of what a wait takes.
    if (!client_failed() && !failed.ends_waits()) return 503;
    client_left = true;
  }
  // The content of the buffer is in the file.
  if (spooled.is_open()) kept.give();
  return 0;
}

// save_piece moves what `kept` holds to the file. It returns the status of what fails, else 0.
int FastCgiExchange::save_piece(std::size_t bytes) noexcept {
  if (!spooled.is_open()) {
    if (const int opened = spooled.open(exchange, rules.spool); opened < 0) return status_of(opened) == 503 ? 503 : 500;
  }
  const auto written = spooled.write({kept.data() + kFastCgiHeader, bytes});
  if (written) return 0;
  return written.error() == ErrorCode::no_memory || written.error() == ErrorCode::limit ? 503 : 500;
}

FastCgiExchange::Outcome FastCgiExchange::give_input() noexcept {
  if (kept || spooled.is_open()) return give_kept();
  Buffer buffer;
  for (bool waits = true;;) {
    if (waits) {
      buffer.give();
      leave_memory();
      const auto awaited = await_piece(*this);
      // A client that has left shows in the session; else the kernel is short of what a wait takes.
      if (!awaited) return std::unexpected(awaited.error());
      if (!*awaited) return {};
    }
    if (!buffer) {
      auto taken = Buffer::take(kPieceBytes);
      if (!taken) return std::unexpected(taken.error());
      buffer = std::move(*taken);
    }
    unrepeatable = true;
    const auto got = read_piece(buffer.bytes().subspan(kFastCgiHeader));
    waits = !got && got.error().is_late() && !client_failed();
    if (waits) continue;
    if (!got && got.error() == ErrorCode::end_of_stream) break;
    if (!got) {
      client_left = true;
      return std::unexpected(got.error());
    }
    if (auto given = give(buffer.bytes(), *got); !given || ended) return given;
  }
  // A wait for the last of the input may have taken the edge of what the application has said meanwhile.
  stream().mark_readable();
  return give(buffer.bytes(), 0);
}

FastCgiExchange::Outcome FastCgiExchange::give_kept() noexcept {
  if (kept) {
    if (auto given = give(kept.bytes(), static_cast<std::size_t>(input_bytes)); !given || ended) return given;
    return give(kept.bytes(), 0);
  }
  auto buffer = Buffer::take(kPieceBytes);
  if (!buffer) return std::unexpected(buffer.error());
  const std::span<char> place = buffer->bytes().subspan(kFastCgiHeader);
  for (std::uint64_t at = 0; at < input_bytes;) {
    const auto got = spooled.read_at(place, at);
    if (!got) return std::unexpected(Error{ErrorCode::no_memory});
    at += *got;
    if (auto given = give(buffer->bytes(), *got); !given || ended) return given;
  }
  return give(buffer->bytes(), 0);
}

// drop_input gives what was kept back once the application has it, unless it may have to be sent again.
void FastCgiExchange::drop_input() noexcept {
  if (is_repeatable()) return;
  kept.give();
  spooled.close();
}

// give sends a record whose content stands in `record` behind the place for its head; none: the end of all.
FastCgiExchange::Outcome FastCgiExchange::give(std::span<char> record, std::size_t bytes) noexcept {
  write_fastcgi_header(record.first<kFastCgiHeader>(), FastCgiType::input, id, bytes);
  auto sent = send_content({record.data(), kFastCgiHeader + bytes}, {rules.idle});
  if (!sent && sent.error() == ErrorCode::closed && !client_left) {
    // It reads no more; what it has said before still counts. One that waits for the rest hears that there is none.
    unrepeatable = unrepeatable || heard_any;
    stream().shutdown_write();
    sent = take_output();
  }
  sent_whole = sent && bytes == 0 && !ended;
  return sent;
}

// hear takes what the application has said, if anything, kMostHeard of it: it may wait for that before it reads on.
std::expected<bool, Error> FastCgiExchange::hear() noexcept {
  stream().mark_readable();
  for (std::size_t heard = 0; heard < kMostHeard; heard += records().size()) {
    auto read = read_more(Deadline::now());
    if (!read && read.error().is_late()) {
      leave_memory();
      return false;
    }
    if (!read) return std::unexpected(read.error());
    if (ended || stream().drained()) return ended;
  }
  session.engine_.yield_turn();
  return false;
}

}  // namespace coir::http
