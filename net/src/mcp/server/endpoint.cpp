#include <coir/http/content.h>
#include <coir/pressure.h>

#include <algorithm>
#include <memory>
#include <new>

#include "mcp/server/posted.h"

namespace coir::mcp {
namespace {

// endpoint.cpp: a request, from its head to its era, for core.h.

using http::Exchange;
using http::Framing;
using http::Method;

// A request's content up to this size takes that much of the exchange's scratch memory, and the response what is left. The
// document lies on the heap: a call holds no buffer of the exchange's while it waits.
constexpr std::size_t kSmallText = 1024;

void no_memory(Exchange& exchange) noexcept {
  answer_plain(exchange, 503, {}, kBusy, kNoMemory, {}, "Retry-After: 1\r\n");
}

// says_modern tells of a request that names its revision itself.
[[gnu::noinline]] bool says_modern(const Message& message) noexcept {
  return member_of(member_of(message.params, "_meta"), kVersionKey).has_value();
}

[[gnu::noinline]] void answer_of_session(Posted& posted, const MessageId& id, bool batch) noexcept {
  Session* const session = find_session(posted.core, posted.exchange, posted.who, id);
  if (session == nullptr) return;
  if (batch) {
    answer_batch(posted, *session, posted.document->root());
  } else {
    answer_legacy(posted, *session);
  }
  posted.core.sessions.release(session);
}

// dispatch_others answers what is no message of 2026-07-28. False: it is one.
[[gnu::noinline]] bool dispatch_others(Posted& posted, bool legacy, std::span<char> room) noexcept {
  Exchange& exchange = posted.exchange;
  const JsonView root = posted.document->root();
  if (root.kind() == JsonKind::array) {
    if (legacy) return answer_of_session(posted, {}, true), true;
    return answer_plain(exchange, 400, {}, kInvalidRequest, "a message is an object"), true;
  }
  MessageId id;
  const auto message = read_message(root, id);
  if (!message) return answer_plain(exchange, 400, id, message.error().code, message.error().what), true;
  posted.message = *message;
  const auto named = find_version(exchange.request().header(kVersionField));
  // The field alone says so where it is there: then the body, which must say the same, is read once.
  const bool is_modern = (!legacy && named && era_of(*named) == Era::modern) || says_modern(*message);
  if (!is_modern && message->kind == MessageKind::request && message->method == "initialize") {
    return answer_initialize(posted, room), true;
  }
  if (!is_modern && !legacy && named) {
    answer_plain(exchange, 400, id, kInvalidRequest, "Mcp-Session-Id is missing: begin by initialize");
    return true;
  }
  if (is_modern || !legacy) return false;
  return answer_of_session(posted, id, false), true;
}

// read_content reads the content into `into`. Nothing: it has been answered.
std::optional<std::string_view> take_content(Exchange& exchange, std::span<char> into) noexcept {
  const auto text = http::read_content(exchange, into);
  if (!text) return std::nullopt;
  return *text;
}

// parse makes a document of a request's content. Null: it has been answered.
Posted* parse(ServerCore& core, Exchange& exchange, const Principal& who, bool takes_events,
              std::string_view text) noexcept {
  const MessageLimits limits = {.json = core.options.request, .max_values = core.options.max_values};
  const auto bytes = message_bytes(text, limits);
  if (!bytes) return answer_plain(exchange, 400, {}, bytes.error().code, bytes.error().what), nullptr;
  Posted* const posted = Posted::make(core, exchange, who, *bytes);
  if (posted == nullptr) return no_memory(exchange), nullptr;
  auto document = parse_message(text, posted->memory());
  if (document) {
    posted->document.emplace(std::move(*document));
    posted->takes_events = takes_events;
    return posted;
  }
  Posted::destroy(posted);
  return answer_plain(exchange, 400, {}, document.error().code, document.error().what), nullptr;
}

// is_of_session tells whether a POST is of a session, by its fields.
bool is_of_session(const http::Request& request) noexcept {
  if (request.header(kSessionField).data() == nullptr) return false;
  const auto named = find_version(request.header(kVersionField));
  return !named || era_of(*named) == Era::legacy;
}

// read_post reads a POST that may be answered, in a frame that is gone while a call waits. Null: it has been answered.
[[gnu::noinline]] Posted* read_post(ServerCore& core, Exchange& exchange, bool legacy) noexcept {
  Principal who;
  if (!pass(core, exchange, who)) return nullptr;
  const http::Request& request = exchange.request();
  if (!http::is_json_type(request.header("Content-Type"))) {
    return exchange.respond_status(415, "Accept: application/json\r\n"), nullptr;
  }
  const AcceptedTypes accepted = accepted_types(request);
  if (!accepted.json) return exchange.respond_status(406), nullptr;
  if (!legacy && request.framing == Framing::length && request.content_length <= kSmallText) {
    const auto text = take_content(exchange, exchange.scratch().first(kSmallText));
    return text ? parse(core, exchange, who, accepted.events, *text) : nullptr;
  }
  std::size_t most = core.options.request.max_bytes;
  if (request.framing == Framing::length) {
    most = static_cast<std::size_t>(std::min<std::uint64_t>(most, request.content_length));
  }
  if (request.framing == Framing::none) most = 0;
  Text content({}, SIZE_MAX);
  char* const into = content.take(std::max<std::size_t>(most, 1));
  if (into == nullptr) return no_memory(exchange), nullptr;
  const auto text = take_content(exchange, {into, most});
  return text ? parse(core, exchange, who, accepted.events, *text) : nullptr;
}

void answer_post(ServerCore& core, Exchange& exchange) noexcept {
  const bool legacy = is_of_session(exchange.request());
  Posted* const posted = read_post(core, exchange, legacy);
  if (posted == nullptr) return;
  const std::span<char> room = exchange.scratch().subspan(kSmallText);
  if (!dispatch_others(*posted, legacy, room)) answer_modern(*posted, room);
  Posted::destroy(posted);
}

// answer_others answers GET and DELETE, which are of sessions alone.
[[gnu::noinline]] void answer_others(ServerCore& core, Exchange& exchange) noexcept {
  Principal who;
  if (!pass(core, exchange, who)) return;
  const http::Request& request = exchange.request();
  const bool of_session = request.header(kSessionField).data() != nullptr;
  if ((request.method != Method::get && request.method != Method::del) || !of_session) {
    return exchange.respond_status(405, "Allow: POST, GET, DELETE\r\n");
  }
  Session* const session = find_session(core, exchange, who, {});
  if (session == nullptr) return;
  if (request.method == Method::get) {
    answer_get(core, exchange, *session);
  } else {
    core.sessions.end(session);
    exchange.respond_status(204);
  }
  core.sessions.release(session);
}

}  // namespace

Posted* Posted::make(ServerCore& core, http::Exchange& exchange, const Principal& who, std::size_t document) noexcept {
  const std::size_t bytes = sizeof(Posted) + document;
  if (!Pressure::charge(account::mcp, bytes)) return nullptr;
  const SpareBlock::Block block = core.spare.take(bytes);
  if (block.memory == nullptr) {
    account::mcp.refund(bytes);
    return nullptr;
  }
  return ::new (block.memory)
      Posted{.core = core, .exchange = exchange, .bytes = bytes, .block_bytes = block.bytes, .who = who};
}

void Posted::destroy(Posted* posted) noexcept {
  SpareBlock& spare = posted->core.spare;
  const std::size_t bytes = posted->bytes, block_bytes = posted->block_bytes;
  std::destroy_at(posted);
  spare.give({posted, block_bytes});
  account::mcp.refund(bytes);
}

void ServerCore::serve(Exchange& exchange) noexcept {
  listeners.attach_to(exchange);
  if (exchange.request().method == Method::post) return answer_post(*this, exchange);
  answer_others(*this, exchange);
}

void ServerCore::serve_metadata(Exchange& exchange) noexcept {
  if (options.resource_url.empty()) return exchange.respond_status(404);
  const Method method = exchange.request().method;
  if (method != Method::get && method != Method::head) return exchange.respond_status(405, "Allow: GET, HEAD\r\n");
  exchange.start(200).fixed("Content-Type: application/json\r\nCache-Control: max-age=3600\r\n");
  if (!exchange.begin_chunked()) return;
  JsonWriter out(exchange);
  out.object().member("resource", options.resource_url);
  const auto list = [&](const char* name, std::span<const std::string_view> values) {
    if (values.empty()) return;
    out.name(name).array();
    for (const std::string_view each : values) out.value(each);
    out.end();
  };
  list("authorization_servers", options.authorization_servers);
  list("scopes_supported", options.scopes);
  out.name("bearer_methods_supported").array().value("header").end();
  out.member("resource_name", options.title.empty() ? options.name : options.title).end();
}

}  // namespace coir::mcp
