#include "proxy/forward_keeper.h"

#include <coir/detail/accounts.h>
#include <coir/fiber.h>
#include <string.h>
#include <sys/random.h>

#include <algorithm>
#include <utility>

#include "base/charged.h"
#include "http/connection/coarse_clock.h"
#include "http/session/engine.h"
#include "proxy/forwarding.h"

namespace coir::http {

std::expected<ForwardKeeper*, Error> ForwardKeeper::create() noexcept {
  void* const memory = take_charged(account::http, sizeof(ForwardKeeper));
  if (memory == nullptr) return std::unexpected(Error{ErrorCode::no_memory});
  return ::new (memory) ForwardKeeper;
}

void ForwardKeeper::destroy(ForwardKeeper* keeper) noexcept {
  destroy_charged(account::http, keeper);
}

// Two proxies on one way must not take each other for themselves.
ForwardKeeper::ForwardKeeper() noexcept {
  std::uint64_t number = 0;
  if (getrandom(&number, sizeof number, GRND_NONBLOCK) != sizeof number) {
    number = static_cast<std::uint64_t>(monotonic_ns()) * 0x9e3779b97f4a7c15;
  }
  first_id_ = number * 0xbf58476d1ce4e5b9 ^ number >> 29;
  memcpy(pseudonym_, "coir-", 5);
  for (std::size_t at = 5; at < sizeof pseudonym_; ++at, number >>= 5) {
    pseudonym_[at] = "abcdefghijklmnopqrstuvwxyz234567"[number & 31];
  }
}

// Numbers follow each other, so that none comes twice. A bijection makes the digits of each, which do not show the order.
void ForwardKeeper::make_id(std::span<char, 16> digits) noexcept {
  std::uint64_t number = first_id_ + ids_.fetch_add(1, std::memory_order_relaxed);
  number = (number ^ number >> 30) * 0xbf58476d1ce4e5b9;
  number = (number ^ number >> 27) * 0x94d049bb133111eb;
  number ^= number >> 31;
  for (char& digit : digits) {
    digit = "0123456789abcdef"[number & 15];
    number >>= 4;
  }
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
    for (const Side side : {Side::client, Side::upstream}) {
      ForwardPair::Taking& taking = pair.taking(side);
      if (!std::exchange(taking.took, false)) continue;
      taking.since_ns = pair.client->since_ns;
      if (pair.awaits(side)) taking.slow = SlowPeer(pair.stream(side).fd());
    }
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
      last = !pair.sleeps();
    } else {
      wait.woken = true;
      pair.news = true;
      if (self.take_locked(*pair.client)) rested = pair.client;
    }
  }
  if (last) self.free_pair(pair);
  if (rested != nullptr) self.serve_soon(*rested);
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
  const Session& session = forwarding.session;
  const ParsedResponse& response = forwarding.response;
  const bool tunnel = response.status == 101;
  // The next request lies in the session's buffers. Behind a response that has an end it will be answered.
  if (!tunnel && !forwarding.rests_at_once && session.body_at_ != session.end_) return nullptr;
  auto* const made = construct_charged<ForwardPair>(account::streams);
  if (made == nullptr) return nullptr;
  pairs_.fetch_add(1, std::memory_order_relaxed);
  ForwardPair& pair = *made;
  pair.keeper = this;
  pair.tunnel = tunnel;
  pair.content = forwarding.relayed;
  pair.writes_chunks = session.content_kind_ == Session::Content::chunked;
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
  pair.requests = session.connection_->requests;
  pair.client_keeps = !tunnel && session.request_.keep_alive;
  pair.client_stays = session.keep_ && !session.ends_by_close() && session.body_at_ == session.end_;
  pair.streams = forwarding.rules.streams;
  if (pair.streams != nullptr) pair.streams->fetch_add(1, std::memory_order_relaxed);
  return &pair;
}

}  // namespace coir::http
