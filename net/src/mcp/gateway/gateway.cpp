#include <coir/mcp/detail/account.h>
#include <coir/mcp/gateway.h>

#include <coir/all.h>
#include <coir/cancel_scope.h>
#include <coir/cancellation.h>
#include <coir/mcp.h>
#include <coir/nursery.h>

#include <algorithm>

#include "base/charged.h"
#include "http/text/characters.h"
#include "mcp/client/wire/growing_text.h"
#include "mcp/gateway/forwarding.h"
#include "mcp/gateway/mounted.h"
#include "mcp/message/raw_json.h"

namespace coir::mcp {

namespace detail {

// GatewayState is what a Gateway is a handle of, and the source itself.
struct GatewayState final : Source {
  explicit GatewayState(const GatewayOptions& given) noexcept : options(given) {}

  bool lists(ItemKind kind) noexcept override;
  void list(ItemKind kind, Items& into) noexcept override;
  bool owns(ItemKind kind, std::string_view name) noexcept override;
  std::expected<void, Error> watch(std::string_view uri) noexcept override;
  void forward(Call& call, ItemKind kind, JsonView params) noexcept override;
  void complete(Call& call, ItemKind kind, JsonView params) noexcept override;

  std::span<Mounted* const> all() const noexcept { return {mounted, count}; }
  Mounted* owner(ItemKind kind, std::string_view name, std::string_view& own) noexcept;
  bool is_of_an_earlier(const Mounted& one, ItemKind kind, std::string_view name) noexcept;
  bool hand_out(Mounted& from, ItemKind kind, Items& into) noexcept;

  static constexpr std::size_t kMost = 64;
  // How long a list waits for upstreams whose lists are stale; then it is made of what is known.
  static constexpr std::chrono::milliseconds kPatience{2'000};

  const GatewayOptions options;
  std::size_t count = 0;
  Mounted* mounted[kMost];
  CancellationSource closing;
};

namespace {

bool is_sound(std::string_view prefix) noexcept {
  constexpr std::size_t kMostPrefix = 32;
  return prefix.size() <= kMostPrefix && std::ranges::all_of(prefix, [](char c) {
           return http::is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-';
         });
}

bool is_of_uris(ItemKind kind) noexcept {
  return kind == ItemKind::resources || kind == ItemKind::templates;
}

// rename writes an item with another name.
[[gnu::noinline]] std::expected<void, Error> rename(GrowingText& into, std::string_view json, std::string_view key,
                                                    std::string_view name) noexcept {
  JsonWriter out(into);
  out.object();
  RawMembers members(json);
  while (const auto member = members.next()) {
    out.name(member->name);
    member->name == key ? out.value(name) : out.raw(member->value);
  }
  out.end();
  return out.finish();
}

}  // namespace

bool GatewayState::lists(ItemKind) noexcept {
  return true;
}

Mounted* GatewayState::owner(ItemKind kind, std::string_view name, std::string_view& own) noexcept {
  for (Mounted* const each : all()) {
    own = each->own_name(kind, name);
    if (!own.empty()) return each;
  }
  return nullptr;
}

bool GatewayState::is_of_an_earlier(const Mounted& one, ItemKind kind, std::string_view name) noexcept {
  for (Mounted* const each : all()) {
    if (each == &one) return false;
    if (each->has(kind, name)) return true;
  }
  return false;
}

// hand_out gives the items of one mount. False: there is no room for more.
bool GatewayState::hand_out(Mounted& from, ItemKind kind, Items& into) noexcept {
  const Catalogue::Held held(from.list(kind));
  CatalogueWalk walk(held.get());
  const std::string_view prefix = from.mount.prefix;
  while (const auto item = walk.next()) {
    const bool collides = is_of_uris(kind) && is_of_an_earlier(from, kind, item->name);
    if (prefix.empty() && collides) continue;
    if (prefix.empty() || (is_of_uris(kind) && !collides)) {
      if (!into.add(item->name, item->json)) return false;
      continue;
    }
    const std::string_view key = kind == ItemKind::resources   ? "uri"
                                 : kind == ItemKind::templates ? "uriTemplate"
                                                               : "name";
    GrowingText name, json;
    TextParts parts(name);
    parts << prefix << (is_of_uris(kind) ? "+" : "_") << item->name;
    if (!parts.outcome() || !rename(json, item->json, key, name.view())) continue;
    if (!into.add(name.view(), json.view())) return false;
  }
  return true;
}

void GatewayState::list(ItemKind kind, Items& into) noexcept {
  const auto is_due = [&](Mounted* each) {
    return each->up.load(std::memory_order_relaxed) && each->list(kind).is_due();
  };
  if (std::ranges::any_of(all(), is_due)) {
    CancelScope scope(Deadline::after(kPatience));
    static_cast<void>(all_of(all(), [&](Mounted* each) {
      if (is_due(each)) each->refresh_soon(kind);
    }));
  }
  for (Mounted* const each : all()) each->note_offered(kind);
  for (Mounted* const each : all()) {
    if (!hand_out(*each, kind, into)) return;
  }
}

bool GatewayState::owns(ItemKind kind, std::string_view name) noexcept {
  std::string_view own;
  return owner(kind, name, own) != nullptr;
}

std::expected<void, Error> GatewayState::watch(std::string_view uri) noexcept {
  std::string_view own;
  Mounted* const of = owner(ItemKind::resources, uri, own);
  return of != nullptr ? of->watch(uri, own) : std::expected<void, Error>();
}

void GatewayState::forward(Call& call, ItemKind kind, JsonView params) noexcept {
  std::string_view own;
  Mounted* const to = owner(kind, call.name(), own);
  if (to == nullptr) return call.refuse(kInvalidParams, "nobody has that any more");
  detail::forward(*to, call, kind, params, own);
}

void GatewayState::complete(Call& call, ItemKind kind, JsonView params) noexcept {
  std::string_view own;
  Mounted* const to = owner(kind, call.name(), own);
  if (to == nullptr) return call.refuse(kInvalidParams, "nobody has that any more");
  forward_completion(*to, call, kind, params, own);
}

}  // namespace detail

using detail::GatewayState;
using detail::Mounted;

std::expected<Gateway, Error> Gateway::create(std::span<const Mount> mounts, const GatewayOptions& options) noexcept {
  if (mounts.empty()) return std::unexpected(Error{ErrorCode::invalid});
  if (mounts.size() > GatewayState::kMost) return std::unexpected(Error{ErrorCode::limit});
  for (const Mount& each : mounts) {
    const auto same = [&](const Mount& other) { return other.prefix == each.prefix; };
    if (!detail::is_sound(each.prefix) || std::ranges::count_if(mounts, same) != 1 || each.limit == 0 ||
        each.failures == 0) {
      return std::unexpected(Error{ErrorCode::invalid});
    }
  }
  auto* const state = construct_charged<GatewayState>(account::mcp, options);
  if (state == nullptr) return std::unexpected(Error{ErrorCode::no_memory});
  Gateway gateway(state);
  for (const Mount& each : mounts) {
    auto client = McpClient::create(each.upstream);
    if (!client) return std::unexpected(client.error());
    auto* const mounted = construct_charged<Mounted>(account::mcp, each, std::move(*client), state->options);
    if (mounted == nullptr) return std::unexpected(Error{ErrorCode::no_memory});
    state->mounted[state->count++] = mounted;
  }
  return gateway;
}

Gateway::~Gateway() {
  if (state_ == nullptr) return;
  for (Mounted* const each : state_->all()) destroy_charged(account::mcp, each);
  destroy_charged(account::mcp, state_);
}

Source& Gateway::source() noexcept {
  return *state_;
}

std::expected<void, Error> Gateway::run() noexcept {
  CancelScope scope;
  const CancellationWatch watch(state_->closing.token(), scope);
  if (state_->closing.cancelled()) return {};
  std::expected<void, Error> outcome;
  {
    Nursery nursery;
    for (Mounted* const each : state_->all()) {
      nursery.start({.name = "mcp mount"}, [each] { return each->follow(); });
      nursery.start({.name = "mcp lists"}, [each] { return each->keep_lists(); });
      nursery.start({.name = "mcp program"}, [each] { return each->client.run(); });
    }
    outcome = nursery.join();
  }
  if (state_->closing.cancelled()) return {};
  return outcome;
}

void Gateway::close() noexcept {
  state_->closing.cancel("the gateway is closed");
}

std::size_t Gateway::mounts() const noexcept {
  return state_->count;
}

MountGauges Gateway::gauges(std::size_t mount) const noexcept {
  Mounted& one = *state_->mounted[mount];
  return {.prefix = one.mount.prefix,
          .up = one.up.load(std::memory_order_relaxed),
          .is_resting = one.breaker.is_open(),
          .calls = one.calls.load(std::memory_order_relaxed),
          .answered = one.answered.load(std::memory_order_relaxed),
          .failed = one.failed.load(std::memory_order_relaxed)};
}

}  // namespace coir::mcp
