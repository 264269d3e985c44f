#include "proxy/forwarding.h"

#include <coir/resting_wait.h>
#include <coir/wait.h>
#include <errno.h>
#include <string.h>

#include <algorithm>
#include <utility>

#include "http/session/engine.h"
#include "http/text/characters.h"
#include "outbound/fault.h"
#include "proxy/forward_keeper.h"
#include "socket/kernel.h"

namespace coir::http {

Forwarding::Forwarding(Exchange& given, ForwardKeeper& kept_by, UpstreamGroup& of, const ForwardRules& by,
                       const RequestRules& its_own) noexcept
    : OutboundExchange(std::min(by.max_head, kMostHead)),
      RelayedExchange(given),
      keeper(kept_by),
      group(of),
      rules(by),
      own(its_own) {
  idempotent = is_idempotent(request.method);
  if (request.method == Method::head) answers = AnswerTo::head;
}

void Forwarding::run() noexcept {
  if (refuses_method()) return;
  if (const int status = refusal(); status != 0) return answer(status);
  limit_content();
  if (rules.request_id) choose_request_id();
  // A request that is under way when the server begins to stop is answered.
  session.watch_->outlive_stop();
  group.note_server(exchange);
  if (!begin_waiting()) return fail(Error{ErrorCode::busy});
  now_ns = session.began_ns_;
  go_on(Stage::ask);
}

void Forwarding::limit_content() noexcept {
  session.max_body_ = std::min(session.max_body_, rules.max_body);
  if (rules.body_timeout.count() != 0) session.body_timeout_ = rules.body_timeout;
  if (rules.body_rate) session.body_rate_ = *rules.body_rate;
}

void Forwarding::resume(WaitingExchange& waiting) noexcept {
  // It has been found to be in order; what it asks for is noted once more.
  static_cast<void>(refusal());
  if (waiting.has_made_id) {
    memcpy(session.made_id_, waiting.made_id, sizeof session.made_id_);
    session.log_id_ = {session.made_id_, sizeof session.made_id_};
  } else if (rules.request_id) {
    choose_request_id();
  }
  session.watch_->outlive_stop();
  lease = std::move(waiting.lease);
  goes_over(lease.stream(), lease.reused());
  stream().mark_readable();
  counted = std::exchange(waiting.counted, nullptr);
  now_ns = waiting.asked_ns;
  tried_again = waiting.tried_again;
  unrepeatable = waiting.unrepeatable;
  begin_try(waiting.interims);
  sent_any = true;
  if (waiting.heard_bytes != 0) {
    memcpy(room.data(), waiting.heard(), waiting.heard_bytes);
    have = waiting.heard_bytes;
    heard_any = true;
  }
  if (session.body_done_) {
    resumed = sent_whole = true;
    return go_on(Stage::answer);
  }
  was_slow = true;
  limit_content();
  if (waiting.late_ns <= monotonic_ns() && kernel::peek(session.connection_->stream.fd()) == -EAGAIN) {
    static_cast<void>(session.body_failed(Error{ErrorCode::timed_out}));
  }
  go_on(Stage::upload);
}

// go_on tries until there is an answer, or the exchange is kept until there is more to do.
void Forwarding::go_on(Stage stage) noexcept {
  for (;; stage = Stage::ask) {
    const auto tried = stage == Stage::ask ? ask() : stage == Stage::upload ? answered(end_upload()) : await_answer();
    if (suspended) return;
    if (tried) {
      end_waiting();
      lease.answered(now_ns);
      return pass_response();
    }
    if (!lease || tried_again || !may_retry(tried.error())) return fail(tried.error());
    lease.failed(UpstreamFault::stale);
    now_ns = monotonic_ns();
    keeper.counters.retried.fetch_add(1, std::memory_order_relaxed);
    tried_again = true;
  }
}

// ask takes a connection to an upstream and tries. The wait for one may be long, and needs nothing of the session's memory.
Forwarding::Outcome Forwarding::ask() noexcept {
  session.lends_scratch_ = false;
  auto taken = group.take({.key = own.hash_key, .must_be_new = tried_again}, within(rules.connect));
  if (!taken) return std::unexpected(taken.error());
  lease = std::move(*taken);
  goes_over(lease.stream(), lease.reused());
  if (!lease.reused() || group.bounds_leases()) now_ns = monotonic_ns();
  return try_once();
}

void Forwarding::begin_try(std::uint8_t interims) noexcept {
  if (!memory) room = exchange.scratch();
  begin_anew(interims);
  relayed = RelayedContent();
}

Forwarding::Outcome Forwarding::try_once() noexcept {
  begin_try();
  return answered(send());
}

// answered awaits the answer behind a request that was sent as far as it goes.
Forwarding::Outcome Forwarding::answered(Outcome sent) noexcept {
  if (!sent) {
    // An upstream that refuses content may have hung up behind its answer, which still counts: it is here already.
    return !client_failed() && has_refusal(sent.error(), Deadline::now()) ? Outcome() : sent;
  }
  return got_head || suspended ? Outcome() : await_answer();
}

// await_answer reads the head of the response. As long as nothing has come the session's memory can go to others, and
// behind a while the fiber, too.
Forwarding::Outcome Forwarding::await_answer() noexcept {
  const Deadline last = within(rules.first_byte);
  std::chrono::milliseconds doubt = kUntilAcknowledged;
  while (!memory) {
    if (stream().drained()) {
      session.lends_scratch_ = have != 0;
      const Deadline rests_at = Deadline::after(resumed ? kBeforeRestAnew : kBeforeRest);
      auto ready = wait(stream().fd(), Direction::readable, std::min(last, rests_at));
      if (!ready && ready.error().is_late() && !last.passed()) {
        // The client has the answers before this one.
        if (session.out_used_ != 0 && !session.flush()) return std::unexpected(Error{ErrorCode::closed});
        const bool is_early = !within(kInDoubt).passed();
        // A hang-up soon behind the request may mean that it was not read, and content would be sent again.
        const bool doubts = is_in_doubt(is_early) || (is_early && is_repeatable() && !session.body_done_);
        if (!doubts && suspend()) return {};
        ready = doubts ? await(std::min(last, Deadline::after(std::exchange(doubt, kInDoubt))))
                       : wait(stream().fd(), Direction::readable, last);
        if (doubts && !ready && ready.error().is_late() && !last.passed()) continue;
      }
      room = exchange.scratch();
      if (!ready) return ready;
    }
    const auto heard = hear();
    if (!heard) return std::unexpected(heard.error());
    if (*heard) return {};
  }
  return read_head(last);
}

// may_be_kept tells whether all that the exchange needs can be kept without the session, until `late`.
bool Forwarding::may_be_kept(Deadline late) const noexcept {
  // Its deadline is looked at now and then.
  const auto least = 2 * session.engine_.look_interval();
  return !session.engine_.stopping() && late >= Deadline::after(least) && session.phase_ == Session::Phase::none &&
         session.added_ == 0 && session.out_used_ == 0 && !client_failed();
}

// suspend has the exchange rest until the upstream answers. Content that was sent is not kept: it cannot be sent again.
bool Forwarding::suspend() noexcept {
  if (!may_be_kept(within(rules.first_byte))) return false;
  // A wait would be over at once for what the client has sent meanwhile.
  if (resumed && !resting_wait_hears_edges() && kernel::has_input(session.connection_->stream.fd())) return false;
  if (!session.body_done_) {
    if (request.framing != Framing::length || session.end_ - session.body_at_ < session.body_left_) return false;
  }
  if (!keeper.answers.keep(*this, within(rules.first_byte), false)) return false;
  session.body_at_ += static_cast<std::uint32_t>(session.body_left_);
  session.body_left_ = 0;
  session.body_done_ = session.body_begun_ = true;
  return suspended = true;
}

// suspend_upload has it rest until the client sends more of its content, or the upstream says something.
bool Forwarding::suspend_upload() noexcept {
  const Deadline late = session.body_deadline(monotonic_ns());
  if (!may_be_kept(late) || have != 0 || memory || session.body_at_ != session.end_) return false;
  // Both lie in the session's buffers.
  if (session.chunks_.has_some() || session.chunks_.has_trailers()) return false;
  if (session.connection_->stream.midway()) return false;
  return suspended = keeper.answers.keep(*this, late, true);
}

bool Forwarding::begin_waiting() noexcept {
  if (rules.max_waiting == 0 || rules.waiting == nullptr) return true;
  counted = rules.waiting;
  return counted->fetch_add(1, std::memory_order_relaxed) < rules.max_waiting;
}

void Forwarding::end_waiting() noexcept {
  if (auto* const count = std::exchange(counted, nullptr)) count->fetch_sub(1, std::memory_order_relaxed);
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
  if (error == ErrorCode::invalid && lease && !sent_any) {
    // With the fields that a proxy adds the head is too long: nothing was sent, and the upstream is not to blame.
    lease.leave();
    return answer(431);
  }
  const ForwardFailure failure = failure_of(error, bool(lease), group);
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
      lease.failed(!error.is_late() || is_midway() ? UpstreamFault::broken_off : UpstreamFault::timed_out);
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

void Forwarding::note(ForwardFailure failure) noexcept {
  session.log_why_ = word_of(failure);
  keeper.counters.note(failure);
}

}  // namespace coir::http
