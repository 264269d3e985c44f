#include <coir/mcp/client.h>

#include <coir/cancel_scope.h>
#include <coir/mcp/detail/account.h>

#include "base/charged.h"
#include "mcp/client/client_state.h"
#include "mcp/client/http_call.h"
#include "mcp/client/program.h"

namespace coir::mcp {

using detail::McpClientState;

namespace {

std::expected<http::Client, Error> http_client(const McpClientOptions& options) noexcept {
  http::ClientOptions http;
  if (options.http != nullptr) http = *options.http;
  // A tool may take its time, and a stream of changes rests: deadlines are the caller's.
  http.timeouts.first_byte = options.silence;
  http.timeouts.between_bytes = options.silence;
  return http::Client::create(http);
}

bool is_sound(const McpClientOptions& options) noexcept {
  if (options.url.empty() == options.command.empty()) return false;
  if (!options.command.empty() && (options.command.front() == nullptr || options.command.back() != nullptr))
    return false;
  return options.max_message > 0 && options.max_message <= Buffer::kMost &&
         options.fields.size() <= detail::HttpCall::kMostFields;
}

}  // namespace

std::expected<McpClient, Error> McpClient::create(const McpClientOptions& options) noexcept {
  if (!is_sound(options)) return std::unexpected(Error{ErrorCode::invalid});
  std::optional<http::Client> http;
  if (!options.url.empty()) {
    auto made = http_client(options);
    if (!made) return std::unexpected(made.error());
    http.emplace(std::move(*made));
  }
  auto* const state = construct_charged<McpClientState>(account::mcp, options, std::move(http));
  if (state == nullptr) return std::unexpected(Error{ErrorCode::no_memory});
  McpClient client(state);
  if (!state->http) {
    state->program = construct_charged<detail::Program>(account::mcp, *state);
    if (state->program == nullptr) return std::unexpected(Error{ErrorCode::no_memory});
  }
  return client;
}

McpClient::~McpClient() {
  if (state_ == nullptr) return;
  destroy_charged(account::mcp, state_->program);
  destroy_charged(account::mcp, state_);
}

std::expected<void, Error> McpClient::run() noexcept {
  if (state_->program == nullptr) return {};
  return state_->program->run();
}

void McpClient::close() noexcept {
  state_->closed.store(true, std::memory_order_release);
  if (state_->program != nullptr) state_->program->close();
}

std::expected<Answer, Failure> McpClient::request(const McpRequest& request, const CallOptions& options) noexcept {
  const Deadline deadline = options.deadline.is_never() ? Deadline::after(state_->options.timeout) : options.deadline;
  CancelScope scope(deadline);
  detail::Ask ask{.request = request, .options = options};
  return detail::ask_server(*state_, ask).conclude(scope);
}

std::expected<Answer, Failure> detail::Outcome::conclude(const CancelScope& scope) && noexcept {
  if (answered()) return Answer(reply.release());
  if (reply) {
    const Error why = error_by_code(error_code(*reply));
    return std::unexpected(Failure(why, reply.release()));
  }
  if (scope.caused(error)) error.scope = 0;
  return std::unexpected(Failure(error));
}

std::expected<void, Error> McpClient::leave(Deadline deadline) noexcept {
  CancelScope scope(deadline);
  detail::Agreement session;
  {
    const Locked locked(state_->lock);
    session = state_->session;
  }
  if (!state_->http || !session.version || session.name_bytes == 0) return {};
  detail::forget(*state_, session.generation);
  auto left = detail::leave_by_http(*state_, session);
  if (!left && scope.caused(left.error())) left.error().scope = 0;
  return left;
}

std::optional<Version> McpClient::version() const noexcept {
  const Locked locked(state_->lock);
  return state_->session.version;
}

const McpClientCounters& McpClient::counters() const noexcept {
  return state_->counters;
}

}  // namespace coir::mcp
