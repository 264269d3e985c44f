#include <coir/format.h>
#include <coir/pressure.h>
#include <stdlib.h>

#include <memory>
#include <new>

#include "mcp/server/call_state.h"

namespace coir::mcp {
namespace {

// call_questions.cpp: what a call tells on its way and asks its client, for call_state.h.

constexpr std::string_view kQuestions[kCapabilities] = {"sampling/createMessage", "elicitation/create", "roots/list"};

// is_answer tells whether a client's answer has the shape that the question wants.
bool is_answer(Capability what, const JsonView& answer) noexcept {
  if (answer.kind() != JsonKind::object) return false;
  switch (what) {
    case Capability::sampling:
      return text_of(answer.find("role")).has_value() && answer.find("content").has_value();
    case Capability::elicitation: {
      const auto action = text_of(answer.find("action"));
      if (action == "accept") return !answer.find("content") || object_of(answer.find("content")).has_value();
      return action == "decline" || action == "cancel";
    }
    case Capability::roots:
      return is_kind(answer.find("roots"), JsonKind::array);
  }
  return false;
}

bool notify(CallState& call, std::string_view method, Text& params) noexcept {
  char room[512];
  Text out(room, call.in.core.options.max_result_bytes);
  put(out, R"({"jsonrpc":"2.0","method":")");
  put(out, method);
  put(out, R"(","params":)");
  put(out, params.view());
  put(out, "}");
  return !out.failed() && !params.failed() && call.in.reply.notify(out.view());
}

void put_number(Text& out, std::string_view name, std::int64_t value) noexcept {
  char digits[24];
  member(out, name);
  put(out, format(digits, value));
}

// note has the question stand in the answer of this round.
Error note(CallState& call, std::string_view key, Capability what, std::string_view params) noexcept {
  Text& out = call.questions;
  if (out.size() > 0) put(out, ",");
  put_quoted(out, key);
  put(out, R"(:{"method":")");
  put(out, kQuestions[static_cast<std::size_t>(what)]);
  put(out, R"(","params":)");
  put(out, params);
  put(out, "}");
  if (out.failed()) return out.failure();
  return ErrorCode::busy;
}

std::expected<JsonView, Error> keep_answer(CallState& call, Capability what, const Text& text) noexcept {
  JsonLimits limits = call.in.core.options.request;
  limits.max_bytes *= 2;
  auto document = JsonDocument::parse(text.view(), limits);
  if (!document) return std::unexpected(document.error().error);
  if (!is_answer(what, document->root())) return std::unexpected(ErrorCode::invalid);
  if (!Pressure::charge(account::mcp, sizeof(Answered))) return std::unexpected(ErrorCode::no_memory);
  void* const memory = malloc(sizeof(Answered));
  if (memory == nullptr) {
    account::mcp.refund(sizeof(Answered));
    return std::unexpected(ErrorCode::no_memory);
  }
  auto* const kept = new (memory) Answered{.next = call.answers};
  kept->document.emplace(std::move(*document));
  call.answers = kept;
  return kept->document->root();
}

// ask_now sends the question on a legacy call's stream and waits for the answer.
std::expected<JsonView, Error> ask_now(CallState& call, Capability what, std::string_view params) noexcept {
  Incoming& in = call.in;
  Text answer({}, in.core.options.request.max_bytes * 2);
  OpenQuestion question;
  question.answer = &answer;
  in.core.sessions.ask(*in.session, question);
  bool sent;
  {
    char room[256];
    char begin[128];
    Text out(room, in.core.options.max_result_bytes);
    put(out, format(begin, R"({"jsonrpc":"2.0","id":)", question.number, R"(,"method":")",
                    kQuestions[static_cast<std::size_t>(what)], R"(","params":)"));
    put(out, params);
    put(out, "}");
    sent = !out.failed() && in.reply.notify(out.view());
  }
  if (!sent) {
    in.core.sessions.give_up(*in.session, question);
    if (!question.answered.is_set()) return std::unexpected(ErrorCode::closed);
  } else if (const auto waited = question.answered.wait(); !waited) {
    in.core.sessions.give_up(*in.session, question);
    if (!question.answered.is_set()) return std::unexpected(waited.error());
  }
  if (question.failed) return std::unexpected(ErrorCode::invalid);
  return keep_answer(call, what, answer);
}

}  // namespace

bool Call::progress(std::int64_t done, std::int64_t total, std::string_view message) noexcept {
  char digits[24], digits_of_total[24];
  const std::string_view whole = total != 0 ? format(digits_of_total, total) : std::string_view();
  return progress_json(format(digits, done), whole, message);
}

bool Call::progress_json(std::string_view done, std::string_view total, std::string_view message) noexcept {
  const MessageId& token = state_.in.progress;
  if (!token.given || state_.refused) return false;
  char room[256];
  Text params(room, 8 * 1024);
  put(params, "{");
  if (token.is_text) {
    member(params, "progressToken");
    put_quoted(params, token.text);
  } else {
    put_number(params, "progressToken", token.number);
  }
  member(params, "progress");
  put(params, done);
  if (!total.empty()) {
    member(params, "total");
    put(params, total);
  }
  if (!message.empty()) {
    member(params, "message");
    put_quoted(params, message);
  }
  put(params, "}");
  return notify(state_, "notifications/progress", params);
}

bool Call::notify_json(std::string_view method, std::string_view params) noexcept {
  if (state_.refused) return false;
  Text text({}, state_.in.core.options.max_result_bytes);
  put(text, params);
  return notify(state_, method, text);
}

bool Call::log(LogLevel level, std::string_view text, std::string_view logger) noexcept {
  char room[256];
  Text data(room, 64 * 1024);
  put_quoted(data, text);
  return !data.failed() && log_json(level, data.view(), logger);
}

bool Call::log_json(LogLevel level, std::string_view data, std::string_view logger) noexcept {
  const Incoming& in = state_.in;
  if (!in.level || level < *in.level || state_.refused) return false;
  char room[256];
  Text params(room, 128 * 1024);
  put(params, R"({"level":")");
  put(params, log_level_text(level));
  put(params, "\"");
  if (!logger.empty()) {
    member(params, "logger");
    put_quoted(params, logger);
  }
  member(params, "data");
  put(params, data);
  put(params, "}");
  return notify(state_, "notifications/message", params);
}

void Call::disconnect() noexcept {
  state_.in.reply.disconnect();
}

bool Call::client_can(Capability capability) const noexcept {
  return (state_.in.capabilities & capability_set(capability)) != 0;
}

bool Call::require(Capability capability) noexcept {
  if (client_can(capability)) return true;
  if (state_.in.era() == Era::legacy) {
    char line[80];
    fail(format(line, "the client has no ", capability_text(capability)));
    return false;
  }
  char data[80];
  refuse(kMissingCapability, "Missing required client capability",
         format(data, R"({"requiredCapabilities":{")", capability_text(capability), R"(":{}}})"));
  return false;
}

std::expected<JsonView, Error> Call::ask(std::string_view key, Capability what, std::string_view params) noexcept {
  Incoming& in = state_.in;
  if (params.empty()) params = "{}";
  const bool modern = in.era() == Era::modern;
  const bool known = what != Capability::elicitation || in.version >= Version::v2025_06_18;
  if (!client_can(what) || !known || (!modern && !in.reply.may_stream())) {
    if (!require(what)) return std::unexpected(ErrorCode::unsupported);
    fail("the client cannot be asked");
    return std::unexpected(ErrorCode::unsupported);
  }
  if (!modern) return ask_now(state_, what, params);
  if (const auto answer = member_of(object_of(in.param("inputResponses")), key); answer && is_answer(what, *answer)) {
    return *answer;
  }
  return std::unexpected(note(state_, key, what, params));
}

std::expected<JsonView, Error> Call::elicit(std::string_view key, std::string_view message,
                                            std::string_view schema) noexcept {
  char room[512];
  Text params(room, 64 * 1024);
  put(params, R"({"message":)");
  put_quoted(params, message);
  put(params, R"(,"requestedSchema":)");
  put(params, schema);
  put(params, "}");
  if (params.failed()) return std::unexpected(params.failure());
  return ask(key, Capability::elicitation, params.view());
}

std::expected<JsonView, Error> Call::sample(std::string_view key, std::string_view prompt,
                                            std::uint32_t max_tokens) noexcept {
  char room[512];
  Text params(room, state_.in.core.options.max_result_bytes);
  put(params, R"({"messages":[{"role":"user","content":{"type":"text","text":)");
  put_quoted(params, prompt);
  put(params, R"(}}])");
  put_number(params, "maxTokens", max_tokens);
  put(params, "}");
  if (params.failed()) return std::unexpected(params.failure());
  return ask(key, Capability::sampling, params.view());
}

std::expected<JsonView, Error> Call::roots(std::string_view key) noexcept {
  return ask(key, Capability::roots, "{}");
}

void Call::keep_state(std::string_view state) noexcept {
  state_.kept_state.cut(0);
  put(state_.kept_state, state);
}

std::string_view Call::state() const noexcept {
  return state_.state;
}

}  // namespace coir::mcp
