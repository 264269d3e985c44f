// The client's opening handshake.
#include <coir/http/wire/request.h>
#include <coir/http/wire/response.h>
#include <string.h>

#include <algorithm>
#include <array>

#include "base/buffer_pool.h"
#include "base/randomness.h"
#include "http/message/response_parser.h"
#include "http/text/characters.h"
#include "websocket/accept.h"
#include "websocket/handshake.h"
#include "websocket/websocket_state.h"

namespace coir::http {
namespace {

constexpr std::size_t kMostFields = 24;
constexpr unsigned kMostEarlyHeads = 16;

std::unexpected<Error> refused_with(ErrorCode code, int sys = 0) noexcept {
  return std::unexpected(Error{code, sys});
}

bool is_target(std::string_view text) noexcept {
  return !text.empty() && text.front() == '/' &&
         std::ranges::all_of(text, [](char c) { return c > ' ' && c < 0x7f && c != '#'; });
}

// Heard is what has been heard of the answer: `bytes` of a head, if that is whole, and whether it is the last one.
struct Heard {
  std::size_t bytes = 0;
  bool final = false;
  std::string_view subprotocol = {};
};

// A function of its own, so that its frame is gone while the connection is waited for.
[[gnu::noinline]] std::expected<Heard, Error> hear(std::span<char> bytes, std::size_t seen, std::string_view key,
                                                   std::span<const std::string_view> offered) noexcept {
  std::array<Header, kMostFields> fields;
  ParsedResponse response;
  const auto parsed = parse_response(bytes, seen, fields, AnswerTo::other, response);
  if (parsed.state == ResponseState::incomplete) return Heard();
  if (parsed.state != ResponseState::complete || response.minor == 0) return refused_with(ErrorCode::protocol);
  if (response.status < 200 && response.status != 101) return Heard{.bytes = parsed.head_bytes};
  const auto chosen = check_handshake(response.status, response.headers, key, offered);
  if (!chosen) return refused_with(ErrorCode::protocol, response.status == 101 ? 0 : response.status);
  return Heard{.bytes = parsed.head_bytes, .final = true, .subprotocol = *chosen};
}

}  // namespace

std::expected<WebSocket, Error> WebSocket::connect(Stream&& stream, const WebSocketRequest& request,
                                                   const WebSocketOptions& options, Deadline deadline) noexcept {
  auto buffer = Buffer::take(Buffer::kLeast);
  if (!buffer) return std::unexpected(buffer.error());
  char random[16];
  fill_with_randomness(random);
  const auto key_memory = websocket_key(random);
  const std::string_view key(key_memory.data(), key_memory.size());

  if (!is_target(request.target)) return refused_with(ErrorCode::invalid);
  ResponseHead head(buffer->bytes());
  head.fixed("GET ");
  head.fixed(request.target);
  head.fixed(" HTTP/1.1\r\n");
  head.field("Host", request.host);
  write_handshake_fields(head, key, request.subprotocols);
  head.fixed(request.fields);
  const std::string_view asked = head.finish();
  if (asked.empty()) return refused_with(ErrorCode::invalid);
  if (auto sent = stream.write(asked, deadline); !sent) return std::unexpected(sent.error());

  std::size_t used = 0, seen = 0;
  for (unsigned interim = 0; interim <= kMostEarlyHeads;) {
    const auto heard = hear(buffer->bytes().first(used), seen, key, request.subprotocols);
    if (!heard) return std::unexpected(heard.error());
    if (heard->final) {
      return WebSocketAccess::make(std::move(stream), WebSocketRole::client, options, heard->subprotocol,
                                   {buffer->data() + heard->bytes, used - heard->bytes});
    }
    if (heard->bytes != 0) {
      // 100 and 103 say nothing to a WebSocket.
      ++interim;
      used -= heard->bytes;
      memmove(buffer->data(), buffer->data() + heard->bytes, used);
      seen = 0;
      continue;
    }
    if (used == buffer->size()) return refused_with(ErrorCode::limit);
    const auto got = stream.read(buffer->bytes().subspan(used), deadline);
    if (!got) return std::unexpected(got.error() == ErrorCode::end_of_stream ? ErrorCode::truncated : got.error());
    seen = used;
    used += *got;
  }
  return refused_with(ErrorCode::protocol);
}

}  // namespace coir::http
