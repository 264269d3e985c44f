// A server's questions to its client, as client_state.h declares them: by requests of its own in the legacy era, by results of
// `input_required` in the modern one.
#include <coir/cancel_scope.h>
#include <coir/json_writer.h>

#include "mcp/client/client_state.h"
#include "mcp/client/envelope.h"
#include "mcp/message/raw_json.h"

namespace coir::mcp::detail {

namespace {

constexpr std::string_view kElicitation = "elicitation/create";

bool is_offered(CapabilitySet offers, std::string_view method) noexcept {
  if (method == kElicitation) return (offers & capability_set(Capability::elicitation)) != 0;
  if (method == "sampling/createMessage") return (offers & capability_set(Capability::sampling)) != 0;
  return method == "roots/list" && (offers & capability_set(Capability::roots)) != 0;
}

// Answers is who answers what a server asks.
struct Answers {
  const Callable<bool(const Question& question, JsonWriter& answer)>& asked;
  CapabilitySet offers;
};

// answer writes what the program answers. False: nothing.
[[gnu::noinline]] bool answer(const Answers& by, const Question& question, GrowingText& into) noexcept {
  if (!by.asked || !is_offered(by.offers, question.method)) return false;
  GrowingText own;
  {
    JsonWriter writer(own);
    if (!by.asked(question, writer) || !writer.finish()) own.clear();
  }
  if (!own.empty()) return into.write(own.view()).has_value();
  return question.method == kElicitation && into.write(R"({"action":"decline"})").has_value();
}

// answer_request answers a request of a legacy server's by a message.
[[gnu::noinline]] void answer_request(McpClientState& state, const Agreement& session,
                                      const ReplyBlock& request) noexcept {
  GrowingText result, message;
  const Question question{request.method, request.document.root()["params"], request.body, {}};
  // A session's offers were made when it began.
  const Answers answers{state.options.asked, offered(state.options)};
  TextParts parts(message);
  parts << R"({"jsonrpc":"2.0","id":)" << request.id_text;
  if (request.method == "ping") {
    parts << R"(,"result":{}})";
  } else if (answer(answers, question, result)) {
    parts << R"(,"result":)" << result.view() << "}";
  } else {
    parts << R"(,"error":{"code":-32601,"message":"This client does not answer that"}})";
  }
  if (parts.outcome()) static_cast<void>(notify(state, session, message.view()));
}

}  // namespace

void take(McpClientState& state, const Agreement& session, const Ask& ask, const Reply& message) noexcept {
  if (message->kind == MessageKind::request) {
    // A modern server may not ask so.
    if (!session.modern()) return answer_request(state, session, *message);
  } else if (ask.options.told) {
    ask.options.told({message->method, message->document.root()["params"], message->body});
    return;
  }
  state.counters.ignored.fetch_add(1, std::memory_order_relaxed);
}

std::expected<void, Error> answer_questions(McpClientState& state, const Ask& ask, const ReplyBlock& result,
                                            GrowingText& into) noexcept {
  const Answers answers{ask.options.asked ? ask.options.asked : state.options.asked,
                        ask.options.capabilities != nullptr ? *ask.options.capabilities : offered(state.options)};
  const JsonView root = result.document.root()["result"];
  const std::string_view questions = raw_member(result.body, "inputRequests");
  const std::string_view kept = raw_member(result.body, "requestState");
  TextParts parts(into);
  parts << "{";
  if (questions.starts_with('{')) {
    parts << R"("inputResponses":{)";
    RawMembers raw(questions);
    bool first = true;
    for (const auto [key, value] : root["inputRequests"].members()) {
      const auto as_it_came = raw.next();
      const auto method = value["method"].text();
      if (!as_it_came || !method) return std::unexpected(Error{ErrorCode::protocol});
      parts << (first ? "\"" : ",\"") << as_it_came->name << "\":";
      first = false;
      if (!parts.outcome()) return parts.outcome();
      const Question question{*method, value["params"], raw_member(as_it_came->value, "params"), as_it_came->name};
      if (!answer(answers, question, into)) {
        return std::unexpected(Error{ErrorCode::unsupported});
      }
    }
    parts << "}";
    if (!kept.empty()) parts << ",";
  } else if (kept.empty()) {
    return std::unexpected(Error{ErrorCode::protocol});
  }
  if (!kept.empty()) parts << R"("requestState":)" << kept;
  parts << "}";
  return parts.outcome();
}

void tell_cancelled(McpClientState& state, const Agreement& session, std::uint64_t id) noexcept {
  using namespace std::chrono_literals;
  char room[160];
  const std::string_view message =
      coir::format(room, R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":)", id, "}}");
  const Shield shield(Deadline::after(2s));
  state.counters.cancelled.fetch_add(1, std::memory_order_relaxed);
  static_cast<void>(notify(state, session, message));
}

}  // namespace coir::mcp::detail
