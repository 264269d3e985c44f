// How pairs end. Declared in proxy/forward_keeper.h.
#include <coir/detail/accounts.h>

#include "base/charged.h"
#include "http/connection/stream_log.h"
#include "http/session/engine.h"
#include "proxy/forward_keeper.h"
#include "socket/kernel.h"

namespace coir::http {

// end closes a pair that belongs to the caller. A response that is not whole is ended so that the client sees it. A client
// that has sent more, or may, is given time for what it has been sent: to close over unread bytes resets the connection.
void ForwardKeeper::end(ForwardPair& pair, Next how) noexcept {
  Connection& connection = *pair.client;
  const bool stays = how == Next::end && pair.content.whole && pair.client_stays;
  const bool resets = (how == Next::cut || !pair.content.whole) && hides_cut(pair);
  const bool has_left = how == Next::end && !pair.content.whole && !pair.tunnel;
  const bool sends_more = pair.client_keeps;
  const std::uint32_t requests = pair.requests;
  disarm(pair);
  if (how == Next::cut) {
    cut(pair, ForwardFailure::cut_off);
  } else {
    pair.lease.give_back(pair.content.whole && pair.reusable);
    if (!pair.content.whole) counters.cancelled.fetch_add(1, std::memory_order_relaxed);
  }
  // A client that has ended its side alone still reads.
  if (resets) abandon(connection);
  release(pair);
  if (stays) return give_back(connection, requests);
  if (resets || has_left || !(sends_more || kernel::has_input(connection.stream.fd()))) return close(connection);
  linger(connection);
}

// cut notes that the upstream has not ended a response: Forwarding::cut, without a session. The waits are disarmed.
void ForwardKeeper::cut(ForwardPair& pair, ForwardFailure failure) noexcept {
  pair.lease.failed(UpstreamFault::broken_off);
  counters.cut.fetch_add(1, std::memory_order_relaxed);
  counters.note(failure);
  if (pair.client->logs) pair.client->log->why = word_of(failure);
}

// hides_cut tells whether only a reset has the client see that the response is not whole. In chunks, or by the length, the
// end of the connection tells.
bool ForwardKeeper::hides_cut(const ForwardPair& pair) noexcept {
  return !pair.tunnel && pair.content.end != ContentEnd::length && !pair.writes_chunks;
}

// The response is not whole: one that is ends by itself.
void ForwardKeeper::farewell(Connection& connection) noexcept {
  ForwardPair& pair = pair_of(connection);
  const bool resets = hides_cut(pair);
  // Before the descriptor goes, on which the pair's waits sleep.
  release(pair);
  if (resets) abandon(connection);
}

void ForwardKeeper::dropped(std::uint64_t mark) noexcept {
  release(*reinterpret_cast<ForwardPair*>(mark));
}

// disarm comes before the descriptors go, on which the waits sleep.
void ForwardKeeper::disarm(ForwardPair& pair) noexcept {
  Locked locked(lock_);
  for (ForwardPair::Wait* const wait : {&pair.from_upstream, &pair.to_upstream, &pair.to_client}) {
    if (wait->armed && (is_forgotten() || disarm_resting_wait(*wait))) wait->armed = false;
  }
}

// release gives back all that was kept of a pair but its connection, and frees the record. A wake that another worker has
// claimed cannot be disarmed and still runs: it then frees the record, if it finds `dying`. So `dying` is published last:
//
//   before `dying`   the record is the caller's, whose connection does not rest: a wake writes `armed`, `woken` and `news`,
//                    and take_locked fails
//   behind `dying`   the caller touches nothing of a record with an armed wait: the last wake frees it, and does not touch
//                    the connection, which may be another client's by then
//
// Each side decides under the lock, which also orders what was given back before the free.
void ForwardKeeper::release(ForwardPair& pair) noexcept {
  disarm(pair);
  pair.unsent_to_client.give();
  pair.unsent_to_upstream.give();
  pair.trailers.give();
  pair.lease.leave();
  // Behind the last use of the lease's group. release pairs with the acquire of whoever waits for the last.
  if (pair.streams != nullptr) pair.streams->fetch_sub(1, std::memory_order_release);
  bool free = false;
  {
    Locked locked(lock_);
    pair.dying = true;
    free = !pair.sleeps();
  }
  if (free) free_pair(pair);
}

void ForwardKeeper::free_pair(ForwardPair& pair) noexcept {
  destroy_charged(account::streams, &pair);
  // release pairs with the acquire in stopped: nothing of the keeper's is touched from here on.
  pairs_.fetch_sub(1, std::memory_order_release);
}

// may_be_stuck tells by the clock alone whether a side may have taken nothing for half of write_timeout.
bool ForwardKeeper::may_be_stuck(ForwardPair& pair, Side side, std::int64_t now_ns) noexcept {
  const auto half = SlowPeer::half(engine()->options.write_timeout);
  return pair.awaits(side) && pair.taking(side).since_ns + half.count() <= now_ns;
}

// is_stuck tells whether a side has taken nothing for the whole time. It asks the kernel: the pair belongs to the caller.
bool ForwardKeeper::is_stuck(ForwardPair& pair, Side side, std::int64_t now_ns) noexcept {
  if (!may_be_stuck(pair, side, now_ns)) return false;
  pair.taking(side).since_ns = now_ns;
  return pair.taking(side).slow.is_stuck(pair.stream(side).fd());
}

// look_around cuts a pair on which nothing has moved for longer than its rules allow, or than a side may take to take what
// it is sent.
bool ForwardKeeper::look_around(std::int64_t now_ns) noexcept {
  if (!any_limit_.load(std::memory_order_relaxed)) return false;
  const auto is_silent = [now_ns](const Connection& each) {
    const ForwardPair& pair = pair_of(each);
    // An upstream owes no content while the client takes none.
    const std::int64_t most_ms = pair.is_content && pair.awaits_client() ? 0 : pair.rest_idle_ms;
    return most_ms != 0 && each.since_ns + most_ms * 1'000'000 <= now_ns;
  };
  // With the lock held: the kernel is asked of the pair that was taken.
  const auto is_due = [&](const Connection& each, bool&) {
    return is_silent(each) || may_be_stuck(pair_of(each), Side::client, now_ns) ||
           may_be_stuck(pair_of(each), Side::upstream, now_ns);
  };
  Connection* const connection = take(Direction::readable, is_due);
  if (connection == nullptr) return false;
  ForwardPair& pair = pair_of(*connection);
  const bool has_stuck_client = is_stuck(pair, Side::client, now_ns);
  const bool has_stuck_upstream = is_stuck(pair, Side::upstream, now_ns);
  if (!is_silent(*connection) && !has_stuck_client && !has_stuck_upstream) {
    if (!rest(*connection, Direction::readable, [&pair] { return pair.news; })) serve_soon(*connection);
    return true;
  }
  const bool is_slow = has_stuck_client || (pair.awaits_client() && !has_stuck_upstream);
  disarm(pair);
  if (!is_slow && pair.is_content) {
    cut(pair, ForwardFailure::timeout);
  } else {
    (is_slow ? counters.cancelled : counters.silent).fetch_add(1, std::memory_order_relaxed);
  }
  farewell(*connection);
  if (is_slow) abandon(*connection);
  close(*connection);
  return true;
}

bool ForwardKeeper::stopped() noexcept {
  return pairs_.load(std::memory_order_acquire) == 0;
}

}  // namespace coir::http
