#include "proxy/answer_keeper.h"

#include <coir/detail/accounts.h>
#include <coir/fiber.h>
#include <errno.h>
#include <string.h>

#include "base/charged.h"
#include "http/connection/coarse_clock.h"
#include "http/connection/shed.h"
#include "proxy/forward_keeper.h"
#include "proxy/forwarding.h"
#include "socket/kernel.h"

namespace coir::http {

bool AnswerKeeper::keep(Forwarding& forwarding, Deadline late, bool uploads) noexcept {
  Session& session = forwarding.session;
  const std::string_view head = session.head_in_buffers_ ? std::string_view(session.buffers->in + session.begin_,
                                                                            session.head_end_ - session.begin_)
                                                         : session.kept_head_.text();
  const std::size_t behind = uploads ? 0 : session.end_ - session.body_at_ - session.body_left_;
  const std::size_t heard = forwarding.have;
  if (behind > kMostSent || heard > kMostSent || head.size() + behind > Session::kInputBytes) return false;
  void* const memory = take_charged(account::streams, WaitingExchange::bytes(head.size() + behind + heard, uploads));
  if (memory == nullptr) return false;
  records_.fetch_add(1, std::memory_order_relaxed);
  WaitingExchange& waiting = *::new (memory) WaitingExchange;
  KeptContent* content = nullptr;
  if (uploads) {
    content = ::new (&waiting + 1) KeptContent{.left = session.body_left_,
                                               .chunks = session.chunks_,
                                               .waits_since_ns = monotonic_ns() - session.body_waited_ns_};
  }
  char* const text = reinterpret_cast<char*>(&waiting + 1) + (uploads ? sizeof(KeptContent) : 0);
  memcpy(text, head.data(), head.size());
  if (behind != 0) memcpy(text + head.size(), session.buffers->in + session.end_ - behind, behind);
  if (heard != 0) memcpy(text + head.size() + behind, forwarding.room.data(), heard);
  waiting.keeper = this;
  waiting.kept = {.head = {text, head.size()},
                  .began_ns = session.began_ns_,
                  .requests = session.connection_->requests,
                  .behind = static_cast<std::uint16_t>(behind),
                  .keep = session.keep_,
                  .content = content};
  waiting.heard_bytes = static_cast<std::uint16_t>(heard);
  waiting.late_ns = late.ns();
  if (!suspend(forwarding.exchange, reinterpret_cast<std::uint64_t>(&waiting))) {
    free_record(waiting);
    return false;
  }
  waiting.group = &forwarding.group;
  waiting.asked_ns = forwarding.now_ns;
  waiting.counted = std::exchange(forwarding.counted, nullptr);
  waiting.tried_again = forwarding.tried_again;
  // Content in the session's buffers was sent, and goes with them.
  waiting.unrepeatable = forwarding.unrepeatable || !session.body_done_;
  waiting.interims = forwarding.interims();
  waiting.has_made_id = session.log_id_.data() == session.made_id_;
  memcpy(waiting.made_id, session.made_id_, sizeof waiting.made_id);
  waiting.rules = &forwarding.rules;
  waiting.own = forwarding.own;
  waiting.lease = std::move(forwarding.lease);
  if (waiting.rules->streams != nullptr) waiting.rules->streams->fetch_add(1, std::memory_order_relaxed);
  return true;
}

void AnswerKeeper::begin(Connection& connection, std::string_view, KeptMemory) noexcept {
  WaitingExchange& waiting = waiting_of(connection);
  waiting.client = &connection;
  arm(waiting);
  connection.since_ns = coarse_ns();
  // An event of the client's socket may have been consumed meanwhile, and no wait would report it again. Its next requests are
  // left where they are, unless the kernel would tell of them over and over.
  const int fd = connection.stream.fd();
  const bool is_quiet = waiting.kept.content == nullptr && resting_wait_hears_edges()
                            ? !kernel::has_hung_up(fd)
                            : kernel::peek(fd) == -EAGAIN && !connection.stream.midway();
  const auto has_work = [&] { return !is_quiet || waiting.news || server_stops(); };
  if (!rest(connection, Direction::readable, has_work)) serve_soon(connection);
}

void AnswerKeeper::arm(WaitingExchange& waiting) noexcept {
  Stream& upstream = waiting.lease.stream();
  upstream.rest();
  waiting.wake = woken;
  {
    Locked locked(lock_);
    waiting.armed = true;
  }
  if (arm_resting_wait(waiting, upstream.fd())) return;
  // It has said something, or cannot be waited for, which reading will tell.
  Locked locked(lock_);
  waiting.armed = false;
  waiting.news = true;
}

// woken runs on a worker's own stack.
void AnswerKeeper::woken(RestingWait& resting) noexcept {
  auto& waiting = static_cast<WaitingExchange&>(resting);
  AnswerKeeper& self = *waiting.keeper;
  Connection* rested = nullptr;
  bool last = false;
  {
    Locked locked(self.lock_);
    waiting.armed = false;
    last = waiting.dying;
    waiting.news = true;
    if (!last && waiting.client != nullptr && self.take_locked(*waiting.client)) rested = waiting.client;
  }
  if (last) self.free_record(waiting);
  if (rested != nullptr) self.serve_soon(*rested);
}

// suspended makes the wait for the upstream the caller's, too.
const Suspended* AnswerKeeper::suspended(Connection& connection) noexcept {
  WaitingExchange& waiting = waiting_of(connection);
  for (;;) {
    {
      Locked locked(lock_);
      if (waiting.armed && disarm_resting_wait(waiting)) waiting.armed = false;
      if (!waiting.armed) break;
    }
    // Its wake is about to run.
    yield();
  }
  return &waiting.kept;
}

void AnswerKeeper::answer_kept(Exchange& exchange, std::uint64_t mark) noexcept {
  WaitingExchange& waiting = *reinterpret_cast<WaitingExchange*>(mark);
  Forwarding(exchange, forwards_, *waiting.group, *waiting.rules, waiting.own).resume(waiting);
  release(waiting);
}

void AnswerKeeper::farewell(Connection& connection) noexcept {
  forwards_.counters.unavailable.fetch_add(1, std::memory_order_relaxed);
  if (!server_stops()) forwards_.counters.note(ForwardFailure::no_room);
  shed(connection.stream, false);
  release(waiting_of(connection));
}

void AnswerKeeper::dropped(std::uint64_t mark) noexcept {
  release(*reinterpret_cast<WaitingExchange*>(mark));
}

// release gives back all that was kept of an exchange but its connection. As in ForwardKeeper::release, `dying` is published
// last: from then on the record is of a wake that could not be disarmed.
void AnswerKeeper::release(WaitingExchange& waiting) noexcept {
  {
    Locked locked(lock_);
    if (waiting.armed && (is_forgotten() || disarm_resting_wait(waiting))) waiting.armed = false;
  }
  waiting.lease.leave();
  if (waiting.counted != nullptr) waiting.counted->fetch_sub(1, std::memory_order_relaxed);
  // Behind the last use of the lease's group. release pairs with the acquire of whoever waits for the last.
  if (waiting.rules->streams != nullptr) waiting.rules->streams->fetch_sub(1, std::memory_order_release);
  bool free = false;
  {
    Locked locked(lock_);
    waiting.dying = true;
    free = !waiting.armed;
  }
  if (free) free_record(waiting);
}

void AnswerKeeper::free_record(WaitingExchange& waiting) noexcept {
  const std::size_t bytes = waiting.bytes();
  waiting.~WaitingExchange();
  give_charged(account::streams, &waiting, bytes);
  // release pairs with the acquire in stopped: nothing of the keeper's is touched from here on.
  records_.fetch_sub(1, std::memory_order_release);
}

// A request that is under way when the server stops is answered.
void AnswerKeeper::stopping() noexcept {
  while (Connection* const connection = take(Direction::readable, [](const Connection&, bool&) { return true; })) {
    serve_soon(*connection);
  }
}

bool AnswerKeeper::stopped() noexcept {
  return records_.load(std::memory_order_acquire) == 0;
}

// look_around has those go on whose time is over.
bool AnswerKeeper::look_around(std::int64_t now_ns) noexcept {
  const auto is_late = [now_ns](const Connection& each, bool&) { return waiting_of(each).late_ns <= now_ns; };
  Connection* const connection = take(Direction::readable, is_late);
  if (connection == nullptr) return false;
  serve_soon(*connection);
  return true;
}

}  // namespace coir::http
