// Lists and changes of coir/mcp/client.h.
#include <coir/cancel_scope.h>
#include <coir/json_writer.h>
#include <coir/mcp/client.h>

#include <algorithm>

#include "mcp/client/client_state.h"
#include "mcp/client/parameter_fields.h"
#include "mcp/client/wire/growing_text.h"

namespace coir::mcp {

using detail::GrowingText;

namespace {

constexpr std::size_t kMostPages = 1000;

struct ListWords {
  std::string_view method;
  std::string_view member;
};
constexpr ListWords kWordsOfLists[] = {{"tools/list", "tools"},
                                       {"resources/list", "resources"},
                                       {"resources/templates/list", "resourceTemplates"},
                                       {"prompts/list", "prompts"}};

std::int64_t fresh_ms(JsonView result) noexcept {
  const auto ttl = result.find("ttlMs");
  if (!ttl || ttl->kind() != JsonKind::number) return 0;
  const auto number = ttl->integer<std::int64_t>();
  return number ? std::max<std::int64_t>(*number, 0) : 0;
}

bool is_private(JsonView result) noexcept {
  const auto scope = result.find("cacheScope");
  const auto text = scope && scope->kind() == JsonKind::text ? scope->text() : std::unexpected(Error{});
  return text && *text == "private";
}

// hand_out calls `each` with the items of a page. False: it has had enough.
bool hand_out(const Answer& page, Listed what, bool by_http, const McpClient::Each& each, std::size_t& count) noexcept {
  const std::string_view member = kWordsOfLists[static_cast<std::size_t>(what)].member;
  const auto items = page.result().find(member);
  if (!items || items->kind() != JsonKind::array) return true;
  detail::RawElements texts(detail::raw_member(page.text(), member));
  for (const JsonView item : items->elements()) {
    const auto text = texts.next();
    if (!text || item.kind() != JsonKind::object) continue;
    if (what == Listed::tools && by_http && !detail::ParameterFields::sound(detail::raw_member(*text, "inputSchema"))) {
      continue;
    }
    ++count;
    if (!each(item, *text)) return false;
  }
  return true;
}

[[gnu::noinline]] std::expected<void, Error> write_changes(GrowingText& into, const Changes& changes) noexcept {
  JsonWriter out(into);
  out.object().name("notifications").object();
  if (changes.tools) out.member("toolsListChanged", true);
  if (changes.prompts) out.member("promptsListChanged", true);
  if (changes.resources) out.member("resourcesListChanged", true);
  if (!changes.uris.empty()) {
    out.name("resourceSubscriptions").array();
    for (const std::string_view uri : changes.uris) out.value(uri);
    out.end();
  }
  out.end().end();
  return out.finish();
}

[[gnu::noinline]] std::expected<void, Error> write_uri(GrowingText& into, std::string_view uri) noexcept {
  JsonWriter out(into);
  out.object().member("uri", uri).end();
  return out.finish();
}

}  // namespace

std::expected<ListedAs, Failure> McpClient::list(Listed what, const Each& each, const CallOptions& options) noexcept {
  CallOptions within = options;
  if (within.deadline.is_never()) within.deadline = Deadline::after(state_->options.timeout);
  ListedAs listed;
  bool first = true;
  GrowingText params;
  for (std::size_t pages = 0; pages < kMostPages; ++pages) {
    auto page = request(
        {.method = kWordsOfLists[static_cast<std::size_t>(what)].method, .params = params.view(), .repeatable = true},
        within);
    if (!page) return std::unexpected(std::move(page.error()));
    const std::chrono::milliseconds fresh{fresh_ms(page->result())};
    listed.fresh = first ? fresh : std::min(listed.fresh, fresh);
    listed.is_private = listed.is_private || is_private(page->result());
    first = false;
    if (!hand_out(*page, what, state_->http.has_value(), each, listed.count)) return listed;
    const std::string_view cursor = detail::raw_member(page->text(), "nextCursor");
    if (!cursor.starts_with('"')) return listed;
    GrowingText next;
    detail::TextParts parts(next);
    parts << R"({"cursor":)" << cursor << "}";
    if (!parts.outcome()) return std::unexpected(Failure(parts.outcome().error()));
    params = std::move(next);
  }
  return std::unexpected(Failure(ErrorCode::limit));
}

std::expected<void, Failure> McpClient::listen(const Changes& changes, const CallOptions& options) noexcept {
  CancelScope scope(options.deadline);
  detail::Agreement session;
  detail::Outcome outcome = detail::agree(*state_, session);
  if (session.version && session.modern()) {
    GrowingText params;
    if (auto written = write_changes(params, changes); !written) return std::unexpected(Failure(written.error()));
    const McpRequest wanted{.method = "subscriptions/listen", .params = params.view()};
    detail::Ask ask{.request = wanted, .options = options};
    outcome = detail::ask_server(*state_, ask);
    if (outcome.answered()) return {};
  } else if (session.version) {
    for (const std::string_view uri : changes.uris) {
      GrowingText params;
      if (auto written = write_uri(params, uri); !written) return std::unexpected(Failure(written.error()));
      auto subscribed = request({.method = "resources/subscribe", .params = params.view(), .repeatable = true});
      if (subscribed) continue;
      // One that is refused costs no other.
      if (subscribed.error().code() == 0) return std::unexpected(std::move(subscribed.error()));
      state_->counters.ignored.fetch_add(1, std::memory_order_relaxed);
    }
    const McpRequest none{};
    detail::Ask ask{.request = none, .options = options, .to_listen = true};
    outcome = detail::ask_server(*state_, ask);
  }
  if (outcome.reply) {
    const Error error = detail::error_by_code(detail::error_code(*outcome.reply));
    return std::unexpected(Failure(error, outcome.reply.release()));
  }
  if (scope.caused(outcome.error)) outcome.error.scope = 0;
  return std::unexpected(Failure(outcome.error));
}

}  // namespace coir::mcp
