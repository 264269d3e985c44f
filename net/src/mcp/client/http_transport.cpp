// One request by HTTP, as client_state.h declares it: the POST, what comes before the answer, and, in the legacy era, the
// stream taken up again where it broke.
#include <coir/cancel_scope.h>
#include <coir/fiber.h>

#include <cstring>

#include "client/client_fault.h"
#include "client/transfer.h"
#include "mcp/client/client_state.h"
#include "mcp/client/envelope.h"
#include "mcp/client/http_call.h"
#include "mcp/client/sent_request.h"
#include "outbound/reconnect_pause.h"

namespace coir::mcp::detail {

using namespace std::chrono_literals;

namespace {

constexpr std::size_t kMostErrorBytes = 64 * 1024;
constexpr int kMostFruitless = 8;  // attempts to resume a stream that brought nothing
constexpr ReconnectPause::Rules kResumption{.pause = 1'000ms, .longest = 60'000ms};

bool is_callers(Error error) noexcept {
  return error == ErrorCode::cancelled || error == ErrorCode::timed_out;
}

// keep_name keeps a session's name. False: it is too long.
bool keep_name(Agreement* made, const http::Response& response) noexcept {
  const std::string_view name = response.header(kSessionField);
  if (made == nullptr) return true;
  if (name.size() > Agreement::kMostName) return false;
  if (!name.empty()) std::memcpy(made->name, name.data(), name.size());
  made->name_bytes = static_cast<std::uint16_t>(name.size());
  return true;
}

// refusal is the outcome of a response that is no success: its JSON-RPC error, where it has one.
[[gnu::noinline]] Outcome refusal(HttpCall& call, http::Response&& response, std::size_t most) noexcept {
  const int status = response.status();
  Outcome outcome = Outcome::of(http::status_error(status), status);
  if (!call.messages.begin(std::move(response))) return outcome;
  const auto text = call.messages.next();
  if (!text) return is_callers(text.error()) ? Outcome::of(text.error()) : std::move(outcome);
  auto reply = Reply::read(*text, std::min(most, kMostErrorBytes));
  if (reply && (*reply)->kind == MessageKind::error) outcome.reply = std::move(*reply);
  call.messages.drain();
  return outcome;
}

// resume asks for the rest of a stream that has ended before the answer.
[[gnu::noinline]] std::expected<void, Error> resume(McpClientState& state, HttpCall& call,
                                                    std::chrono::milliseconds pause) noexcept {
  call.messages.end();
  if (auto slept = sleep(pause); !slept) return slept;
  auto response = call.get_stream(call.messages.last_id());
  if (!response) return std::unexpected(response.error());
  if (response->status() != 200) return std::unexpected(http::status_error(response->status()));
  state.counters.resumed.fetch_add(1, std::memory_order_relaxed);
  return call.messages.begin(std::move(*response));
}

// hear reads messages until the answer. A legacy stream that breaks is resumed where it has told how.
Outcome hear_answer(McpClientState& state, const Agreement& session, Ask& ask, HttpCall& call) noexcept {
  int fruitless = 0;
  ReconnectPause waits;
  for (;;) {
    const auto text = call.messages.next();
    if (!text) {
      const Error error = text.error();
      const bool may_resume = !session.modern() && !call.messages.last_id().empty() && !is_callers(error) &&
                              error != ErrorCode::limit && error != ErrorCode::no_memory;
      if (!may_resume || fruitless == kMostFruitless) {
        return Outcome::of(error == ErrorCode::end_of_stream ? Error{ErrorCode::truncated} : error);
      }
      const auto pause = waits.after(fruitless++ == 0, kResumption, call.messages.retry_ms());
      const auto resumed = resume(state, call, pause);
      // A server that is away for a moment is asked again; one that has forgotten the stream is not.
      if (!resumed && (is_callers(resumed.error()) || resumed.error() == ErrorCode::not_found ||
                       resumed.error() == ErrorCode::invalid)) {
        return Outcome::of(is_callers(resumed.error()) ? resumed.error() : Error{ErrorCode::truncated});
      }
      continue;
    }
    auto message = Reply::read(*text, state.options.max_message);
    if (!message) {
      if (message.error() == ErrorCode::limit || message.error() == ErrorCode::no_memory) {
        return Outcome::of(message.error());
      }
      state.counters.ignored.fetch_add(1, std::memory_order_relaxed);
      if (!call.messages.of_events()) return Outcome::of(ErrorCode::protocol);
      continue;
    }
    fruitless = 0;
    const MessageKind kind = (*message)->kind;
    if (kind == MessageKind::request || kind == MessageKind::notification) {
      take(state, session, ask, *message);
    } else if (!ask.to_listen && (*message)->id == ask.id) {
      call.messages.drain();
      return {std::move(*message), {}, 0};
    } else if (kind == MessageKind::error && (*message)->id_text.size() <= 4 && !call.messages.of_events()) {
      return {std::move(*message), {}, 0};  // it could not tell whose: null, or none
    } else {
      state.counters.ignored.fetch_add(1, std::memory_order_relaxed);
    }
  }
}

Outcome hear_response(McpClientState& state, const Agreement& session, Ask& ask, HttpCall& call,
                      http::Response&& response) noexcept {
  auto begun = call.messages.begin(std::move(response));
  return begun ? hear_answer(state, session, ask, call) : Outcome::of(begun.error());
}

Outcome listen_by_get(McpClientState& state, const Agreement& session, Ask& ask, HttpCall& call) noexcept {
  auto response = call.get_stream({});
  if (!response) return Outcome::of(response.error());
  const int status = response->status();
  if (status == 405) return Outcome::of(ErrorCode::unsupported);
  if (status != 200) return Outcome::of(http::status_error(status), status);
  if (auto begun = call.messages.begin(std::move(*response)); !begun) return Outcome::of(begun.error());
  if (auto acknowledged = Reply::read(R"({"method":"notifications/subscriptions/acknowledged","params":{}})", 128)) {
    take(state, session, ask, *acknowledged);
  }
  return hear_answer(state, session, ask, call);
}

}  // namespace

Outcome send_by_http(McpClientState& state, const Agreement& session, Ask& ask, Agreement* made) noexcept {
  HttpCallPtr call(state, session);
  if (!call) return Outcome::of(ErrorCode::no_memory);
  if (ask.to_listen) return listen_by_get(state, session, ask, *call);
  if (auto written = write_request(call->body, state, session, ask); !written) return Outcome::of(written.error());
  if (session.modern()) {
    if (auto named = call->name_request(ask); !named) return Outcome::of(named.error());
  }
  auto response = call->post_message(call->body.view());
  if (response && !response->expect_success()) {
    return refusal(*call, std::move(*response), state.options.max_message);
  }
  if (response && !keep_name(made, *response)) return Outcome::of(ErrorCode::limit);
  Outcome outcome =
      response ? hear_response(state, session, ask, *call, std::move(*response)) : Outcome::of(response.error());
  // A modern server sees that the stream is closed, and takes that for the end of the request.
  if (!outcome.reply && is_callers(outcome.error) && !session.modern() && made == nullptr) {
    call->messages.end();
    tell_cancelled(state, session, ask.id);
  }
  return outcome;
}

SentRequest::~SentRequest() {
  drop();
}

void SentRequest::drop() noexcept {
  sent_.drop();
  if (transfer_ != nullptr) http::detail::Transfer::destroy(std::exchange(transfer_, nullptr));
}

std::expected<void, Error> SentRequest::begin(McpClientState& state, const Agreement& session, Ask& ask) noexcept {
  HttpCallPtr call(state, session);
  if (!call) return std::unexpected(Error{ErrorCode::no_memory});
  if (auto written = write_request(call->body, state, session, ask); !written) return written;
  if (auto named = call->name_request(ask); !named) return named;
  auto begun = call->begin_message(call->body.view());
  if (!begun) return std::unexpected(begun.error());
  if ((*begun)->waits()) {
    sent_ = http::detail::Transfer::leave_sent(*begun);
  } else {
    transfer_ = *begun;
  }
  return {};
}

Outcome SentRequest::finish(McpClientState& state, const Agreement& session, Ask& ask) noexcept {
  if (waits()) {
    auto taken_up = http::detail::Transfer::take_up(sent_, {.url = state.options.url, .method = "POST"});
    if (!taken_up) return drop(), Outcome::of(taken_up.error());
    transfer_ = *taken_up;
  }
  http::Response response(std::exchange(transfer_, nullptr));
  HttpCallPtr call(state, session);
  if (!call) return Outcome::of(ErrorCode::no_memory);
  if (auto heard = response.transfer().finish(); !heard) return Outcome::of(heard.error());
  if (!response.expect_success()) return refusal(*call, std::move(response), state.options.max_message);
  return hear_response(state, session, ask, *call, std::move(response));
}

Error notify_by_http(McpClientState& state, const Agreement& session, std::string_view message) noexcept {
  HttpCallPtr call(state, session);
  if (!call) return ErrorCode::no_memory;
  auto response = call->post_message(message);
  if (!response) return response.error();
  const auto good = response->expect_success();
  // The content, if there is any, is read so that the connection can be kept.
  static_cast<void>(response->text());
  return good ? Error{} : good.error();
}

std::expected<void, Error> leave_by_http(McpClientState& state, const Agreement& session) noexcept {
  HttpCallPtr call(state, session);
  if (!call) return std::unexpected(Error{ErrorCode::no_memory});
  auto response = call->end_session();
  if (!response) return std::unexpected(response.error());
  static_cast<void>(response->text());
  return {};
}

}  // namespace coir::mcp::detail
