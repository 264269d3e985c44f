#pragma once

#include <coir/cancel_scope.h>
#include <coir/event.h>
#include <coir/mcp/gateway.h>
#include <coir/mutex.h>
#include <coir/semaphore.h>

#include <cstdint>
#include <expected>
#include <string_view>

#include "mcp/gateway/breaker.h"
#include "mcp/gateway/catalogue.h"
#include "mcp/gateway/watched_uris.h"

namespace coir::mcp::detail {

// Mounted is one upstream of a gateway: how it is asked, and what it has.
struct Mounted {
  Mounted(const Mount& given, McpClient&& by, const GatewayOptions& gateway) noexcept
      : mount(given),
        client(std::move(by)),
        options(gateway),
        breaker(given.failures, given.rest),
        turns(given.limit),
        watched(gateway) {}

  const Mount mount;
  McpClient client;
  const GatewayOptions& options;
  Breaker breaker;
  Semaphore turns;
  Catalogue lists[kItemKinds];
  Mutex listing;                      // one fiber at a time asks for lists
  Atomic<bool> hears = false;         // of changes
  Atomic<bool> told[kItemKinds];      // of a change of this list, since it was last asked for
  Atomic<bool> outdated[kItemKinds];  // a client was given a stale list since it was last had
  Event wanted;                       // a list took longer than a client waits, or was not had
  WatchedUris watched;
  Mutex relisten;                    // held for `listening`
  CancelScope* listening = nullptr;  // around the stream of changes; cancelled where that is to begin anew
  Atomic<bool> up = false;
  Atomic<std::uint32_t> calls = 0;
  Atomic<std::uint64_t> answered = 0, failed = 0;

  Catalogue& list(ItemKind kind) noexcept { return lists[static_cast<std::size_t>(kind)]; }

  // refresh asks for a list unless the one that is kept is fresh. A list that the server refuses, or that is too long,
  // or for which there is no memory, stays as it is. Errors, where the server has not answered: as McpClient::list.
  std::expected<void, Error> refresh(ItemKind kind) noexcept;
  // refresh_soon does so for a client, within a scope that is its patience; keep_lists, which runs for ever, goes on where that
  // was not enough, so that a slow server's list comes all the same. note_offered: the client is given what is there. Errors
  // of keep_lists: cancelled, timed_out.
  void refresh_soon(ItemKind kind) noexcept;
  std::expected<void, Error> keep_lists() noexcept;
  void note_offered(ItemKind kind) noexcept;
  // follow keeps the lists: it asks for them until they are there, then listens for changes, for ever. Errors:
  // cancelled, timed_out.
  std::expected<void, Error> follow() noexcept;

  // watch has the upstream tell of a resource that is offered as `uri`. Errors: as Source::watch.
  std::expected<void, Error> watch(std::string_view uri, std::string_view own) noexcept;

  // own_name is the upstream's name of something that is offered as `name`; absent: it is not of this mount. of_prefix is
  // that by the prefix alone.
  std::string_view own_name(ItemKind kind, std::string_view name) noexcept;
  std::string_view of_prefix(ItemKind kind, std::string_view name) const noexcept;
  bool has(ItemKind kind, std::string_view own) noexcept;

  // ended takes how a request has ended; null: with a result. An error of JSON-RPC is an answer, too, and a fault of one
  // message says nothing of the server.
  void ended(const Failure* failure) noexcept;

 private:
  bool has_lists() noexcept;
  void note(bool got_answer) noexcept;
  std::expected<void, Failure> ask_for(ItemKind kind) noexcept;
  std::expected<void, Error> refresh_all() noexcept;
  void make_all_stale() noexcept;
  std::chrono::milliseconds pause_after(std::uint32_t fruitless) const noexcept;
  void take_change(const Notification& change) noexcept;
  std::expected<void, Failure> listen(CancelScope& scope) noexcept;
  void changed(ItemKind kind) noexcept {
    if (options.changed) options.changed(kind);
  }
};

// fits_template tells whether a URI may be of a template: it begins as that does before its first parameter.
bool fits_template(std::string_view uri, std::string_view uri_template) noexcept;

}  // namespace coir::mcp::detail
