#include "mcp/server/posted.h"

namespace coir::mcp {
namespace {

// modern.cpp: a message of 2026-07-28, for incoming.h.

[[gnu::noinline]] void reject(Incoming& in, int code, std::string_view message, std::string_view data = {}) noexcept {
  refuse(in, code == kMethodNotFound ? 404 : 400, code, message, data);
}

constexpr std::string_view kTooManyResources = "resourceSubscriptions: too many, or too long a URI";

// fits_acknowledgement tells whether what names all resources fits into a stream's first piece.
[[gnu::noinline]] bool fits_acknowledgement(const Listener& one) noexcept {
  constexpr std::size_t kMost = 7 * 1024;
  Text text({}, kMost);
  char* const room = text.take(kMost);
  return room != nullptr && !write_acknowledged(one, {room, kMost}).empty();
}

// listen answers subscriptions/listen by a stream that rests.
[[gnu::noinline]] void listen(Incoming& in, http::Exchange& exchange) noexcept {
  const auto wanted = object_of(in.param("notifications"));
  if (!wanted) return reject(in, kInvalidParams, "notifications: an object is wanted");
  if (in.message.id.text.size() > Listeners::kMostId) return reject(in, kInvalidParams, "the id is too long");
  if (!in.reply.may_stream()) return exchange.respond_status(406);
  Listeners& listeners = in.core.listeners;
  Listener* const one = listeners.make_listener(in.message.id, nullptr, nullptr);
  if (one == nullptr) return refuse(in, 503, kBusy, kNoMemory);
  const auto list = [&](std::string_view name, ItemKind kind) {
    const auto is = wanted->find(name);
    if (!is_kind(is, JsonKind::boolean) || !is->boolean().value_or(false) || !in.core.offers(kind)) return;
    one->own.filter = static_cast<ListBits>(one->own.filter | list_bit(kind));
  };
  list("toolsListChanged", ItemKind::tools);
  list("promptsListChanged", ItemKind::prompts);
  list("resourcesListChanged", ItemKind::resources);
  if (const auto uris = wanted->find("resourceSubscriptions"); is_kind(uris, JsonKind::array)) {
    for (const JsonView each : uris->elements()) {
      const auto uri = text_of(each);
      if (!uri || !in.core.offers(ItemKind::resources)) continue;
      const auto watched = in.core.watch(one->own, *uri, Listeners::kMostResources);
      if (watched) continue;
      listeners.drop_listener(one);
      if (watched.error() == ErrorCode::limit) return reject(in, kInvalidParams, kTooManyResources);
      return refuse(in, 503, kBusy, describe_unwatched(watched.error()));
    }
  }
  if (one->own.watched != nullptr && !fits_acknowledgement(*one)) {
    listeners.drop_listener(one);
    return reject(in, kInvalidParams, kTooManyResources);
  }
  listeners.listen(exchange, one);
}

[[gnu::noinline]] void unsupported_version(Incoming& in, std::string_view requested) noexcept {
  char room[256];
  JsonText data(room);
  {
    JsonWriter out(data);
    out.object().name("supported").array();
    const bool legacy_too = !find_version(requested);
    for (std::size_t i = kVersions; i > 0; --i) {
      const auto version = static_cast<Version>(i - 1);
      if (legacy_too || era_of(version) == Era::modern) out.value(version_text(version));
    }
    out.end().member("requested", requested.substr(0, 64)).end();
  }
  reject(in, kUnsupportedVersion, "Unsupported protocol version", data.view());
}

// read_meta reads what a request says of itself. False: it has been answered.
[[gnu::noinline]] bool read_meta(Incoming& in) noexcept {
  const auto meta = object_of(in.param("_meta"));
  const auto version = text_of(member_of(meta, kVersionKey));
  if (!version) {
    reject(in, kInvalidParams, "_meta: io.modelcontextprotocol/protocolVersion is missing");
    return false;
  }
  const auto capabilities = object_of(member_of(meta, kCapabilitiesKey));
  if (!capabilities) {
    reject(in, kInvalidParams, "_meta: io.modelcontextprotocol/clientCapabilities is missing");
    return false;
  }
  char room[320];
  if (const std::string_view flaw = compare_fields(in, *version, room); !flaw.empty()) {
    reject(in, kHeaderMismatch, flaw);
    return false;
  }
  const auto known = find_version(*version);
  if (!known || era_of(*known) != Era::modern) {
    unsupported_version(in, *version);
    return false;
  }
  in.capabilities = read_capabilities(capabilities);
  // Most requests say these two things of themselves and nothing else.
  if (meta->size() <= 2) return true;
  if (const auto level = member_of(meta, kLogLevelKey)) {
    in.level = find_log_level(text_of(level).value_or(std::string_view()));
    if (!in.level) {
      reject(in, kInvalidParams, "_meta: io.modelcontextprotocol/logLevel is none");
      return false;
    }
  }
  if (const auto token = member_of(meta, "progressToken")) {
    if (const auto text = text_of(token)) {
      in.progress = {.given = true, .is_text = true, .text = *text};
    } else if (const auto number = integer_of(token)) {
      in.progress = {.given = true, .number = *number};
    }
  }
  return true;
}

// begin_request makes what a request needs, in a frame that is gone while a call waits.
[[gnu::noinline]] Incoming& begin_request(Posted& posted, std::span<char> room) noexcept {
  const http::Request& request = posted.exchange.request();
  Reply& reply = posted.reply.emplace(posted.core, posted.exchange, nullptr, Era::modern, posted.takes_events);
  return posted.in.emplace(Incoming{.posted = posted,
                                    .core = posted.core,
                                    .request = &request,
                                    .reply = reply,
                                    .who = posted.who,
                                    .version = Version::v2026_07_28,
                                    .session = nullptr,
                                    .message = posted.message,
                                    .room = room});
}

}  // namespace

void answer_modern(Posted& posted, std::span<char> room) noexcept {
  http::Exchange& exchange = posted.exchange;
  const Message& message = posted.message;
  if (message.kind == MessageKind::notification) return exchange.respond_status(202);
  if (message.kind != MessageKind::request) {
    return answer_plain(exchange, 400, {}, kInvalidRequest, "a request is wanted: this revision has no others");
  }
  const std::int64_t began = posted.core.options.audit ? monotonic_ns() : 0;
  Incoming& in = begin_request(posted, room);
  if (!read_meta(in)) {
    // answered
  } else if (message.method == "subscriptions/listen") {
    return listen(in, exchange);
  } else if (!is_known_method(in.core, in.version, message.method)) {
    reject(in, kMethodNotFound, "Method not found");
  } else {
    answer_method(in);
  }
  audited(in, began);
}

}  // namespace coir::mcp
