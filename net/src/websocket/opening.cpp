// The client's opening handshake.
#include <coir/http/request.h>
#include <coir/http/response.h>
#include <picohttpparser.h>

#include <algorithm>
#include <array>

#include "http/message/characters.h"
#include "socket/buffer_pool.h"
#include "socket/randomness.h"
#include "websocket/accept.h"
#include "websocket/handshake.h"
#include "websocket/websocket_state.h"

namespace coir::http {
namespace {

constexpr std::size_t kMostFields = 24;
static_assert(sizeof(Header) == sizeof(phr_header) && alignof(Header) >= alignof(phr_header));

std::unexpected<Error> refused_with(ErrorCode code, int sys = 0) noexcept {
  return std::unexpected(Error{code, sys});
}

bool is_target(std::string_view text) noexcept {
  return !text.empty() && text.front() == '/' &&
         std::ranges::all_of(text, [](char c) { return c > ' ' && c < 0x7f && c != '#'; });
}

// A function of its own, so that its frame is gone while the connection is waited for.
[[gnu::noinline]] std::expected<std::string_view, Error> subprotocol_of(
    std::string_view head, std::string_view key, std::span<const std::string_view> offered) noexcept {
  // As by parse_head each line is converted where it stands.
  std::array<Header, kMostFields> fields;
  std::size_t count = kMostFields;
  int minor = 0, status = 0;
  const char* phrase = nullptr;
  std::size_t phrase_size = 0;
  if (phr_parse_response(head.data(), head.size(), &minor, &status, &phrase, &phrase_size,
                         reinterpret_cast<phr_header*>(fields.data()), &count, 0) < 0 ||
      minor == 0) {
    return refused_with(ErrorCode::protocol);
  }
  for (Header& slot : std::span(fields).first(count)) {
    const phr_header raw = *reinterpret_cast<const phr_header*>(&slot);
    slot = {{raw.name, raw.name_len}, {raw.value, raw.value_len}};
  }
  const auto chosen = check_handshake(status, std::span(fields).first(count), key, offered);
  if (!chosen) return refused_with(ErrorCode::protocol, status == 101 ? 0 : status);
  return *chosen;
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

  // The head is looked for behind what was seen before, less the three bytes that its end may have begun in.
  constexpr std::string_view kEnd = "\r\n\r\n";
  std::size_t used = 0, end = std::string_view::npos;
  while (end == std::string_view::npos) {
    if (used == buffer->size()) return refused_with(ErrorCode::limit);
    const auto got = stream.read(buffer->bytes().subspan(used), deadline);
    if (!got) return std::unexpected(got.error() == ErrorCode::end_of_stream ? ErrorCode::truncated : got.error());
    const std::size_t from = used < kEnd.size() ? 0 : used - kEnd.size() + 1;
    used += *got;
    end = std::string_view(buffer->data(), used).find(kEnd, from);
  }
  end += kEnd.size();
  const auto subprotocol = subprotocol_of({buffer->data(), end}, key, request.subprotocols);
  if (!subprotocol) return std::unexpected(subprotocol.error());
  return WebSocketAccess::make(std::move(stream), WebSocketRole::client, options, *subprotocol,
                               {buffer->data() + end, used - end});
}

}  // namespace coir::http
