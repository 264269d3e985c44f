#include <coir/http/content.h>

#include <algorithm>

#include "base/charged.h"
#include "mcp/server/incoming.h"

namespace coir::mcp {
namespace {

// serving.cpp: a request, from its head to its era, for core.h.

using http::Exchange;
using http::Framing;
using http::Method;

// Block is memory of the heap, charged.
class Block {
 public:
  Block() noexcept = default;
  ~Block() { give_charged(account::mcp, memory_, size_); }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  bool take(std::size_t bytes) noexcept {
    memory_ = static_cast<char*>(take_charged(account::mcp, bytes));
    size_ = bytes;
    return memory_ != nullptr;
  }
  std::span<char> room() const noexcept { return {memory_, size_}; }

 private:
  char* memory_ = nullptr;
  std::size_t size_ = 0;
};

// A request's content up to this size takes that much of the exchange's scratch memory, and the response what is left. The
// document lies on the heap: a call holds no buffer of the exchange's while it waits.
constexpr std::size_t kSmallText = 1024;

void no_memory(Exchange& exchange) noexcept {
  answer_plain(exchange, 503, {}, kBusy, kNoMemory, {}, "Retry-After: 1\r\n");
}

[[gnu::noinline]] void dispatch_batch(ServerCore& core, Exchange& exchange, const Principal& who, JsonView root,
                                      bool legacy) noexcept {
  if (!legacy) return answer_plain(exchange, 400, {}, kInvalidRequest, "a message is an object");
  Session* const session = find_session(core, exchange, who, {});
  if (session == nullptr) return;
  answer_batch(core, exchange, *session, root);
  core.sessions.release(session);
}

// says_modern tells of a request that names its revision itself.
[[gnu::noinline]] bool says_modern(const Message& message) noexcept {
  return member_of(member_of(message.params, "_meta"), kVersionKey).has_value();
}

void dispatch(ServerCore& core, Exchange& exchange, const Principal& who, JsonView root, bool legacy,
              std::span<char> room) noexcept {
  if (root.kind() == JsonKind::array) return dispatch_batch(core, exchange, who, root, legacy);
  MessageId id;
  const auto message = read_message(root, id);
  if (!message) return answer_plain(exchange, 400, id, message.error().code, message.error().what);
  const auto named = find_version(exchange.request().header(kVersionField));
  // The field alone says so where it is there: then the body, which must say the same, is read once.
  const bool is_modern = (!legacy && named && era_of(*named) == Era::modern) || says_modern(*message);
  if (!is_modern && message->kind == MessageKind::request && message->method == "initialize") {
    return answer_initialize(core, exchange, who, *message, room);
  }
  if (!is_modern && !legacy && named) {
    return answer_plain(exchange, 400, id, kInvalidRequest, "Mcp-Session-Id is missing: begin by initialize");
  }
  if (is_modern || !legacy) return answer_modern(core, exchange, who, *message, room);
  Session* const session = find_session(core, exchange, who, id);
  if (session == nullptr) return;
  answer_legacy(core, exchange, *session, *message);
  core.sessions.release(session);
}

// take_content reads the content into `into`. Nothing: it has been answered.
std::optional<std::string_view> take_content(Exchange& exchange, std::span<char> into) noexcept {
  const auto text = http::read_content(exchange, into);
  if (!text) return std::nullopt;
  return *text;
}

void answer_post(ServerCore& core, Exchange& exchange, const Principal& who) noexcept {
  const http::Request& request = exchange.request();
  if (!http::is_json_type(request.header("Content-Type"))) {
    return exchange.respond_status(415, "Accept: application/json\r\n");
  }
  if (!accepts(request, "application/json")) return exchange.respond_status(406);
  const MessageLimits limits = {.json = core.options.request, .max_values = core.options.max_values};
  const std::string_view version = request.header(kVersionField);
  const auto named = find_version(version);
  const bool legacy = request.header(kSessionField).data() != nullptr && !(named && era_of(*named) == Era::modern);
  const std::span<char> scratch = exchange.scratch();
  const bool small = !legacy && request.framing == Framing::length && request.content_length <= kSmallText;

  Block content;
  std::span<char> into = scratch.first(kSmallText);
  if (!small) {
    std::size_t most = limits.json.max_bytes;
    if (request.framing == Framing::length) {
      most = static_cast<std::size_t>(std::min<std::uint64_t>(most, request.content_length));
    }
    if (request.framing == Framing::none) most = 0;
    if (!content.take(std::max<std::size_t>(most, 1))) return no_memory(exchange);
    into = content.room().first(most);
  }
  const auto text = take_content(exchange, into);
  if (!text) return;
  const auto bytes = message_bytes(*text, limits);
  if (!bytes) return answer_plain(exchange, 400, {}, bytes.error().code, bytes.error().what);
  Block parsed;
  if (!parsed.take(*bytes)) return no_memory(exchange);
  auto document = parse_message(*text, parsed.room());
  if (!document) return answer_plain(exchange, 400, {}, document.error().code, document.error().what);
  dispatch(core, exchange, who, document->root(), legacy, scratch.subspan(kSmallText));
}

}  // namespace

void ServerCore::serve(Exchange& exchange) noexcept {
  listeners.attach_to(exchange);
  Principal who;
  if (!pass(*this, exchange, who)) return;
  const http::Request& request = exchange.request();
  if (request.method == Method::post) return answer_post(*this, exchange, who);
  // GET and DELETE are of sessions alone.
  const bool of_session = request.header(kSessionField).data() != nullptr;
  if ((request.method != Method::get && request.method != Method::del) || !of_session) {
    return exchange.respond_status(405, "Allow: POST, GET, DELETE\r\n");
  }
  Session* const session = find_session(*this, exchange, who, {});
  if (session == nullptr) return;
  if (request.method == Method::get) {
    answer_get(*this, exchange, *session);
  } else {
    sessions.end(session);
    exchange.respond_status(204);
  }
  sessions.release(session);
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
