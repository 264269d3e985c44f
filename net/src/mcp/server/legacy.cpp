#include <coir/format.h>

#include <utility>

#include "mcp/server/posted.h"

namespace coir::mcp {
namespace {

// legacy.cpp: messages of the revisions with sessions, for incoming.h.

void read_progress(Incoming& in) noexcept {
  const auto token = member_of(object_of(in.param("_meta")), "progressToken");
  if (const auto text = text_of(token)) {
    in.progress = {.given = true, .is_text = true, .text = *text};
  } else if (const auto number = integer_of(token)) {
    in.progress = {.given = true, .number = *number};
  }
}

[[gnu::noinline]] void answer_request(Posted& posted, Reply& reply, Session& session, const Message& message) noexcept {
  const std::int64_t began = monotonic_ns();
  ServerCore& core = posted.core;
  Incoming in{.posted = posted,
              .core = core,
              .request = nullptr,
              .reply = reply,
              .who = session.who,
              .version = session.version,
              .session = &session,
              .message = message,
              .capabilities = session.capabilities,
              .level = session.level};
  read_progress(in);
  if (is_known_method(core, in.version, message.method)) {
    answer_method(in);
  } else {
    refuse(in, 200, kMethodNotFound, "Method not found");
  }
  audited(in, began);
}

// take takes what wants no response.
void take(ServerCore& core, Session& session, const Message& message) noexcept {
  if (message.kind == MessageKind::response || message.kind == MessageKind::error) {
    return core.sessions.answer(session, message);
  }
  if (message.method != "notifications/cancelled") return;
  const auto id = member_of(message.params, "requestId");
  if (const auto text = text_of(id)) {
    core.sessions.cancel_call(session, {.given = true, .is_text = true, .text = *text});
  } else if (const auto number = integer_of(id)) {
    core.sessions.cancel_call(session, {.given = true, .number = *number});
  }
}

[[gnu::noinline]] void refuse_message(const ServerCore& core, Reply& reply, const MessageId& id,
                                      const RpcFlaw& flaw) noexcept {
  char room[200];
  Text text(room, core.options.max_result_bytes);
  {
    JsonWriter out(text);
    write_error(out, id, flaw.code, flaw.what);
    static_cast<void>(out.finish());
  }
  reply.finish(200, text.failed() ? std::string_view("{}") : text.view());
}

}  // namespace

Session* find_session(ServerCore& core, http::Exchange& exchange, const Principal& who, const MessageId& id) noexcept {
  Session* const session = core.sessions.find(exchange.request().header(kSessionField), who);
  if (session == nullptr) {
    // A client begins anew by this, and by nothing else.
    answer_plain(exchange, 404, id, kInvalidRequest, "the session is not known: begin anew by initialize");
    return nullptr;
  }
  const std::string_view version = exchange.request().header(kVersionField);
  const auto named = find_version(version);
  if (version.data() == nullptr || (named && era_of(*named) == Era::legacy)) return session;
  core.sessions.release(session);
  answer_plain(exchange, 400, id, kInvalidRequest, "MCP-Protocol-Version is none of this session's revisions");
  return nullptr;
}

void answer_initialize(Posted& posted, std::span<char> room) noexcept {
  ServerCore& core = posted.core;
  http::Exchange& exchange = posted.exchange;
  const Message& message = posted.message;
  const auto wanted = text_of(member_of(message.params, "protocolVersion"));
  if (!wanted) return answer_plain(exchange, 400, message.id, kInvalidParams, "protocolVersion: a text is wanted");
  const std::int64_t began = monotonic_ns();
  const auto known = find_version(*wanted);
  const auto created = core.sessions.create(posted.who);
  if (!created) {
    const std::string_view why = created.error() == ErrorCode::no_memory ? kNoMemory : kNoRandomness;
    return answer_plain(exchange, 503, message.id, kBusy, why, {}, "Retry-After: 1\r\n");
  }
  Session* const session = *created;
  session->version = known && era_of(*known) == Era::legacy ? *known : kNewestLegacy;
  session->capabilities = read_capabilities(object_of(member_of(message.params, "capabilities")));
  for (const ItemKind kind : {ItemKind::tools, ItemKind::resources, ItemKind::prompts}) {
    if (core.offers(kind))
      session->interests.filter = static_cast<ListBits>(session->interests.filter | list_bit(kind));
  }
  Reply reply(core, exchange, session, Era::legacy, false);
  Incoming in{.posted = posted,
              .core = core,
              .request = nullptr,
              .reply = reply,
              .who = posted.who,
              .version = session->version,
              .session = session,
              .message = message,
              .room = room};
  char field[64];
  exchange.add_fields(format(field, kSessionField, ": ", session->id_text(), "\r\n"));
  Text out(in.room, core.options.max_result_bytes);
  begin_result(in, out);
  member(out, "protocolVersion");
  put_quoted(out, version_text(session->version));
  write_capabilities(in, out);
  member(out, "serverInfo");
  put(out, core.server_info());
  if (!core.options.instructions.empty()) {
    member(out, "instructions");
    put_quoted(out, core.options.instructions);
  }
  end_result(in, out);
  send_result(in, out);
  audited(in, began);
  core.sessions.release(session);
}

void answer_legacy(Posted& posted, Session& session) noexcept {
  ServerCore& core = posted.core;
  http::Exchange& exchange = posted.exchange;
  const Message& message = posted.message;
  if (message.kind != MessageKind::request) {
    take(core, session, message);
    return exchange.respond_status(202);
  }
  Reply reply(core, exchange, &session, Era::legacy, posted.takes_events);
  answer_request(posted, reply, session, message);
}

void answer_batch(Posted& posted, Session& session, JsonView batch) noexcept {
  ServerCore& core = posted.core;
  http::Exchange& exchange = posted.exchange;
  if (session.version != Version::v2025_03_26) {
    return answer_plain(exchange, 400, {}, kInvalidRequest, "this revision has no batches");
  }
  if (batch.size() == 0) return answer_plain(exchange, 400, {}, kInvalidRequest, "the batch is empty");
  Text responses({}, core.options.max_result_bytes);
  put(responses, "[");
  {
    Reply reply(core, exchange, &session, Era::legacy, false);
    reply.gather(responses);
    bool is_first = true;  // `pass` has counted it
    for (const JsonView each : batch.elements()) {
      MessageId id;
      const auto message = read_message(each, id);
      if (message && message->kind != MessageKind::request) {
        take(core, session, *message);
      } else if (message && !std::exchange(is_first, false) && !core.may_ask(posted.who)) {
        refuse_message(core, reply, id, {kBusy, kTooMany});
      } else if (message) {
        answer_request(posted, reply, session, *message);
      } else {
        refuse_message(core, reply, id, message.error());
      }
    }
  }
  const bool any = responses.size() > 1;
  put(responses, "]");
  if (responses.failed()) {
    return answer_plain(exchange, 503, {}, kBusy, kNoMemory);
  }
  if (!any) return exchange.respond_status(202);
  exchange.respond(200, "application/json", responses.view());
}

}  // namespace coir::mcp
