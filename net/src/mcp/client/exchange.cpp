// A request is sent until it is answered, as client_state.h declares it: again where the session was lost or the server has
// changed, and with answers where it asks.
#include "mcp/client/client_state.h"

namespace coir::mcp::detail {

namespace {

constexpr int kMostSendings = 3;
constexpr int kMostRounds = 16;

// is_settled tells of a status of HTTP's that says nothing about the session: who we are, how busy the server is.
bool is_settled(int status) noexcept {
  return status < 400 || status >= 500 || status == 401 || status == 403 || status == 407 || status == 408 ||
         status == 413 || status == 429;
}

// is_lost tells whether the server does not know the session, or speaks another revision by now.
bool is_lost(const Agreement& session, const Ask& ask, const Outcome& outcome) noexcept {
  if (outcome.status == 0) return false;
  const bool is_ours = bool(outcome.reply) && outcome.reply->id == ask.id;
  if (is_ours && error_code(*outcome.reply) == kUnsupportedVersion) return true;
  if (is_settled(outcome.status)) return false;
  return !session.modern() || !is_ours;
}

bool is_broken(Error error) noexcept {
  return error == ErrorCode::closed || error == ErrorCode::end_of_stream || error == ErrorCode::truncated;
}

Outcome send_until_answered(McpClientState& state, Ask& ask) noexcept {
  for (int sendings = 1;; ++sendings) {
    Agreement session;
    if (Outcome agreed = agree(state, session); !session.version) return agreed;
    Outcome outcome = send_once(state, session, ask);
    if (outcome.answered() || sendings == kMostSendings || state.closed.load(std::memory_order_relaxed)) return outcome;
    if (is_lost(session, ask, outcome)) {
      forget(state, session.generation);
    } else if (outcome.reply || !ask.request.repeatable || !is_broken(outcome.error)) {
      return outcome;
    }
  }
}

bool wants_input(const ReplyBlock& reply) noexcept {
  const auto type = reply.document.root()["result"].find("resultType");
  if (!type || type->kind() != JsonKind::text) return false;
  const auto text = type->text();
  return text && *text == "input_required";
}

}  // namespace

bool is_final(McpClientState& state, const Agreement& session, const Ask& ask, const Outcome& outcome) noexcept {
  if (outcome.answered()) return ask.options.hand_on || !wants_input(*outcome.reply);
  if (is_lost(session, ask, outcome)) {
    forget(state, session.generation);
    return false;
  }
  return !outcome.reply || error_code(*outcome.reply) != kHeaderMismatch;
}

Outcome send_once(McpClientState& state, const Agreement& session, Ask& ask, Agreement* made) noexcept {
  if (state.closed.load(std::memory_order_relaxed)) return Outcome::of(ErrorCode::closed);
  ask.id = state.new_id();
  return state.http ? send_by_http(state, session, ask, made) : send_by_program(state, session, ask);
}

Error notify(McpClientState& state, const Agreement& session, std::string_view message) noexcept {
  return state.http ? notify_by_http(state, session, message) : notify_by_program(state, message);
}

Outcome ask_server(McpClientState& state, Ask& ask) noexcept {
  GrowingText answers;
  for (int round = 0;; ++round) {
    Outcome outcome = send_until_answered(state, ask);
    if (!outcome.answered() || ask.options.hand_on || !wants_input(*outcome.reply)) return outcome;
    if (round == kMostRounds) return Outcome::of(ErrorCode::limit);
    answers.clear();
    if (auto written = answer_questions(state, ask, *outcome.reply, answers); !written) {
      return Outcome::of(written.error());
    }
    ask.more = answers.view();
  }
}

}  // namespace coir::mcp::detail
