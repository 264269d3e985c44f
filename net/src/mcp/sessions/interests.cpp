#include "mcp/sessions/interests.h"

#include <coir/mcp/detail/account.h>
#include <coir/pressure.h>
#include <stdlib.h>
#include <string.h>

#include <new>
#include <utility>

#include "mcp/sessions/listeners.h"

namespace coir::mcp {

void Listeners::enter(Interests& interests) noexcept {
  Locked locked(lock_);
  interests_.push_back(interests);
}

void Listeners::forget(Watched* watched) noexcept {
  if (watched == nullptr) return;
  account::mcp.refund(sizeof(Watched) + watched->size);
  free(watched);
}

Watched* Listeners::let_go(Listener& one) noexcept {
  Watched* const sent = std::exchange(one.current, nullptr);
  if (sent == nullptr) return nullptr;
  sent->senders = static_cast<std::uint16_t>((sent->senders - 1) & 0x3fff);
  return sent->senders == 0 && sent->removed ? sent : nullptr;
}

void Listeners::leave(Interests& interests) noexcept {
  Watched* watched;
  bool retires = false;
  {
    Locked locked(lock_);
    interests_.remove(interests);
    watched = interests.watched;
    interests.watched = nullptr;
    interests.filter = interests.pending = 0;
    interests.left = true;
    if (interests.listener != nullptr) interests.listener->retired = retires = true;
    // A record whose change is being sent stays until it is sent.
    for (Watched** link = &watched; *link != nullptr;) {
      Watched& each = **link;
      if (each.senders == 0) {
        link = &each.next;
      } else {
        each.removed = 1;
        *link = each.next;
      }
    }
  }
  while (watched != nullptr) forget(std::exchange(watched, watched->next));
  if (retires) news();
}

std::expected<bool, Error> Listeners::watch(Interests& interests, std::string_view uri, std::size_t most) noexcept {
  if (uri.size() > kMostUri) return std::unexpected(ErrorCode::limit);
  const std::size_t bytes = sizeof(Watched) + uri.size();
  if (!Pressure::charge(account::mcp, bytes)) return std::unexpected(ErrorCode::no_memory);
  void* const memory = malloc(bytes);
  if (memory == nullptr) {
    account::mcp.refund(bytes);
    return std::unexpected(ErrorCode::no_memory);
  }
  auto* const made = new (memory) Watched;
  made->size = static_cast<std::uint16_t>(uri.size());
  memcpy(made + 1, uri.data(), uri.size());
  bool added = false;
  bool known = false;
  {
    Locked locked(lock_);
    // Its session has ended meanwhile: nobody would take it out again.
    known = interests.left;
    std::size_t count = 0;
    Watched** link = &interests.watched;
    for (; *link != nullptr; link = &(*link)->next, ++count) known = known || (*link)->uri() == uri;
    added = !known && count < most;
    if (added) *link = made;
  }
  if (added) return true;
  free(made);
  account::mcp.refund(bytes);
  if (known) return false;
  return std::unexpected(ErrorCode::limit);
}

void Listeners::unwatch(Interests& interests, std::string_view uri) noexcept {
  Watched* removed = nullptr;
  {
    Locked locked(lock_);
    for (Watched** link = &interests.watched; *link != nullptr; link = &(*link)->next) {
      if ((*link)->uri() != uri) continue;
      removed = *link;
      *link = removed->next;
      break;
    }
    if (removed != nullptr && removed->senders != 0) {
      removed->removed = 1;
      removed = nullptr;
    }
  }
  forget(removed);
}

void Listeners::resume(Interests& interests, std::uint32_t number) noexcept {
  Locked locked(lock_);
  for (unsigned list = 0; list < kLists; ++list) {
    if (interests.sent[list] > number) interests.pending = static_cast<ListBits>(interests.pending | 1u << list);
  }
  for (Watched* each = interests.watched; each != nullptr; each = each->next) {
    if (each->sent > number) each->pending = 1;
  }
}

void Listeners::list_changed(ListBits lists) noexcept {
  {
    Locked locked(lock_);
    for (Interests* each = interests_.front(); each != nullptr; each = each->next) {
      each->pending = static_cast<ListBits>(each->pending | (lists & each->filter));
    }
  }
  news();
}

void Listeners::updated(std::string_view uri) noexcept {
  bool wanted = false;
  {
    Locked locked(lock_);
    for (Interests* each = interests_.front(); each != nullptr; each = each->next) {
      if (Watched* const one = each->find(uri)) wanted = one->pending = 1;
    }
  }
  if (wanted) news();
}

bool Listeners::wants(std::string_view uri) noexcept {
  Locked locked(lock_);
  for (const Interests* each = interests_.front(); each != nullptr; each = each->next) {
    if (each->find(uri) != nullptr) return true;
  }
  return false;
}

}  // namespace coir::mcp
