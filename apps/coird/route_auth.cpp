#include "route_auth.h"

#if COIRD_ROUTE_AUTH

#include <utility>

#include "auth.h"
#include "complaint.h"
#include "options/row.h"

using coir::http::CredentialStore;

bool RouteAuth::load(const coir::http::ProxyTable& table, std::span<const std::uint16_t> lines, const Options& options,
                     const char* cure) noexcept {
  for (File& file : files_) file.wanted = false;
  if (most_waiting_ == 0) most_waiting_ = options.server.max_active / 2;
  for (std::size_t i = 0; i < table.size(); ++i) {
    const std::string_view path = table[i].auth;
    if (path.empty()) continue;
    File* file = find(path);
    if (file != nullptr && file->wanted) continue;
    const Setting in_routes{.row = &route_key_row(), .text = "auth=", .file = options.routes, .line = lines[i]};
    NamedFile named{.path = nullptr, .key = lines[i] != 0 ? &in_routes : options.route_key("auth", path)};
    if (file == nullptr && (file = make_room()) == nullptr)
      return named.wrong(cure, {"more than ", kMost, " files of credentials"});
    if (!file->store) {
      auto store = CredentialStore::create(most_waiting_);
      if (!store) return named.wrong(cure, {store.error()});
      file->store.emplace(std::move(*store));
      file->path[path.copy(file->path, sizeof file->path - 1)] = '\0';
    }
    named.path = file->path;
    if (!read_auth(named, *file->store, cure)) return false;
    file->wanted = true;
    // By one that no route names nobody judges yet.
    if (!file->named) file->store->apply();
    const coir::Locked locked(lock_);
    file->there = true;
  }
  return true;
}

void RouteAuth::settle() noexcept {
  for (File& file : files_) {
    if (file.named && file.wanted) file.store->apply();
    file.named = file.wanted;
  }
}

std::size_t RouteAuth::planned_bytes(const coir::http::ProxyTable& table) noexcept {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < table.size(); ++i) {
    bool first = !table[i].auth.empty();
    for (std::size_t k = 0; k < i; ++k) first = first && table[k].auth != table[i].auth;
    if (first) bytes += kStoreBytes;
  }
  return bytes;
}

RouteAuth::File* RouteAuth::find(std::string_view path) noexcept {
  for (File& file : files_) {
    if (file.there && path == file.path) return &file;
  }
  return nullptr;
}

// make_room returns a place that no table names and nobody judges by; null: there is none.
RouteAuth::File* RouteAuth::make_room() noexcept {
  for (File& file : files_) {
    if (file.named || file.wanted) continue;
    {
      const coir::Locked locked(lock_);
      if (file.users != 0) continue;
      file.there = false;
    }
    file.store.reset();
    return &file;
  }
  return nullptr;
}

bool RouteAuth::admits(coir::http::Exchange& exchange, std::string_view path) noexcept {
  File* file;
  {
    const coir::Locked locked(lock_);
    file = find(path);
    if (file != nullptr) ++file->users;
  }
  if (file == nullptr) {
    // Its route is gone, and its file with it, while this exchange was on its way.
    exchange.respond_status(503, "Retry-After: 1\r\n");
    return false;
  }
  const bool admitted = is_admitted(exchange, *file->store, nullptr);
  const coir::Locked locked(lock_);
  --file->users;
  return admitted;
}

#endif
