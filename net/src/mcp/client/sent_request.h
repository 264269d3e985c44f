#pragma once

#include "client/transfer.h"
#include "mcp/client/client_state.h"

namespace coir::mcp::detail {

// SentRequest is a request that a modern server has been sent by HTTP and has not answered: its connection, which waits
// without a buffer. http_transport.cpp
class SentRequest {
 public:
  SentRequest() noexcept = default;
  SentRequest(const SentRequest&) = delete;
  SentRequest& operator=(const SentRequest&) = delete;
  ~SentRequest();

  // begin sends. Errors: those of http::Client::request; no_memory, limit.
  [[nodiscard]] std::expected<void, Error> begin(McpClientState& state, const Agreement& session, Ask& ask) noexcept;
  // waits tells whether nothing of the answer had come when begin returned; then somebody may rest on fd.
  bool waits() const noexcept { return sent_.connection != nullptr; }
  int fd() const noexcept { return sent_.connection->stream.fd(); }
  // answer_by is when the client's time for an answer is over: finish then tells so at once.
  Deadline answer_by() const noexcept { return sent_.answer_by; }
  // finish waits for the answer, once. A redirect is its end.
  Outcome finish(McpClientState& state, const Agreement& session, Ask& ask) noexcept;
  // drop closes the connection, which a modern server takes for the end of the request.
  void drop() noexcept;

 private:
  http::detail::SentTransfer sent_;
  http::detail::Transfer* transfer_ = nullptr;  // something has come
};

}  // namespace coir::mcp::detail
