#include "mcp/sessions/sessions.h"

#include <coir/net/randomness.h>
#include <coir/pressure.h>
#include <stdlib.h>
#include <string.h>

#include <bit>
#include <memory>
#include <new>

#include "base/charged.h"

namespace coir::mcp {

namespace {
constexpr const char* kSessionEnded = "the session has ended";
}  // namespace

bool Sessions::open() noexcept {
  bucket_count_ = std::bit_ceil(most_ < 64 ? std::size_t{16} : most_ / 4);
  const std::size_t bytes = bucket_count_ * sizeof(Session*);
  if (!account::mcp.charge(bytes)) return false;
  buckets_ = static_cast<Session**>(calloc(bucket_count_, sizeof(Session*)));
  if (buckets_ == nullptr) account::mcp.refund(bytes);
  return buckets_ != nullptr;
}

Sessions::~Sessions() {
  while (Session* const session = order_.front()) end(session);
  if (buckets_ == nullptr) return;
  free(buckets_);
  account::mcp.refund(bucket_count_ * sizeof(Session*));
}

Session** Sessions::bucket(std::string_view id) noexcept {
  // The first bytes are random already.
  std::size_t hash = 0;
  for (std::size_t i = 0; i < 8 && i < id.size(); ++i) hash = hash * 31 + static_cast<unsigned char>(id[i]);
  return &buckets_[hash & (bucket_count_ - 1)];
}

// make_room ends sessions that have expired, and the oldest until there is room for one more. `made` is entered with the lock
// still held: several threads together enter no more than `most`. Null: none is entered yet.
void Sessions::make_room(std::int64_t now, Session* made) noexcept {
  for (;;) {
    Session* oldest = nullptr;
    {
      Locked locked(lock_);
      oldest = order_.front();
      if (oldest == nullptr || (size_ < most_ && oldest->used_ns + lifetime_ns_ > now)) {
        if (made != nullptr) enter(*made);
        return;
      }
      ++oldest->references;
    }
    end(oldest);
    release(oldest);
  }
}

void Sessions::enter(Session& session) noexcept {
  Session** const place = bucket(session.id_text());
  session.chain = *place;
  *place = &session;
  order_.push_back(session);
  ++size_;
}

std::expected<Session*, Error> Sessions::create(const Principal& who) noexcept {
  // An id that is guessed gives the session away.
  char random[Session::kIdBytes / 2];
  if (auto drawn = draw_secret(random, Deadline::after(std::chrono::seconds(10))); !drawn)
    return std::unexpected(drawn.error());
  const std::int64_t now = monotonic_ns();
  make_room(now, nullptr);  // its memory may be needed
  auto* const session = construct_charged<Session>(account::mcp);
  if (session == nullptr) return std::unexpected(Error{ErrorCode::no_memory});
  for (std::size_t i = 0; i < sizeof random; ++i) {
    constexpr char kDigits[] = "0123456789abcdef";
    session->id[2 * i] = kDigits[static_cast<unsigned char>(random[i]) >> 4];
    session->id[2 * i + 1] = kDigits[static_cast<unsigned char>(random[i]) & 15];
  }
  session->who = who;
  session->used_ns = now;
  session->references = 2;  // the table's, and the caller's
  listeners_.enter(session->interests);
  make_room(now, session);
  return session;
}

Session* Sessions::find(std::string_view id, const Principal& who) noexcept {
  if (id.size() != Session::kIdBytes) return nullptr;
  const std::int64_t now = monotonic_ns();
  Locked locked(lock_);
  Session* session = *bucket(id);
  while (session != nullptr && session->id_text() != id) session = session->chain;
  // Another's session is as unknown as one that never was.
  if (session == nullptr || session->who.name() != who.name()) return nullptr;
  session->used_ns = now;
  order_.remove(*session);
  order_.push_back(*session);
  ++session->references;
  return session;
}

void Sessions::unlink(Session& session) noexcept {
  Session** link = bucket(session.id_text());
  while (*link != &session) link = &(*link)->chain;
  *link = session.chain;
  order_.remove(session);
  --size_;
}

void Sessions::end(Session* session) noexcept {
  {
    Locked locked(lock_);
    if (session->ended.exchange(true, std::memory_order_acq_rel)) return;
    unlink(*session);
  }
  cancel_calls(*session, nullptr, kSessionEnded);
  wake_followers(*session);
  listeners_.leave(session->interests);
  release(session);
}

void Sessions::release(Session* session) noexcept {
  {
    Locked locked(lock_);
    if (--session->references > 0) return;
  }
  destroy(session);
}

void Sessions::destroy(Session* session) noexcept {
  while (RecordedStream* const stream = session->streams.first()) {
    session->streams.remove(*stream);
    forget(stream);
  }
  destroy_charged(account::mcp, session);
}

void Sessions::begin_call(Session& session, ActiveCall& call) noexcept {
  bool ended;
  {
    Locked locked(lock_);
    session.calls.add(call);
    ended = session.ended.load(std::memory_order_relaxed);
  }
  if (ended) call.scope->cancel(kSessionEnded);
}

void Sessions::end_call(Session& session, ActiveCall& call) noexcept {
  bool taken;
  {
    Locked locked(lock_);
    session.calls.remove(call);
    taken = call.taken;
  }
  if (!taken) return;
  const Shield shield(Deadline::never());
  static_cast<void>(call.cancelled.wait());
}

void Sessions::cancel_call(Session& session, const MessageId& id) noexcept {
  cancel_calls(session, &id, "the client has cancelled it");
}

void Sessions::cancel_calls(Session& session, const MessageId* id, const char* reason) noexcept {
  for (;;) {
    ActiveCall* call;
    {
      Locked locked(lock_);
      call = session.calls.first();
      while (call != nullptr && (call->taken || (id != nullptr && call->id != *id))) call = call->next;
      if (call == nullptr) return;
      call->taken = true;
    }
    call->scope->cancel(reason);
    call->cancelled.set();
  }
}

void Sessions::ask(Session& session, OpenQuestion& question) noexcept {
  Locked locked(lock_);
  question.number = ++session.questions_so_far;
  session.questions.add(question);
}

void Sessions::give_up(Session& session, OpenQuestion& question) noexcept {
  bool taken;
  {
    Locked locked(lock_);
    taken = question.taken;
    if (!taken) session.questions.remove(question);
  }
  if (!taken) return;
  const Shield shield(Deadline::never());
  static_cast<void>(question.answered.wait());
}

void Sessions::answer(Session& session, const Message& message) noexcept {
  OpenQuestion* found = nullptr;
  {
    Locked locked(lock_);
    for (OpenQuestion* each = session.questions.first(); each != nullptr && !message.id.is_text; each = each->next) {
      if (each->number == message.id.number) found = each;
    }
    if (found == nullptr) return;
    session.questions.remove(*found);
    found->taken = true;
  }
  found->failed = message.kind == MessageKind::error;
  if (!found->failed) {
    JsonWriter out(*found->answer);
    copy_json(out, *message.params);
    if (!out.finish()) found->failed = true;
  }
  found->answered.set();
}

}  // namespace coir::mcp
