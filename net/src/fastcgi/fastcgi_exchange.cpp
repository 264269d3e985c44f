#include "fastcgi/fastcgi_exchange.h"

#include <coir/detail/accounts.h>

#include <algorithm>

#include "base/charged.h"
#include "http/session/engine.h"
#include "proxy/forwarder.h"

namespace coir::http {
namespace {

// next_id makes a stray record of the request before on a connection none of this one's.
std::uint16_t next_id() noexcept {
  static Atomic<std::uint32_t> last = 0;
  return static_cast<std::uint16_t>(last.fetch_add(1, std::memory_order_relaxed) % 0xffff + 1);
}

}  // namespace

FastCgiExchange::FastCgiExchange(Exchange& given, UpstreamGroup& of, const FastCgiScript& what,
                                 const FastCgiOptions& by, FastCgiCounters* counted) noexcept
    : RelayedExchange(given), group(of), script(what), rules(by), counters(counted) {
  idempotent = is_idempotent(request.method);
}

FastCgiExchange::~FastCgiExchange() {
  if (copied != nullptr) give_charged(account::http, copied, script.name.size() + script.info.size());
}

void FastCgiExchange::count(Atomic<std::uint64_t> FastCgiCounters::* which) noexcept {
  if (counters != nullptr) (counters->*which).fetch_add(1, std::memory_order_relaxed);
}

void FastCgiExchange::run() noexcept {
  if (refuses_method()) return;
  session.max_body_ = std::min(session.max_body_, rules.max_body);
  if (request.framing == Framing::length && request.content_length > rules.max_body) {
    exchange.close_after();
    return answer(413);
  }
  // A request that is under way when the server begins to stop is answered.
  session.watch_->outlive_stop();
  group.note_server(exchange);
  if (request.framing == Framing::chunked && rules.spool == nullptr) return answer(411);
  if (keeps_content()) {
    if (const int status = keep_content(); status != 0) {
      if (status == 503) note(Error{ErrorCode::no_memory}, &FastCgiCounters::unavailable);
      if (status == 500) {
        session.log_why_ = "no-spool";
        count(&FastCgiCounters::unspooled);
      }
      return answer(status);
    }
    if (client_left) return fail(Error{ErrorCode::closed});
  } else if (request.framing == Framing::length) {
    input_bytes = request.content_length;
  }
  for (bool again = false;; again = true) {
    auto taken = group.take({.must_be_new = again || !rules.keep}, Deadline::after(rules.connect));
    if (!taken) return fail(taken.error());
    lease = std::move(*taken);
    goes_over(lease.stream(), lease.reused());
    const auto tried = try_once();
    if (complaints != 0 && line_bytes != 0) complain();
    if (tried) return;
    if (again || !may_retry(tried.error())) return fail(tried.error());
    lease.failed(UpstreamFault::stale);
    count(&FastCgiCounters::retried);
  }
}

FastCgiExchange::Outcome FastCgiExchange::try_once() noexcept {
  sent_any = sent_whole = false;
  id = next_id();
  reader = FastCgiReader(id);
  if (auto sent = send_parameters(); !sent) return sent;
  sent_ns = monotonic_ns();
  if (input_bytes != 0) {
    if (auto given = give_input(); !given) return given;
    sent_ns = monotonic_ns();
  }
  return take_output();
}

// may_retry: the application had closed a resting connection before it saw the request.
bool FastCgiExchange::may_retry(Error error) const noexcept {
  return !client_left && !session.broken_ && may_repeat(error);
}

// abort tells the application that nobody wants its answer. The end of the lease, which follows, does, too: abort must not
// wait.
void FastCgiExchange::abort() noexcept {
  if (!lease) return;
  char record[kFastCgiHeader];
  write_fastcgi_header(record, FastCgiType::abort_request, id, 0);
  const iovec part = {record, sizeof record};
  static_cast<void>(stream().write_some({&part, 1}, Deadline::now()));
}

void FastCgiExchange::fail(Error error) noexcept {
  if (client_left || error == ErrorCode::cancelled || client_failed()) {
    abort();
    lease.leave();
    count(&FastCgiCounters::cancelled);
    if (responding) {
      if (!session.broken_) static_cast<void>(session.cut_short(Error{ErrorCode::cancelled}));
      return;
    }
    return answer_gone_client();
  }
  const bool is_crowded =
      error == ErrorCode::busy || error == ErrorCode::no_memory || (!heard_any && error == ErrorCode::limit);
  if (responding || !(error == ErrorCode::invalid)) {
    note(error, responding                      ? &FastCgiCounters::cut
                : error == ErrorCode::timed_out ? &FastCgiCounters::timed_out
                : is_crowded                    ? &FastCgiCounters::unavailable
                                                : &FastCgiCounters::bad_gateway);
  }
  if (error == ErrorCode::timed_out || error == ErrorCode::no_memory || error == ErrorCode::invalid) {
    // The script is told to end. A lack of memory here, or a head that is too long, is not its fault; silence behind a
    // whole request is.
    abort();
    if (error.is_late() && sent_whole && !heard_any) lease.failed(UpstreamFault::timed_out);
    lease.leave();
  } else if (lease) {
    lease.failed(responding || is_midway()      ? UpstreamFault::broken_off
                 : error == ErrorCode::limit    ? UpstreamFault::oversized
                 : error == ErrorCode::protocol ? UpstreamFault::malformed
                                                : UpstreamFault::cut);
  }
  if (responding) {
    static_cast<void>(session.cut_short(Error{ErrorCode::truncated}));
    return;
  }
  answer(error == ErrorCode::invalid ? 431 : error == ErrorCode::timed_out ? 504 : is_crowded ? 503 : 502);
}

void FastCgiExchange::note(Error error, Atomic<std::uint64_t> FastCgiCounters::* counter) noexcept {
  session.log_why_ = word_of(failure_of(error, bool(lease), group));
  count(counter);
}

FastCgiExchange::Outcome FastCgiExchange::grow(std::size_t bytes) noexcept {
  auto taken = Buffer::take(bytes);
  if (!taken) return std::unexpected(taken.error());
  larger = std::move(*taken);
  room = larger.bytes();
  return {};
}

void FastCgiExchange::leave_memory() noexcept {
  leave_scratch();
  if (!leave_path() && copy_script()) session.lends_path_ = false;
}

void FastCgiExchange::leave_scratch() noexcept {
  if (heard_any) return;
  room = {};
  session.lends_scratch_ = false;
}

bool FastCgiExchange::leave_path() noexcept {
  if (heard_any) return true;
  const bool needs_script = !sent_any || is_repeatable();
  if (copied != nullptr || !needs_script) session.lends_path_ = false;
  return !session.lends_path_;
}

bool FastCgiExchange::copy_script() noexcept {
  const std::size_t bytes = script.name.size() + script.info.size();
  if (bytes == 0) return true;
  copied = static_cast<char*>(take_charged(account::http, bytes));
  if (copied == nullptr) return false;
  char* const behind = std::ranges::copy(script.name, copied).out;
  std::ranges::copy(script.info, behind);
  script = {.name = {copied, script.name.size()}, .info = {behind, script.info.size()}};
  return true;
}

void forward_to_fastcgi(Exchange& exchange, UpstreamGroup& group, const FastCgiScript& script,
                        const FastCgiOptions& options, FastCgiCounters* counters) noexcept {
  FastCgiExchange(exchange, group, script, options, counters).run();
}

}  // namespace coir::http
