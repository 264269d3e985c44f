#include "proxy/forward_keeper.h"

#include <coir/detail/accounts.h>
#include <coir/fiber.h>
#include <string.h>

#include <algorithm>
#include <utility>

#include "base/charged.h"
#include "http/connection/coarse_clock.h"
#include "http/session/engine.h"
#include "proxy/forwarding.h"
#include "socket/kernel.h"

namespace coir::http {
namespace {

// shorter is the shorter of two times, of which 0 is none.
std::int64_t shorter(std::int64_t one, std::int64_t other) noexcept {
  return one == 0 || other == 0 ? one + other : std::min(one, other);
}

}  // namespace

std::expected<ForwardKeeper*, Error> ForwardKeeper::create() noexcept {
  void* const memory = take_charged(account::http, sizeof(ForwardKeeper));
  if (memory == nullptr) return std::unexpected(Error{ErrorCode::no_memory});
  return ::new (memory) ForwardKeeper;
}

void ForwardKeeper::destroy(ForwardKeeper* keeper) noexcept {
  destroy_charged(account::http, keeper);
}

// go_on does for a pair what there is to do, until it rests or ends.
void ForwardKeeper::go_on(ForwardPair& pair, KeptMemory memory) noexcept {
  for (int bursts = 0;; ++bursts) {
    gather(pair);
    const Next down = pass_down(pair, memory);
    const Next up = down == Next::rest || down == Next::again ? pass_up(pair, memory) : down;
    if (up == Next::end || up == Next::cut) return end(pair, up);
    if (down == Next::again || up == Next::again) {
      // Others get their turn.
      if (bursts % 2 != 0) yield();
      continue;
    }
    if (rest_pair(pair)) return;
    pair.client_news = true;
  }
}

// gather makes the waits that still sleep the owner's again, and tells the streams of those that have ended.
void ForwardKeeper::gather(ForwardPair& pair) noexcept {
  for (ForwardPair::Wait* const wait : {&pair.from_upstream, &pair.to_upstream, &pair.to_client}) {
    for (;;) {
      bool runs = false;
      {
        Locked locked(lock_);
        if (wait->armed && disarm_resting_wait(*wait)) wait->armed = false;
        runs = wait->armed;
      }
      if (!runs) break;
      // Its wake is about to run.
      yield();
    }
  }
  const auto took = [](bool& mark) { return std::exchange(mark, false); };
  bool marks[3];
  {
    Locked locked(lock_);
    pair.news = false;
    marks[0] = took(pair.from_upstream.woken);
    marks[1] = took(pair.to_upstream.woken);
    marks[2] = took(pair.to_client.woken);
  }
  if (marks[0]) pair.lease.stream().mark_readable();
  if (marks[1]) pair.lease.stream().mark_writable();
  if (marks[2]) pair.client->stream.mark_writable();
}

// arm puts a wait to sleep. False: what it waits for is there, or it cannot sleep, which reading and writing will tell.
bool ForwardKeeper::arm(ForwardPair& pair, ForwardPair::Wait& wait, Stream& stream, Direction direction) noexcept {
  wait.wake = woken;
  wait.pair = &pair;
  {
    Locked locked(lock_);
    wait.armed = true;
  }
  const auto armed = arm_resting_wait(wait, stream.fd(), direction);
  if (armed) return true;
  Locked locked(lock_);
  wait.armed = false;
  wait.woken = true;
  return false;
}

// rest_pair lets a pair of which nothing moves rest. False: something has come meanwhile.
bool ForwardKeeper::rest_pair(ForwardPair& pair) noexcept {
  Stream& upstream = pair.lease.stream();
  upstream.rest();
  // Behind its end an upstream may be reset still.
  const bool listens = pair.upstream_ended ? resting_wait_hears_edges() : !pair.awaits_client();
  if (listens && !arm(pair, pair.from_upstream, upstream, Direction::readable)) return false;
  if (pair.unsent_to_upstream && !arm(pair, pair.to_upstream, upstream, Direction::writable)) return false;
  if (pair.awaits_client() && !arm(pair, pair.to_client, pair.client->stream, Direction::writable)) return false;
  if (std::exchange(pair.moved, false)) {
    pair.client->since_ns = coarse_ns();
    pair.unacknowledged = -1;
  }
  if (pair.awaits_client() || pair.unsent_to_upstream) any_limit_.store(true, std::memory_order_relaxed);
  return rest(*pair.client, Direction::readable, [&pair] { return pair.news; });
}

// woken runs on a worker's own stack. The owner of the pair learns of it by `news`; a resting pair is served.
void ForwardKeeper::woken(RestingWait& resting) noexcept {
  auto& wait = static_cast<ForwardPair::Wait&>(resting);
  ForwardPair& pair = *wait.pair;
  ForwardKeeper& self = *pair.keeper;
  Connection* rested = nullptr;
  bool last = false;
  {
    Locked locked(self.lock_);
    wait.armed = false;
    if (pair.dying) {
      last = !pair.from_upstream.armed && !pair.to_upstream.armed && !pair.to_client.armed;
    } else {
      wait.woken = true;
      pair.news = true;
      if (self.take_locked(*pair.client)) rested = pair.client;
    }
  }
  if (last) self.free_pair(pair);
  if (rested != nullptr) self.serve_soon(*rested);
}

// end closes a pair that belongs to the caller. A response that is not whole is ended so that the client sees it.
void ForwardKeeper::end(ForwardPair& pair, Next how) noexcept {
  Connection& connection = *pair.client;
  const bool stays = how == Next::end && pair.content.whole && pair.client_stays;
  const std::uint32_t requests = pair.requests;
  if (how == Next::cut) {
    counters.cut.fetch_add(1, std::memory_order_relaxed);
    pair.lease.failed(UpstreamFault::broken_off);
    if (hides_cut(pair)) abandon(connection);
  } else if (pair.content.whole) {
    pair.lease.give_back(pair.reusable);
  } else {
    counters.cancelled.fetch_add(1, std::memory_order_relaxed);
  }
  release(pair);
  stays ? give_back(connection, requests) : close(connection);
}

// hides_cut tells whether only a reset has the client see that the response is not whole. In chunks, or by the length, the
// end of the connection tells.
bool ForwardKeeper::hides_cut(const ForwardPair& pair) noexcept {
  return !pair.tunnel && pair.content.end != ContentEnd::length && !pair.writes_chunks;
}

void ForwardKeeper::farewell(Connection& connection) noexcept {
  release(pair_of(connection));
}

void ForwardKeeper::dropped(std::uint64_t mark) noexcept {
  release(*reinterpret_cast<ForwardPair*>(mark));
}

// release gives back all that was kept of a pair but its connection. A wake that is about to run frees the record.
void ForwardKeeper::release(ForwardPair& pair) noexcept {
  bool free = true;
  {
    Locked locked(lock_);
    for (ForwardPair::Wait* const wait : {&pair.from_upstream, &pair.to_upstream, &pair.to_client}) {
      if (wait->armed && (is_forgotten() || disarm_resting_wait(*wait))) wait->armed = false;
      if (wait->armed) free = false;
    }
    pair.dying = true;
  }
  pair.unsent_to_client.give();
  pair.unsent_to_upstream.give();
  pair.trailers.give();
  pair.lease.give_back(false);
  // Behind the last use of the lease's group. release pairs with the acquire of whoever waits for the last.
  if (pair.streams != nullptr) pair.streams->fetch_sub(1, std::memory_order_release);
  if (free) free_pair(pair);
}

void ForwardKeeper::free_pair(ForwardPair& pair) noexcept {
  destroy_charged(account::streams, &pair);
  // release pairs with the acquire in stopped: nothing of the keeper's is touched from here on.
  pairs_.fetch_sub(1, std::memory_order_release);
}

// is_stuck tells of a client that has taken nothing for `write_ms`. That its socket has room again says so only now and
// then (Session::send_patiently), so what it has acknowledged within half of the time counts, too.
bool ForwardKeeper::is_stuck(ForwardPair& pair, std::int64_t now_ns, std::int64_t write_ms) noexcept {
  const std::int64_t since_ns = pair.unacknowledged >= 0 ? pair.looked_ns : pair.client->since_ns;
  if (since_ns + write_ms * 500'000 > now_ns) return false;
  const int held = kernel::unsent(pair.client->stream.fd());
  if (held < 0) return since_ns + write_ms * 1'000'000 <= now_ns;
  if (pair.unacknowledged >= 0 && held >= pair.unacknowledged) return true;
  pair.unacknowledged = held;
  pair.looked_ns = now_ns;
  return false;
}

// look_around cuts a pair on which nothing has moved for longer than its rules allow, or than a side may take to take what
// it is sent.
bool ForwardKeeper::look_around(std::int64_t now_ns) noexcept {
  if (!any_limit_.load(std::memory_order_relaxed)) return false;
  const auto is_silent = [now_ns, write_ms = engine()->options.write_timeout.count()](const Connection& each, bool&) {
    ForwardPair& pair = pair_of(each);
    if (pair.awaits_client() && is_stuck(pair, now_ns, write_ms)) return true;
    // An upstream owes no content while the client takes none.
    std::int64_t most_ms = pair.is_content && pair.awaits_client() ? 0 : pair.rest_idle_ms;
    if (pair.unsent_to_upstream) most_ms = shorter(most_ms, write_ms);
    return most_ms != 0 && each.since_ns + most_ms * 1'000'000 <= now_ns;
  };
  Connection* const connection = take(Direction::readable, is_silent);
  if (connection == nullptr) return false;
  ForwardPair& pair = pair_of(*connection);
  const bool is_slow = pair.awaits_client();
  auto& counter = is_slow ? counters.cancelled : pair.is_content ? counters.cut : counters.silent;
  counter.fetch_add(1, std::memory_order_relaxed);
  // Before the descriptor goes, on which the pair's waits sleep.
  const bool resets = is_slow || hides_cut(pair);
  release(pair);
  if (resets) abandon(*connection);
  close(*connection);
  return true;
}

bool ForwardKeeper::stopped() noexcept {
  return pairs_.load(std::memory_order_acquire) == 0;
}

// keep_trailers has the pair take those that have come, and those that come.
bool ForwardKeeper::keep_trailers(ForwardPair& pair, const Forwarding& forwarding) noexcept {
  auto taken = Buffer::take(sizeof(ForwardPair::Trailers));
  if (!taken) return false;
  auto* const kept = ::new (taken->data()) ForwardPair::Trailers;
  kept->drops = forwarding.rules.response_drops;
  const std::size_t have = pair.content.decoder.trailer_bytes();
  if (have > sizeof kept->text) return false;
  memcpy(kept->text, forwarding.trailers().data(), have);
  pair.trailers = std::move(*taken);
  return true;
}

ForwardPair* ForwardKeeper::keep(Forwarding& forwarding, std::span<const iovec> unsent) noexcept {
  auto* const made = construct_charged<ForwardPair>(account::streams);
  if (made == nullptr) return nullptr;
  pairs_.fetch_add(1, std::memory_order_relaxed);
  ForwardPair& pair = *made;
  pair.keeper = this;
  const ParsedResponse& response = forwarding.response;
  pair.tunnel = response.status == 101;
  pair.content = forwarding.relayed;
  pair.writes_chunks = forwarding.session.content_kind_ == Session::Content::chunked;
  pair.reusable = response.keep_alive && pair.content.end != ContentEnd::close && !pair.tunnel && !pair.content.strays;
  const bool trails = pair.writes_chunks && forwarding.takes_trailers && pair.content.end == ContentEnd::chunked;
  if (!store(pair.unsent_to_client, unsent) || (trails && !keep_trailers(pair, forwarding)) ||
      !keep_content(forwarding.exchange, reinterpret_cast<std::uint64_t>(&pair))) {
    free_pair(pair);
    return nullptr;
  }
  pair.is_content = !pair.tunnel && !forwarding.rests_at_once;
  pair.peeks = pair.is_content && !forwarding.keeps_unsent();
  pair.lease = std::move(forwarding.lease);
  const std::int64_t idle_ms = pair.is_content ? forwarding.rules.idle.count() : 0;
  pair.rest_idle_ms = static_cast<std::uint32_t>(shorter(forwarding.rules.rest_idle.count(), idle_ms));
  if (pair.rest_idle_ms != 0) any_limit_.store(true, std::memory_order_relaxed);
  const Session& session = forwarding.session;
  pair.requests = session.connection_->requests;
  pair.client_stays = session.keep_ && !session.ends_by_close() && session.body_at_ == session.end_;
  pair.streams = forwarding.rules.streams;
  if (pair.streams != nullptr) pair.streams->fetch_add(1, std::memory_order_relaxed);
  return &pair;
}

}  // namespace coir::http
