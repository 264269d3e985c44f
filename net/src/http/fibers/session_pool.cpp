#include "http/fibers/session_pool.h"

#include <coir/http/accounts.h>
#include <coir/ledger.h>
#include <coir/port/memory.h>

#include <algorithm>
#include <new>
#include <utility>

namespace coir::http {

bool SessionPool::available() const noexcept {
  if (unused_ != nullptr) return true;
  return may_grow() && account::http.fits(sizeof(Session)) && Ledger::total().fits(sizeof(Session));
}

Session* SessionPool::take() noexcept {
  Session* session = unused_;
  if (session != nullptr) {
    unused_ = session->next_free;
    surplus_ = std::min(surplus_, --unused_count_);
  } else if (may_grow() && account::http.charge(sizeof(Session))) {
    const std::size_t number = freed_count_ > 0 ? freed_[--freed_count_] : used_++;
    session = new (array_ + number) Session(engine_);
  }
  if (session != nullptr) ++taken_;
  return session;
}

void SessionPool::give(Session& session) noexcept {
  keep(session);
  --taken_;
}

void SessionPool::keep(Session& session) noexcept {
  session.next_free = unused_;
  unused_ = &session;
  ++unused_count_;
}

Session* SessionPool::take_unused() noexcept {
  Session* const session = unused_;
  if (session == nullptr) return nullptr;
  unused_ = session->next_free;
  surplus_ = std::min(surplus_, --unused_count_);
  return session;
}

bool SessionPool::free(Session& session) noexcept {
  return port::give_back(&session, sizeof(Session));
}

void SessionPool::note_freed(Session& session) noexcept {
  freed_[freed_count_++] = static_cast<std::uint32_t>(&session - array_);
  account::http.refund(sizeof(Session));
}

std::size_t SessionPool::surplus() noexcept {
  return std::exchange(surplus_, unused_count_);
}

SessionPool::~SessionPool() {
  account::http.refund((used_ - freed_count_) * sizeof(Session));
}

}  // namespace coir::http
