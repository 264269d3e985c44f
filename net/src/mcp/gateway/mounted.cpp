#include "mcp/gateway/mounted.h"

#include <coir/cancel_scope.h>
#include <coir/fiber.h>

#include <algorithm>

namespace coir::mcp::detail {

namespace {

static_assert(static_cast<int>(Listed::tools) == static_cast<int>(ItemKind::tools) &&
              static_cast<int>(Listed::resources) == static_cast<int>(ItemKind::resources) &&
              static_cast<int>(Listed::templates) == static_cast<int>(ItemKind::templates) &&
              static_cast<int>(Listed::prompts) == static_cast<int>(ItemKind::prompts));

constexpr std::string_view kIds[] = {"name", "uri", "uriTemplate", "name"};
constexpr ItemKind kKinds[] = {ItemKind::tools, ItemKind::resources, ItemKind::templates, ItemKind::prompts};

// How often in a row a server may refuse for a reason that may pass before that is put down to a resource.
constexpr std::uint32_t kMostRefusals = 3;
// A stream that lasts as long as the pause before it proves that the server is well again. No stream has to last longer
// than a pause that has doubled so often.
constexpr std::uint32_t kMostDoubled = 3;

bool names_by_uri(ItemKind kind) noexcept {
  return kind == ItemKind::resources || kind == ItemKind::templates;
}

}  // namespace

bool fits_template(std::string_view uri, std::string_view uri_template) noexcept {
  const std::size_t parameter = uri_template.find('{');
  return parameter == uri_template.npos ? uri == uri_template : uri.starts_with(uri_template.substr(0, parameter));
}

bool Mounted::has_lists() noexcept {
  return std::ranges::all_of(lists, [](Catalogue& each) { return each.known(); });
}

void Mounted::note(bool got_answer) noexcept {
  up.store(got_answer && has_lists(), std::memory_order_relaxed);
  (got_answer ? answered : failed).fetch_add(1, std::memory_order_relaxed);
}

void Mounted::ended(const Failure* failure) noexcept {
  if (failure == nullptr || failure->code() != 0) {
    breaker.succeeded();
    return note(true);
  }
  const Error error = failure->error();
  if (error.ends_waits() || error == ErrorCode::limit || error == ErrorCode::no_memory) return breaker.given_up();
  breaker.failed();
  note(false);
}

std::expected<void, Failure> Mounted::ask_for(ItemKind kind) noexcept {
  auto made = Catalogue::make_block(mount.max_list);
  if (!made) return std::unexpected(Failure(made.error()));
  CatalogueBlock* const block = *made;
  // A change that is announced from here on may be missing in the answer.
  const std::uint32_t changes = list(kind).changes();
  auto& was_told = told[static_cast<std::size_t>(kind)];
  const bool knew = was_told.exchange(false, std::memory_order_relaxed);
  std::expected<void, Error> kept;
  const auto keep = [&](JsonView item, std::string_view text) noexcept {
    const auto name = item[kIds[static_cast<std::size_t>(kind)]].text();
    if (name && !name->empty()) kept = Catalogue::add(*block, *name, text);
    return kept.has_value();
  };
  auto listed = client.list(static_cast<Listed>(kind), keep, {.deadline = Deadline::after(mount.deadline)});
  // A server without such a list says that the method is unknown.
  const bool none = !listed && listed.error().code() == kMethodNotFound;
  if ((!listed && !none) || !kept) {
    Catalogue::drop(block);
    return std::unexpected(kept ? std::move(listed.error()) : Failure(kept.error()));
  }
  std::chrono::milliseconds fresh = listed ? listed->fresh : std::chrono::milliseconds(0);
  if (fresh.count() == 0) fresh = hears.load(std::memory_order_relaxed) ? options.fresh_if_told : options.fresh;
  bool differs;
  {
    const Catalogue::Held before(list(kind));
    differs = before.get() == nullptr ? block->count != 0 : before.get()->items.view() != block->items.view();
  }
  list(kind).put(block, fresh, changes);
  // A client that has the latest list knows the changes that the upstream has announced.
  const bool is_news = !knew && !was_told.load(std::memory_order_relaxed);
  if (outdated[static_cast<std::size_t>(kind)].exchange(false, std::memory_order_relaxed) || is_news) {
    if (differs) changed(kind);
  }
  return {};
}

std::expected<void, Error> Mounted::refresh(ItemKind kind) noexcept {
  if (list(kind).is_fresh()) return {};
  auto held = listing.lock();
  if (!held) return std::unexpected(held.error());
  if (list(kind).is_fresh()) return {};
  if (!breaker.let()) return std::unexpected(Error{ErrorCode::temporary});
  const auto asked = ask_for(kind);
  ended(asked ? nullptr : &asked.error());
  if (asked) return {};
  const Error error = asked.error().error();
  const bool is_refused = asked.error().code() != 0 || error == ErrorCode::limit;
  if (!is_refused && error != ErrorCode::no_memory) return std::unexpected(error);
  // The server's other lists stay. The old list serves, or an empty one, until the server gives a new one when asked again.
  if (!list(kind).known()) {
    const auto none = is_refused ? Catalogue::make_block(0) : std::unexpected(error);
    if (!none) return std::unexpected(none.error());
    list(kind).put(*none);
  }
  if (is_refused) up.store(has_lists(), std::memory_order_relaxed);
  list(kind).rest_for(options.fresh);
  wanted.set();
  return {};
}

std::expected<void, Error> Mounted::refresh_all() noexcept {
  for (const ItemKind kind : kKinds) {
    if (auto fresh = refresh(kind); !fresh) return fresh;
  }
  return {};
}

void Mounted::refresh_soon(ItemKind kind) noexcept {
  const auto had = refresh(kind);
  if (had) return;
  list(kind).rest_for(options.fresh);
  if (had.error().ends_waits()) wanted.set();
}

void Mounted::note_offered(ItemKind kind) noexcept {
  if (!list(kind).is_fresh()) outdated[static_cast<std::size_t>(kind)].store(true, std::memory_order_relaxed);
}

std::expected<void, Error> Mounted::keep_lists() noexcept {
  for (;;) {
    if (auto waited = wanted.wait(); !waited) return waited;
    wanted.reset();
    const auto had = refresh_all();
    if (!had && had.error().ends_waits()) return had;
    if (!had) wanted.set();
    if (!wanted.is_set()) continue;
    if (auto slept = sleep(options.longest_pause); !slept) return slept;
  }
}

void Mounted::take_change(const Notification& change) noexcept {
  const std::string_view method = change.method;
  const auto take = [&](ItemKind kind) {
    told[static_cast<std::size_t>(kind)].store(true, std::memory_order_relaxed);
    list(kind).make_stale();
    changed(kind);
  };
  if (method == "notifications/subscriptions/acknowledged") {
    hears.store(true, std::memory_order_relaxed);
    // This is the fiber of `listen`, so that the scope is there.
    if (watched.accepted()) listening->cancel("the refused resource is known");
  } else if (method == "notifications/tools/list_changed") {
    take(ItemKind::tools);
  } else if (method == "notifications/prompts/list_changed") {
    take(ItemKind::prompts);
  } else if (method == "notifications/resources/list_changed") {
    take(ItemKind::resources);
    take(ItemKind::templates);
  } else if (method == "notifications/resources/updated") {
    const auto uri = change.params["uri"].text();
    const std::string_view offered = uri ? watched.offered(*uri) : std::string_view();
    if (!offered.empty() && options.updated) options.updated(offered);
  }
}

std::expected<void, Error> Mounted::watch(std::string_view uri, std::string_view own) noexcept {
  const auto added = watched.add(uri, own);
  if (!added) return std::unexpected(added.error());
  if (!*added) return {};
  const Shield shield(Deadline::never());
  if (const auto held = relisten.lock(); held && listening != nullptr) listening->cancel("another resource is watched");
  return {};
}

// make_all_stale is for the time without a listener, in which no change is announced.
void Mounted::make_all_stale() noexcept {
  for (const ItemKind kind : kKinds) list(kind).make_stale();
}

// listen is until the stream of changes ends, or is to begin anew: then `scope` has caused the error.
std::expected<void, Failure> Mounted::listen(CancelScope& scope) noexcept {
  {
    const auto held = relisten.lock();
    if (!held) return std::unexpected(Failure(held.error()));
    listening = &scope;
  }
  const CallOptions hearing{.told = [this](const Notification& notification) { take_change(notification); }};
  // A subscription that is added from here on cancels the scope.
  auto listened =
      client.listen({.tools = true, .prompts = true, .resources = true, .uris = watched.current()}, hearing);
  const Shield shield(Deadline::never());
  const auto held = relisten.lock();
  listening = nullptr;
  return listened;
}

std::chrono::milliseconds Mounted::pause_after(std::uint32_t fruitless) const noexcept {
  const auto pause = options.pause * (std::int64_t{1} << std::min(fruitless, 16u));
  return std::min<std::chrono::milliseconds>(pause, options.longest_pause);
}

std::expected<void, Error> Mounted::follow() noexcept {
  std::uint32_t fruitless = 0, refusals = 0;
  for (;;) {
    const auto had = refresh_all();
    if (had) {
      const Deadline proven = Deadline::after(pause_after(std::min(fruitless, kMostDoubled)));
      CancelScope scope;
      const auto listened = listen(scope);
      const bool heard = hears.exchange(false, std::memory_order_relaxed);
      const bool refused = !listened && listened.error().code() != 0;
      refusals = refused && !heard ? refusals + 1 : 0;
      if (!listened && scope.caused(listened.error().error())) {
        make_all_stale();
        continue;
      }
      const Error error = listened ? Error{} : listened.error().error();
      if (error.ends_waits()) return std::unexpected(error);
      // If a server refuses, one of the resources may be why, and is searched for. If the reason may pass, all are named a
      // few times first.
      const bool for_good =
          refused && (error == ErrorCode::unsupported || error == ErrorCode::invalid || error == ErrorCode::not_found);
      if (for_good || refusals > kMostRefusals) {
        if (watched.set_newest_aside()) continue;
        refusals = 0;
      }
      // A server that tells of no changes is asked again when its lists are wanted, and here now and then.
      if (for_good || error == ErrorCode::unsupported) {
        if (auto slept = sleep(options.longest_pause); !slept) return slept;
        continue;
      }
      if (heard && proven.passed()) fruitless = 0;
      make_all_stale();
    } else if (had.error().ends_waits()) {
      return had;
    }
    if (auto slept = sleep(pause_after(fruitless++)); !slept) return slept;
  }
}

std::string_view Mounted::of_prefix(ItemKind kind, std::string_view name) const noexcept {
  const std::string_view prefix = mount.prefix;
  const char separator = names_by_uri(kind) ? '+' : '_';
  if (prefix.empty()) return names_by_uri(kind) ? std::string_view() : name;
  if (name.size() <= prefix.size() + 1 || !name.starts_with(prefix) || name[prefix.size()] != separator) return {};
  return name.substr(prefix.size() + 1);
}

bool Mounted::has(ItemKind kind, std::string_view own) noexcept {
  {
    const Catalogue::Held held(list(kind));
    CatalogueWalk walk(held.get());
    while (const auto item = walk.next()) {
      if (item->name == own) return true;
    }
  }
  if (kind != ItemKind::resources) return false;
  const Catalogue::Held held(list(ItemKind::templates));
  CatalogueWalk walk(held.get());
  while (const auto item = walk.next()) {
    if (fits_template(own, item->name)) return true;
  }
  return false;
}

std::string_view Mounted::own_name(ItemKind kind, std::string_view name) noexcept {
  const std::string_view own = of_prefix(kind, name);
  // If a list may have changed, the upstream itself decides.
  if (!own.empty() && (has(kind, own) || (!mount.prefix.empty() && !list(kind).is_fresh()))) return own;
  return names_by_uri(kind) && has(kind, name) ? name : std::string_view();
}

}  // namespace coir::mcp::detail
