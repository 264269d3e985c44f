#pragma once

#include <coir/config.h>

// Routes have auth= where there is a gateway and the store of credentials.
#define COIRD_ROUTE_AUTH (COIR_PROXY && !COIR_NO_ASYNC && COIR_TLS && COIR_SITE)

#if COIRD_ROUTE_AUTH
#include "options/options.h"

#include <coir/http/authorization.h>
#include <coir/http/proxy_table.h>
#include <coir/spinlock.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

// A store takes so much (CredentialStore::create).
inline constexpr std::size_t kStoreBytes = 20 * 1024;

// RouteAuth is the files that auth= of routes names, each read once for all routes.
class RouteAuth {
 public:
  static constexpr std::size_t kMost = 4;  // each takes 20 KB

  // load reads the files of a table of these options, again those that are known; half of the places may wait for a
  // password. False: a line has said why not. settle follows once that table counts: until then what was read before
  // counts on, and behind it files that the table does not name make room. One call at a time; on a fiber of 16 KB or
  // before the run.
  // `lines` is where each route is in the file of routes, 0 of one that is not there.
  bool load(const coir::http::ProxyTable& table, std::span<const std::uint16_t> lines, const Options& options,
            const char* cure) noexcept;
  void settle() noexcept;

  // planned_bytes is what the files of a table take.
  static std::size_t planned_bytes(const coir::http::ProxyTable& table) noexcept;

  // admits tells whether an exchange brings credentials of a file. False: it has been answered.
  bool admits(coir::http::Exchange& exchange, std::string_view path) noexcept;

 private:
  struct File {
    char path[256] = {};
    std::optional<coir::http::CredentialStore> store = {};
    bool named = false;   // by the table that counts
    bool wanted = false;  // by the table that was loaded last
    bool there = false;   // it has been read; guarded by lock_
    unsigned users = 0;   // that judge by it; guarded by lock_
  };

  File* find(std::string_view path) noexcept;
  File* make_room() noexcept;

  coir::Spinlock lock_;
  File files_[kMost];
  // Half of the places that the start has fitted to memory and descriptors, as the options of a reload are not.
  std::size_t most_waiting_ = 0;
};
#endif
