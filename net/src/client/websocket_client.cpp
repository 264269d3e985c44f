#include <coir/http/websocket.h>

#include <coir/format.h>

#include <algorithm>

#include "client/transfer.h"
#include "http/text/characters.h"
#include "outbound/basic_field.h"

namespace coir::http {

namespace detail {

// open_stream is a connection to the server of url_text over which nothing has been said, through a tunnel where there
// is a proxy.
[[gnu::noinline]] std::expected<Stream, Error> Transfer::open_stream() noexcept {
  if (auto chosen = choose_way(); !chosen) return std::unexpected(chosen.error());
  if (auto taken = grow(0); !taken) return std::unexpected(taken.error());
  fresh = tunnels = true;
  if (auto connected = connect(); !connected) return std::unexpected(connected.error());
  return std::move(stream());
}

}  // namespace detail

namespace {

// as_http writes an address of ws or wss as one of http or https.
std::expected<std::string_view, Error> as_http(std::string_view url, std::span<char> room) noexcept {
  const bool secure = begins_ignoring_case(url, "wss:");
  if (!secure && !begins_ignoring_case(url, "ws:")) return std::unexpected(Error{ErrorCode::unsupported});
  Formatter text(room);
  text.add(secure ? "https" : "http", after(url, secure ? 3 : 2));
  if (!text.fits()) return std::unexpected(Error{ErrorCode::limit});
  return text.text();
}

// has_line tells whether header lines have a field called `name`.
bool has_line(std::string_view lines, std::string_view name) noexcept {
  while (!lines.empty()) {
    const std::string_view line = until(lines, '\n');
    if (begins_ignoring_case(line, name) && after(line, name.size()).starts_with(':')) return true;
    lines = after(lines, std::min(line.size() + 1, lines.size()));
  }
  return false;
}

}  // namespace

std::expected<WebSocket, Error> connect_websocket(Client& client, std::string_view url, const WebSocketWish& wish,
                                                  Deadline deadline) noexcept {
  auto room = Buffer::take(Buffer::kLeast);
  if (!room) return std::unexpected(room.error());
  const std::size_t half = room->size() / 2;
  const auto address = as_http(url, room->bytes().first(half));
  if (!address) return std::unexpected(address.error());
  ClientRequest asked;
  asked.url = *address;
  asked.deadline = deadline;
  detail::Transfer transfer(client.core(), asked);
  auto stream = transfer.open_stream();
  if (!stream) return std::unexpected(stream.error());
  const Url& to = transfer.url;
  const std::string_view target =
      format(room->bytes().subspan(half), to.path, to.query.data() != nullptr ? "?" : "", to.query);
  // The transfer has said all it has to.
  Formatter fields(transfer.room);
  if (!has_line(wish.fields, "Authorization") && !add_basic_field(fields, "Authorization", to.user_info)) {
    return std::unexpected(Error{ErrorCode::invalid});
  }
  fields.add(wish.fields);
  if (!fields.fits()) return std::unexpected(Error{ErrorCode::limit});
  const Deadline answered = transfer.until(Phase::first_byte);
  return WebSocket::connect(
      std::move(*stream),
      {.host = to.authority, .target = target, .subprotocols = wish.subprotocols, .fields = fields.text()},
      wish.options, answered);
}

}  // namespace coir::http
