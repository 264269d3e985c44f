#pragma once

#include <coir/cancel_scope.h>
#include <coir/mcp/client.h>
#include <coir/mutex.h>
#include <coir/spinlock.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "mcp/client/wire/growing_text.h"
#include "mcp/client/wire/reply.h"

namespace coir::mcp::detail {

class Program;

// Agreement is how the server is spoken to: the revision, and of a legacy server by HTTP the session's name.
struct Agreement {
  static constexpr std::size_t kMostName = 256;

  std::optional<Version> version;
  std::uint32_t generation = 0;  // counts what was agreed on, so that a loss is noticed once
  std::uint32_t instance = 0;    // of the program: how often it was started
  std::uint16_t name_bytes = 0;
  char name[kMostName];

  std::string_view name_text() const noexcept { return {name, name_bytes}; }
  bool modern() const noexcept { return version && era_of(*version) == Era::modern; }
};

// McpClientState is what an McpClient is a handle of.
struct McpClientState {
  McpClientState(const McpClientOptions& given, std::optional<http::Client>&& by_http) noexcept
      : options(given), http(std::move(by_http)) {}

  const McpClientOptions options;
  std::optional<http::Client> http;
  Program* program = nullptr;

  Mutex negotiating;  // held while the revision is found out
  Reply hello;        // what a legacy server said of itself; under `negotiating`
  Spinlock lock;      // of `session`
  Agreement session;

  Atomic<std::uint64_t> last_id = 0;
  Atomic<bool> closed = false;
  McpClientCounters counters;

  std::uint64_t new_id() noexcept { return last_id.fetch_add(1, std::memory_order_relaxed) + 1; }
};

// Ask is one request of a caller's, as it is sent and sent again.
struct Ask {
  const McpRequest& request;
  const CallOptions& options;
  std::string_view more = {};  // a JSON object of further params: the answers to what the server has asked
  std::uint64_t id = 0;        // of the latest sending
  bool to_listen = false;      // the legacy way: a stream without a request
};

// Outcome is how one sending ended: by a result, by an error of JSON-RPC, or by neither.
struct Outcome {
  Reply reply;
  Error error;
  int status = 0;  // HTTP's, where it was no success

  static Outcome of(Error why, int with_status = 0) noexcept { return {{}, why, with_status}; }
  bool answered() const noexcept { return bool(reply) && reply->kind == MessageKind::result; }
  // conclude is the outcome as a caller takes it, whose own deadline `scope` is.
  std::expected<Answer, Failure> conclude(const CancelScope& scope) && noexcept;
};

// ask_server sends a request, in whatever way the server wants, until it is answered; exchange.cpp has it. agree finds out
// the way, forget makes sure that it is found out anew unless somebody has done so; negotiation.cpp has them.
Outcome ask_server(McpClientState& state, Ask& ask) noexcept;
Outcome agree(McpClientState& state, Agreement& into) noexcept;
void forget(McpClientState& state, std::uint32_t generation) noexcept;

// send_once sends once. `made` receives the name of a session that begins. notify sends a notification or an answer, which
// is a whole JSON-RPC message. exchange.cpp has them, http_transport.cpp and program.cpp the two ways.
Outcome send_once(McpClientState& state, const Agreement& session, Ask& ask, Agreement* made = nullptr) noexcept;
Error notify(McpClientState& state, const Agreement& session, std::string_view message) noexcept;
Outcome send_by_http(McpClientState& state, const Agreement& session, Ask& ask, Agreement* made) noexcept;
Error notify_by_http(McpClientState& state, const Agreement& session, std::string_view message) noexcept;
std::expected<void, Error> leave_by_http(McpClientState& state, const Agreement& session) noexcept;
Outcome send_by_program(McpClientState& state, const Agreement& session, Ask& ask) noexcept;
Error notify_by_program(McpClientState& state, std::string_view message) noexcept;

// is_final tells whether an outcome is the caller's as it stands; else the request is to be sent again, by ask_server.
bool is_final(McpClientState& state, const Agreement& session, const Ask& ask, const Outcome& outcome) noexcept;

// take hands a message that is no answer to whoever asks: a notification to `told`, a question to `asked`, whose answer
// is sent. answer_questions writes the params of the next round after a result of `input_required`. Errors: unsupported
// (what is asked was not offered), no_memory, limit; protocol. questions.cpp has both.
void take(McpClientState& state, const Agreement& session, const Ask& ask, const Reply& message) noexcept;
std::expected<void, Error> answer_questions(McpClientState& state, const Ask& ask, const ReplyBlock& result,
                                            GrowingText& into) noexcept;

// tell_cancelled has the server drop a request of ours, even where the caller is cancelled.
void tell_cancelled(McpClientState& state, const Agreement& session, std::uint64_t id) noexcept;

}  // namespace coir::mcp::detail
