#pragma once

#include <coir/error.h>
#include <coir/http/client.h>

#include <cstddef>
#include <expected>
#include <string_view>
#include <utility>

#include "mcp/client/client_state.h"
#include "mcp/client/wire/growing_text.h"
#include "mcp/client/wire/message_stream.h"

namespace coir::mcp::detail {

// HttpCall is the memory of one HTTP request to a server and of what comes back: too much for a fiber's stack. In one block
// of account::mcp.
class HttpCall {
 public:
  static constexpr std::size_t kMostFields = 8;       // of the client's owner
  static constexpr std::size_t kMostParameters = 32;  // Mcp-Param-*

  HttpCall(McpClientState& state, const Agreement& session) noexcept;

  // post_message sends `body` and waits for the head of the response; get_stream asks for a stream, from `last_id` on
  // where there is one; del ends the session. Errors: those of http::Client::request; limit (too many fields).
  [[nodiscard]] std::expected<http::Response, Error> post_message(std::string_view body) noexcept;
  [[nodiscard]] std::expected<http::Response, Error> get_stream(std::string_view last_id) noexcept;
  [[nodiscard]] std::expected<http::Response, Error> end_session() noexcept;

  // begin_message sends `body` and does not wait for the answer. Errors: as post_message.
  [[nodiscard]] std::expected<http::detail::Transfer*, Error> begin_message(std::string_view body) noexcept;

  // name_request adds the fields by which a modern request repeats what its body says. Errors: no_memory, limit.
  [[nodiscard]] std::expected<void, Error> name_request(const Ask& ask) noexcept;

  GrowingText body;
  MessageStream messages;

 private:
  bool add(std::string_view name, std::string_view value) noexcept;
  bool add_common(std::string_view accept) noexcept;
  std::expected<http::Response, Error> request(http::ClientRequest request) noexcept;
  http::ClientRequest filled(http::ClientRequest request) noexcept;

  McpClientState& state_;
  const Agreement& session_;
  Buffer values_;  // of fields that are not written as they stand
  std::size_t values_used_ = 0;
  std::size_t count_ = 0;
  http::RequestField fields_[8 + kMostFields + kMostParameters];
};

// HttpCallPtr owns one; null where there is no memory for it.
class HttpCallPtr {
 public:
  HttpCallPtr(McpClientState& state, const Agreement& session) noexcept;
  ~HttpCallPtr();
  HttpCallPtr(const HttpCallPtr&) = delete;
  HttpCallPtr& operator=(const HttpCallPtr&) = delete;

  explicit operator bool() const noexcept { return call_ != nullptr; }
  HttpCall* operator->() const noexcept { return call_; }
  HttpCall& operator*() const noexcept { return *call_; }

 private:
  HttpCall* call_ = nullptr;
};

}  // namespace coir::mcp::detail
