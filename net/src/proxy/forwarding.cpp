#include "proxy/forwarding.h"

#include <coir/format.h>
#include <string.h>

#include "http/message/characters.h"
#include "http/session/engine.h"
#include "proxy/forward_keeper.h"

namespace coir::http {
namespace {

// What a client that has left is said to have been answered, in the log: it hears nothing.
constexpr int kClientGone = 499;

bool is_idempotent(Method method) noexcept {
  return method != Method::post && method != Method::patch;
}

}  // namespace

Forwarding::Forwarding(Exchange& given, ForwardKeeper& kept_by, UpstreamGroup& of, const ForwardRules& by,
                       std::string_view instead) noexcept
    : exchange(given),
      session(given.session_),
      keeper(kept_by),
      group(of),
      rules(by),
      request(given.request()),
      target(instead),
      room(given.scratch()) {}

void Forwarding::run() noexcept {
  if (const int status = refusal(); status != 0) return answer(status);
  // A request that is under way when the server begins to stop is answered.
  session.watch_->outlive_stop();
  now_ns = session.began_ns_;
  for (bool again = false;; again = true) {
    auto taken = group.take({.key = rules.hash_key, .must_be_new = again}, within(rules.connect));
    if (!taken) return fail(taken.error());
    lease = std::move(*taken);
    if (!lease.reused()) now_ns = monotonic_ns();
    const auto tried = try_once();
    if (tried) return pass_response();
    if (again || !may_retry(tried.error())) return fail(tried.error());
    lease.failed(UpstreamFault::stale);
    now_ns = monotonic_ns();
    keeper.counters.retried.fetch_add(1, std::memory_order_relaxed);
  }
}

Forwarding::Outcome Forwarding::try_once() noexcept {
  have = seen = begin = 0;
  interim = 0;
  sent_any = sent_whole = heard_any = got_head = got_leave = ended = strays = hung_up = false;
  decoder = ChunkedDecoder();
  if (auto sent = send(); !sent) {
    // An upstream that refuses content may have hung up behind its answer, which still counts.
    const bool cut_writing = sent.error() == ErrorCode::closed && !session.broken_ && session.fault_ == 0 && !hung_up;
    if (!cut_writing || !sent_any) return sent;
    sent_whole = false;
    return read_head(within(rules.first_byte)) ? Outcome() : sent;
  }
  if (got_head) return {};
  return read_head(within(rules.first_byte));
}

// may_retry: the upstream had closed a resting connection before it saw the request.
bool Forwarding::may_retry(Error error) const noexcept {
  if (!lease.reused() || heard_any || unrepeatable || session.broken_) return false;
  const bool left_us = error == ErrorCode::end_of_stream || error == ErrorCode::closed || error == ErrorCode::truncated;
  return left_us && (is_idempotent(request.method) || !sent_any);
}

// fail answers a request for which no upstream has answered.
void Forwarding::fail(Error error) noexcept {
  ForwardCounters& counters = keeper.counters;
  if (error == ErrorCode::cancelled || session.broken_ || session.fault_ != 0) {
    // The client has left, or what it sends is wrong: the upstream is told by the end of its connection.
    lease.give_back(false);
    counters.cancelled.fetch_add(1, std::memory_order_relaxed);
    if (session.broken_ || session.fault_ != 0) return;
    exchange.close_after();
    return answer(kClientGone);
  }
  if (!lease && error == ErrorCode::limit) {
    counters.unavailable.fetch_add(1, std::memory_order_relaxed);
    return answer(503);
  }
  if (error == ErrorCode::timed_out) {
    lease.failed(UpstreamFault::timed_out);
    counters.timed_out.fetch_add(1, std::memory_order_relaxed);
    return answer(504);
  }
  if (error == ErrorCode::no_memory) {
    lease.give_back(false);
    counters.unavailable.fetch_add(1, std::memory_order_relaxed);
    return answer(503);
  }
  lease.failed(error == ErrorCode::protocol || error == ErrorCode::limit ? UpstreamFault::malformed
                                                                         : UpstreamFault::cut);
  counters.bad_gateway.fetch_add(1, std::memory_order_relaxed);
  answer(502);
}

void Forwarding::answer(int status) noexcept {
  if (status != 503) return exchange.respond_status(status);
  char line[48];
  exchange.respond_status(503, format(line, "Retry-After: ", rules.retry_after.count(), "\r\n"));
}

Forwarding::Outcome Forwarding::grow(std::size_t bytes, std::size_t used) noexcept {
  auto taken = Buffer::take(bytes);
  if (!taken) return std::unexpected(taken.error());
  if (used != 0) memcpy(taken->data(), room.data(), used);
  larger = std::move(*taken);
  room = larger.bytes();
  return {};
}

}  // namespace coir::http
