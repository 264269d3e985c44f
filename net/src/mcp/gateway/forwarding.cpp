#include "mcp/gateway/forwarding.h"

#include <coir/format.h>
#include <coir/json_fields.h>
#include <coir/json_writer.h>

#include "mcp/client/wire/growing_text.h"
#include "mcp/message/message.h"
#include "mcp/message/raw_json.h"

namespace coir::mcp::detail {

namespace {

constexpr Capability kAll[] = {Capability::sampling, Capability::elicitation, Capability::roots};

// say refuses a call whose upstream has said nothing; which one, by its prefix.
void say(const Mounted& to, Call& call, int code, std::string_view what) noexcept {
  char room[120];
  const std::string_view prefix = to.mount.prefix;
  call.refuse(code,
              coir::format(room, prefix.empty() ? "a mounted server" : "the mounted server ", cut(prefix, 40), what));
}

// number_of is a member as JSON, if it is a number.
std::string_view number_of(const Notification& told, std::string_view name) noexcept {
  return is_kind(told.params.find(name), JsonKind::number) ? raw_member(told.text, name) : std::string_view();
}

// pass_on tells the client what the upstream tells before its answer.
void pass_on(Call& call, const Notification& told) noexcept {
  if (told.params.kind() != JsonKind::object) return;
  if (told.method == "notifications/progress") {
    const std::string_view done = number_of(told, "progress");
    if (done.empty()) return;
    call.progress_json(done, number_of(told, "total"),
                       text_of(told.params.find("message")).value_or(std::string_view()));
  } else if (told.method == "notifications/message") {
    const auto level = find_log_level(text_of(told.params.find("level")).value_or(std::string_view()));
    const std::string_view data = raw_member(told.text, "data");
    const auto logger = text_of(told.params.find("logger"));
    if (level && !data.empty()) call.log_json(*level, data, logger.value_or(std::string_view()));
  }
}

// ask_on asks a legacy client what the upstream wants to know; it waits for that.
bool ask_on(Call& call, const Question& question, JsonWriter& answer) noexcept {
  const Capability what = question.method == "elicitation/create"       ? Capability::elicitation
                          : question.method == "sampling/createMessage" ? Capability::sampling
                                                                        : Capability::roots;
  const auto answered = call.ask(question.key, what, question.text);
  if (answered) copy_json(answer, *answered);
  return answered.has_value();
}

[[gnu::noinline]] std::expected<void, Error> write_params(GrowingText& into, ItemKind kind, JsonView params,
                                                          std::string_view own) noexcept {
  JsonWriter out(into);
  out.object().member(kind == ItemKind::resources ? "uri" : "name", own);
  for (const std::string_view name : {"arguments", "inputResponses", "requestState"}) {
    if (const auto value = params.find(name)) copy_json(out.name(name), *value);
  }
  out.end();
  return out.finish();
}

[[gnu::noinline]] std::expected<void, Error> write_completion(GrowingText& into, ItemKind kind, JsonView params,
                                                              std::string_view own) noexcept {
  const bool of_prompt = kind == ItemKind::prompts;
  JsonWriter out(into);
  out.object().name("ref").object();
  out.member("type", of_prompt ? "ref/prompt" : "ref/resource").member(of_prompt ? "name" : "uri", own).end();
  for (const std::string_view name : {"argument", "context"}) {
    if (const auto value = params.find(name)) copy_json(out.name(name), *value);
  }
  out.end();
  return out.finish();
}

// settle ends a call by what came of it, and has the mount know.
void settle(Mounted& to, Call& call, const std::expected<Answer, Failure>& outcome) noexcept {
  to.ended(outcome ? nullptr : &outcome.error());
  if (outcome) return call.result_json(outcome->text());
  if (const int code = outcome.error().code(); code != 0) {
    return call.refuse(code, outcome.error().message(), outcome.error().data());
  }
  const Error error = outcome.error().error();
  if (error.ends_waits()) return call.refuse(kCancelled, "the call was cancelled");
  if (error == ErrorCode::limit) return say(to, call, kTooLarge, " has answered more than is allowed");
  if (error == ErrorCode::no_memory) return say(to, call, kBusy, " cannot be asked for want of memory");
  if (error == ErrorCode::timed_out) return say(to, call, kTimedOut, " does not answer in time");
  if (error == ErrorCode::unsupported) return say(to, call, kUpstream, " speaks no revision that is known here");
  say(to, call, kUpstream, " does not answer");
}

// relay has the upstream answer a request, in its turn.
void relay(Mounted& to, Call& call, ItemKind kind, const McpRequest& request, CallOptions& options) noexcept {
  if (const auto turn = to.turns.acquire(options.deadline); !turn) {
    return say(to, call, kBusy, " has as many calls as it may");
  }
  if (!to.breaker.let()) {
    to.turns.release();
    return say(to, call, kUpstream, " has not answered for a while, and is left alone");
  }
  to.calls.fetch_add(1, std::memory_order_relaxed);
  auto outcome = to.client.request(request, options);
  if (!outcome && outcome.error().code() == kHeaderMismatch && kind == ItemKind::tools) {
    // The tool has another schema by now.
    to.list(kind).make_stale();
    if (to.refresh(kind)) {
      const Catalogue::Held held(to.list(kind));
      CatalogueWalk walk(held.get());
      while (const auto item = walk.next()) {
        if (item->name == request.name) options.input_schema = raw_member(item->json, "inputSchema");
      }
      outcome = to.client.request(request, options);
    }
  }
  to.calls.fetch_sub(1, std::memory_order_relaxed);
  to.turns.release();
  settle(to, call, outcome);
}

// Options for one call of a client's.
void prepare(const Mounted& to, Call& call, CapabilitySet& capabilities, CallOptions& options) noexcept {
  for (const Capability each : kAll) {
    if (call.client_can(each)) capabilities |= capability_set(each);
  }
  options.deadline = Deadline::after(to.mount.deadline);
  options.log_level = "info";
  options.capabilities = &capabilities;
  options.hand_on = era_of(call.version()) == Era::modern;
  options.told = [&call](const Notification& told) { pass_on(call, told); };
  options.asked = [&call](const Question& question, JsonWriter& answer) { return ask_on(call, question, answer); };
}

}  // namespace

void forward(Mounted& to, Call& call, ItemKind kind, JsonView params, std::string_view own) noexcept {
  GrowingText text;
  if (!write_params(text, kind, params, own)) return say(to, call, kBusy, " cannot be asked for want of memory");
  CapabilitySet capabilities = 0;
  CallOptions options;
  prepare(to, call, capabilities, options);
  const Catalogue::Held held(to.list(kind));
  if (kind == ItemKind::tools) {
    CatalogueWalk walk(held.get());
    while (const auto item = walk.next()) {
      if (item->name != own) continue;
      const std::string_view schema = raw_member(item->json, "inputSchema");
      if (schema.find("x-mcp-header") != schema.npos) options.input_schema = schema;
    }
  }
  const std::string_view method = kind == ItemKind::tools     ? "tools/call"
                                  : kind == ItemKind::prompts ? "prompts/get"
                                                              : "resources/read";
  relay(to, call, kind, {.method = method, .params = text.view(), .name = own, .repeatable = kind != ItemKind::tools},
        options);
}

void forward_completion(Mounted& to, Call& call, ItemKind kind, JsonView params, std::string_view own) noexcept {
  GrowingText text;
  if (!write_completion(text, kind, params, own)) return say(to, call, kBusy, " cannot be asked for want of memory");
  CallOptions options{.deadline = Deadline::after(to.mount.deadline)};
  relay(to, call, kind, {.method = "completion/complete", .params = text.view(), .repeatable = true}, options);
}

}  // namespace coir::mcp::detail
