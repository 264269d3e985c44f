#include <coir/callable.h>
#include <coir/cancel_scope.h>
#include <coir/pressure.h>
#include <stdlib.h>
#include <time.h>

#include <memory>

#include "mcp/message/request_state.h"
#include "mcp/server/posted.h"

namespace coir::mcp {

CallState::~CallState() {
  while (answers != nullptr) {
    Answered* const next = answers->next;
    std::destroy_at(answers);
    free(answers);
    account::mcp.refund(sizeof(Answered));
    answers = next;
  }
}

namespace {

// call_run.cpp: calls that the program's functions answer, for incoming.h.

// Run is what is called.
using Run = Callable<void(Call& call)>;

// in_nursery runs it: fibers that it leaves behind end with it. A Nursery would hold room for bodies that nobody leaves.
// Errors: what has ended it from outside, its deadline among that.
std::expected<void, Error> in_nursery(CallState& state, Deadline deadline, const Run& run) noexcept {
  Call call(state);
  auto& nursery = state.nursery.emplace(0);
  nursery.enter(deadline);
  run(call);
  std::expected<void, Error> ended;
  Error why;
  const auto& scope = nursery.scope();
  // A child's failure is no end from outside.
  if (scope.outer != nullptr && coir::detail::ended(*scope.outer, why)) ended = std::unexpected(why);
  if (ended && scope.deadline.passed()) ended = std::unexpected(Error{ErrorCode::timed_out});
  nursery.cancel("the call has ended");
  static_cast<void>(nursery.leave());
  nursery.retreat();
  return ended;
}

[[gnu::noinline]] std::expected<void, Error> run_modern(CallState& state, const Run& run) noexcept {
  return in_nursery(state, state.deadline, run);
}

// A legacy call outlives its connection: the deadline, notifications/cancelled, the session's end and the server's stop
// end it.
[[gnu::noinline]] std::expected<void, Error> run_legacy(CallState& state, const Run& run) noexcept {
  Incoming& in = state.in;
  const Shield shield(state.deadline);
  CancelScope scope(state.deadline);
  const CancellationWatch watch(in.core.listeners.stops(), scope);
  ActiveCall active{.id = in.message.id, .scope = &scope};
  in.core.sessions.begin_call(*in.session, active);
  const auto ended = in_nursery(state, Deadline::never(), run);
  in.core.sessions.end_call(*in.session, active);
  return ended;
}

void run_call(CallState& state, std::chrono::milliseconds patience, const Run& run) noexcept {
  Incoming& in = state.in;
  state.deadline = Deadline::after(patience > std::chrono::milliseconds(0) ? patience : in.core.options.call_deadline);
  in.core.calls.fetch_add(1, std::memory_order_relaxed);
  // Functions wait: for sensors, other servers, their clients. Below run_legacy's shield no wait would offer the place.
  in.reply.release();
  in.room = {};
  const auto ended = in.era() == Era::modern ? run_modern(state, run) : run_legacy(state, run);
  in.core.calls.fetch_sub(1, std::memory_order_relaxed);
  finish_call(state, ended);
}

[[gnu::noinline]] void forward(CallState& state, Source& source, ItemKind kind) noexcept {
  run_call(state, std::chrono::milliseconds(0),
           [&source, kind, &state](Call& call) { source.forward(call, kind, *state.in.message.params); });
}

void not_found(Incoming& in, std::string_view uri) noexcept {
  char room[160];
  Text data(room, 8 * 1024);
  put(data, R"({"uri":)");
  put_quoted(data, uri);
  put(data, "}");
  refuse(in, 200, in.era() == Era::modern ? kInvalidParams : kResourceNotFound, "Resource not found",
         data.failed() ? std::string_view() : data.view());
}

using Get = void(Call& call);

std::int64_t state_clock(const ServerCore& core) noexcept {
  // A key of the program's outlives the process, and with it the monotonic clock.
  return core.options.state_key.empty() ? monotonic_ns() / 1'000'000'000 : static_cast<std::int64_t>(time(nullptr));
}

void write_arguments(const Incoming& in, Text& out) noexcept {
  JsonWriter writer(out);
  if (const auto arguments = object_of(in.param("arguments"))) {
    copy_json(writer, *arguments);
  } else {
    writer.object().end();
  }
}

StateBinding binding_of(const CallState& call, const Text& arguments) noexcept {
  return {.key = call.in.core.state_key(),
          .principal = call.in.who.name(),
          .method = call.in.message.method,
          .name = call.name,
          .arguments = arguments.view()};
}

// name_tool reads which tool is called, in a frame that is gone while the call waits. False: it has been answered.
[[gnu::noinline]] bool name_tool(Incoming& in) noexcept {
  const auto name = text_of(in.param("name"));
  if (!name) {
    refuse(in, 200, kInvalidParams, "name: a text is wanted");
    return false;
  }
  in.name = *name;
  const auto arguments = in.param("arguments");
  if (!arguments || is_kind(arguments, JsonKind::object)) return true;
  refuse(in, 200, kInvalidParams, "arguments: an object is wanted");
  return false;
}

// has_mirrored tells whether the request's fields repeat what the tool wants repeated. False: it has been answered.
[[gnu::noinline]] bool has_mirrored(Incoming& in, const Tool& tool) noexcept {
  if (in.era() != Era::modern || tool.fields.empty()) return true;
  char room[160];
  const std::string_view flaw = compare_mirrored(in, tool, room);
  if (!flaw.empty()) refuse(in, 400, kHeaderMismatch, flaw);
  return flaw.empty();
}

}  // namespace

[[gnu::noinline]] bool open_kept_state(CallState& call) noexcept {
  Incoming& in = call.in;
  const auto given = in.param("requestState");
  if (in.era() == Era::legacy || !given) return true;
  const auto text = text_of(given);
  Text arguments({}, in.core.options.request.max_bytes * 8);
  write_arguments(in, arguments);
  char* const room = text ? call.opened_state.take(text->size()) : nullptr;
  if (room != nullptr && !arguments.failed() && in.core.has_key()) {
    const auto opened = open_state(binding_of(call, arguments), *text, state_clock(in.core), {room, text->size()});
    if (opened) {
      call.state = *opened;
      return true;
    }
  }
  in.outcome = "forged";
  call.refused = true;
  refuse(in, 200, kInvalidParams, "requestState: not what this server gave for this request, or too old");
  return false;
}

bool seal_kept_state(CallState& call, Text& out) noexcept {
  Incoming& in = call.in;
  Text arguments({}, in.core.options.request.max_bytes * 8);
  write_arguments(in, arguments);
  const std::size_t bytes = sealed_bytes(call.kept_state.size());
  Text room({}, bytes);
  char* const scratch = room.take(bytes);
  put(out, "\"");
  char* const to = out.take(bytes);
  if (scratch == nullptr || to == nullptr || arguments.failed() || !call.in.core.has_key()) return false;
  const auto sealed =
      seal_state(binding_of(call, arguments), call.kept_state.view(),
                 state_clock(in.core) + in.core.options.state_lifetime.count(), {scratch, bytes}, {to, bytes});
  put(out, "\"");
  return sealed.has_value();
}

void answer_call(Incoming& in) noexcept {
  if (!name_tool(in)) return;
  const Tool* const tool = in.core.find_tool(in.name);
  CallState& state = in.posted.call.emplace(in, CallKind::tool, in.name);
  if (tool == nullptr) {
    Source* const source = in.core.find_source(ItemKind::tools, in.name);
    if (source != nullptr) return forward(state, *source, ItemKind::tools);
    return refuse(in, 200, kInvalidParams, "Unknown tool");
  }
  if (!has_mirrored(in, *tool) || !open_kept_state(state)) return;
  run_call(state, tool->marks.deadline, [tool](Call& call) { tool->run(call, call.arguments()); });
}

void answer_read(Incoming& in) noexcept {
  const auto uri = text_of(in.param("uri"));
  if (!uri) return refuse(in, 200, kInvalidParams, "uri: a text is wanted");
  in.name = *uri;
  CallState& state = in.posted.call.emplace(in, CallKind::resource, *uri);
  Get* read = nullptr;
  if (const Resource* const resource = in.core.find_resource(*uri)) {
    state.media_type = resource->media_type;
    read = resource->read;
  } else if (Source* const source = in.core.find_source(ItemKind::resources, *uri)) {
    return forward(state, *source, ItemKind::resources);
  } else {
    for (const ResourceTemplate& each : in.core.options.templates) {
      if (!matches_template(each.uri_template, *uri)) continue;
      state.uri_template = each.uri_template;
      state.media_type = each.media_type;
      read = each.read;
      break;
    }
  }
  if (read == nullptr) return not_found(in, *uri);
  if (open_kept_state(state)) run_call(state, std::chrono::milliseconds(0), read);
}

void answer_prompt(Incoming& in) noexcept {
  const auto name = text_of(in.param("name"));
  if (!name) return refuse(in, 200, kInvalidParams, "name: a text is wanted");
  in.name = *name;
  CallState& state = in.posted.call.emplace(in, CallKind::prompt, *name);
  const Prompt* const prompt = in.core.find_prompt(*name);
  if (prompt == nullptr) {
    Source* const source = in.core.find_source(ItemKind::prompts, *name);
    if (source != nullptr) return forward(state, *source, ItemKind::prompts);
    return refuse(in, 200, kInvalidParams, "Unknown prompt");
  }
  for (const PromptArgument& each : prompt->arguments) {
    if (!each.required || text_of(member_of(in.param("arguments"), each.name))) continue;
    char room[160];
    return refuse(in, 200, kInvalidParams, format(room, "arguments.", each.name, ": missing"));
  }
  state.description = prompt->description;
  if (open_kept_state(state)) run_call(state, std::chrono::milliseconds(0), prompt->get);
}

void answer_complete(Incoming& in) noexcept {
  const auto ref = object_of(in.param("ref"));
  const auto type = text_of(member_of(ref, "type"));
  const auto argument = object_of(in.param("argument"));
  const auto name = text_of(member_of(argument, "name"));
  const auto value = text_of(member_of(argument, "value"));
  const bool of_prompt = type == "ref/prompt";
  const auto wanted = text_of(member_of(ref, of_prompt ? "name" : "uri"));
  if (!wanted || !name || !value || (!of_prompt && type != "ref/resource")) {
    return refuse(in, 200, kInvalidParams, "ref and argument are wanted");
  }
  in.name = *wanted;
  CallState& state = in.posted.call.emplace(in, CallKind::completion, *wanted);
  const Prompt* const prompt = of_prompt ? in.core.find_prompt(*wanted) : nullptr;
  const ResourceTemplate* const family = of_prompt ? nullptr : in.core.find_template(*wanted);
  const ItemKind kind = of_prompt ? ItemKind::prompts : ItemKind::templates;
  Source* source = nullptr;
  if (prompt == nullptr && family == nullptr) {
    source = in.core.find_source(kind, *wanted);
    if (source == nullptr && (of_prompt || in.core.find_resource(*wanted) == nullptr)) {
      return refuse(in, 200, kInvalidParams, "ref: none of this server's");
    }
  }
  Complete* const complete = prompt != nullptr ? prompt->complete : family != nullptr ? family->complete : nullptr;
  const auto run = [&](Call& call) {
    if (source != nullptr) {
      source->complete(call, kind, *in.message.params);
    } else if (complete != nullptr) {
      complete(call, *name, *value);
    }
  };
  run_call(state, std::chrono::milliseconds(0), run);
}

}  // namespace coir::mcp
