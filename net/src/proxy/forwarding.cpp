#include "proxy/forwarding.h"

#include <coir/wait.h>

#include <algorithm>

#include "http/message/characters.h"
#include "http/session/engine.h"
#include "outbound/fault.h"
#include "proxy/forward_keeper.h"

namespace coir::http {
namespace {

// Waiting counts an exchange that waits for its upstream, or asks it, unless there are ForwardRules::max_waiting.
class Waiting {
 public:
  explicit Waiting(const ForwardRules& rules) noexcept : count_(rules.max_waiting != 0 ? rules.waiting : nullptr) {
    if (count_ != nullptr) admitted_ = count_->fetch_add(1, std::memory_order_relaxed) < rules.max_waiting;
  }
  ~Waiting() { end(); }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

  bool is_admitted() const noexcept { return admitted_; }
  void end() noexcept {
    if (auto* const count = std::exchange(count_, nullptr)) count->fetch_sub(1, std::memory_order_relaxed);
  }

 private:
  Atomic<std::uint32_t>* count_;
  bool admitted_ = true;
};

}  // namespace

Forwarding::Forwarding(Exchange& given, ForwardKeeper& kept_by, UpstreamGroup& of, const ForwardRules& by,
                       std::string_view instead) noexcept
    : OutboundExchange(std::min(by.max_head, kMostHead)),
      RelayedExchange(given),
      keeper(kept_by),
      group(of),
      rules(by),
      target(instead) {
  room = given.scratch();
  idempotent = is_idempotent(request.method);
  if (request.method == Method::head) answers = AnswerTo::head;
}

void Forwarding::run() noexcept {
  if (refuses_method()) return;
  if (const int status = refusal(); status != 0) return answer(status);
  session.max_body_ = std::min(session.max_body_, rules.max_body);
  if (rules.body_timeout.count() != 0) session.body_timeout_ = rules.body_timeout;
  if (rules.body_rate) session.body_rate_ = *rules.body_rate;
  if (rules.request_id) choose_request_id();
  // A request that is under way when the server begins to stop is answered.
  session.watch_->outlive_stop();
  Waiting waiting(rules);
  if (!waiting.is_admitted()) return fail(Error{ErrorCode::busy});
  now_ns = session.began_ns_;
  for (bool again = false;; again = true) {
    auto taken = group.take({.key = rules.hash_key, .must_be_new = again}, within(rules.connect));
    if (!taken) return fail(taken.error());
    lease = std::move(*taken);
    goes_over(lease.stream(), lease.reused());
    if (!lease.reused()) now_ns = monotonic_ns();
    const auto tried = try_once();
    if (tried) {
      waiting.end();
      return pass_response();
    }
    if (again || !may_retry(tried.error())) return fail(tried.error());
    lease.failed(UpstreamFault::stale);
    now_ns = monotonic_ns();
    keeper.counters.retried.fetch_add(1, std::memory_order_relaxed);
  }
}

Forwarding::Outcome Forwarding::try_once() noexcept {
  begin_anew();
  ended = strays = false;
  decoder = ChunkedDecoder();
  if (auto sent = send(); !sent) {
    // An upstream that refuses content may have hung up behind its answer, which still counts: it is here already.
    return !client_failed() && has_refusal(sent.error(), Deadline::now()) ? Outcome() : sent;
  }
  if (got_head) return {};
  if (auto there = await_answer(); !there || got_head) return there;
  return read_head(within(rules.first_byte));
}

// await_answer waits until the upstream says something, without the session's memory: as long as nothing has come, all of
// it can go to others.
Forwarding::Outcome Forwarding::await_answer() noexcept {
  if (have != 0 || memory) return {};
  if (!stream().drained()) {
    const auto heard = hear();
    if (!heard) return std::unexpected(heard.error());
    if (have != 0) return {};
  }
  session.lends_scratch_ = false;
  const auto ready = wait(stream().fd(), Direction::readable, within(rules.first_byte));
  room = exchange.scratch();
  if (!ready) return ready;
  stream().mark_readable();
  return {};
}

// may_retry: the upstream had closed a resting connection before it saw the request.
bool Forwarding::may_retry(Error error) const noexcept {
  return !session.broken_ && may_repeat(error);
}

// fail answers a request for which no upstream has answered.
void Forwarding::fail(Error error) noexcept {
  ForwardCounters& counters = keeper.counters;
  if (error == ErrorCode::cancelled || client_failed()) {
    // The client has left, or what it sends is wrong: the upstream is told by the end of its connection.
    lease.leave();
    counters.cancelled.fetch_add(1, std::memory_order_relaxed);
    return answer_gone_client();
  }
  const ForwardFailure failure = failure_of(error);
  note(failure);
  switch (failure) {
    case ForwardFailure::all_down:
    case ForwardFailure::no_room:
    case ForwardFailure::crowded:
      lease.leave();
      counters.unavailable.fetch_add(1, std::memory_order_relaxed);
      return answer(503);
    case ForwardFailure::connect_timeout:
    case ForwardFailure::timeout:
      lease.failed(UpstreamFault::timed_out);
      counters.timed_out.fetch_add(1, std::memory_order_relaxed);
      return answer(504);
    default:
      lease.failed(error == ErrorCode::limit              ? UpstreamFault::oversized
                   : failure == ForwardFailure::malformed ? UpstreamFault::malformed
                   : got_head || is_midway()              ? UpstreamFault::broken_off
                                                          : UpstreamFault::cut);
      counters.bad_gateway.fetch_add(1, std::memory_order_relaxed);
      return answer(502);
  }
}

// failure_of tells what an error means, of a connection that there is or that could not be made.
ForwardFailure Forwarding::failure_of(Error error) const noexcept {
  using enum ForwardFailure;
  const bool connected = bool(lease);
  switch (error.code) {
    case ErrorCode::no_memory:
      return no_room;
    case ErrorCode::busy:
      return connected ? cut_off : crowded;
    case ErrorCode::timed_out:
      return connected ? timeout : connect_timeout;
    case ErrorCode::limit:
      return connected ? malformed : group.state().answering == 0 ? all_down : no_room;
    case ErrorCode::protocol:
      return connected ? malformed : untrusted;
    case ErrorCode::untrusted:
    case ErrorCode::alert:
      return connected ? cut_off : untrusted;
    case ErrorCode::not_found:
    case ErrorCode::temporary:
      // A Unix socket that is not there has the kernel's number.
      return connected ? cut_off : error.sys == 0 ? unresolved : refused;
    default:
      return connected ? cut_off : refused;
  }
}

void Forwarding::note(ForwardFailure failure) noexcept {
  session.log_why_ = word_of(failure);
  keeper.counters.failures[static_cast<std::size_t>(failure)].fetch_add(1, std::memory_order_relaxed);
}

}  // namespace coir::http
