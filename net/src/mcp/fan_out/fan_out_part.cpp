#include "mcp/fan_out/fan_out_part.h"

#include "mcp/client/envelope.h"
#include "socket/kernel.h"

namespace coir::mcp::detail {

void FanOutPart::run() noexcept {
  {
    CancelScope scope(deadline);
    if (!send(scope)) return;
  }
  whole->end(*this);
}

// send calls the tool. False: the request was sent, and the part rests.
bool FanOutPart::send(CancelScope& scope) noexcept {
  McpClientState& server = client();
  Agreement session;
  if (!server.http) return call(), true;
  if (Outcome agreed = agree(server, session); !session.version) {
    branch->outcome = std::move(agreed).conclude(scope);
    return true;
  }
  // A legacy server is told of a request's end by another one: its calls keep their fibers.
  if (!session.modern() || server.closed.load(std::memory_order_relaxed)) return call(), true;
  GrowingText params;
  auto begun = write_named(params, "name", branch->tool, branch->arguments);
  if (begun) {
    const McpRequest request{.method = "tools/call", .params = params.view(), .name = branch->tool};
    const CallOptions plain;
    Ask ask{.request = request, .options = plain, .id = server.new_id()};
    id = ask.id;
    generation = session.generation;
    begun = sent.begin(server, session, ask);
  }
  if (!begun) {
    branch->outcome = Outcome::of(begun.error()).conclude(scope);
    return true;
  }
  if (sent.waits() && rest()) return false;
  hear(scope);
  return true;
}

// rest has the part sleep. False: something has come, or none may rest any more, which waiting will tell.
bool FanOutPart::rest() noexcept {
  // One that rests would not count.
  if (whole->options.limit != 0) return false;
  wake = FanOut::woken;
  for (;;) {
    const auto slept = sleep();
    if (slept) break;
    if (slept.error() != ErrorCode::busy || has_news()) return false;
  }
  // The owner's next deadline may be this part's.
  whole->news.set();
  return true;
}

std::expected<void, Error> FanOutPart::sleep() noexcept {
  ArmingUnderLock arming(sent.fd());
  const Locked locked(whole->lock);
  if (whole->is_over) return std::unexpected(Error{ErrorCode::cancelled});
  auto armed = arming.arm(*this);
  if (armed) state = State::rests;
  return armed;
}

// has_news tells whether there is anything to read: an edge may be of bytes that were read before it was heard.
bool FanOutPart::has_news() const noexcept {
  return kernel::is_readable(sent.fd());
}

void FanOutPart::take_answer() noexcept {
  {
    CancelScope scope(deadline);
    if (!has_news() && !rests_until().passed() && rest()) return;
    hear(scope);
  }
  whole->end(*this);
}

void FanOutPart::hear(CancelScope& scope) noexcept {
  McpClientState& server = client();
  Agreement session;
  session.version = Version::v2026_07_28;
  session.generation = generation;
  const McpRequest request{.method = "tools/call", .params = {}, .name = branch->tool};
  const CallOptions plain;
  Ask ask{.request = request, .options = plain, .id = id};
  Outcome outcome = sent.finish(server, session, ask);
  if (is_final(server, session, ask, outcome)) {
    branch->outcome = std::move(outcome).conclude(scope);
  } else {
    call();
  }
}

// call is the long way: a fiber waits, and the request is sent again where that is due.
void FanOutPart::call() noexcept {
  branch->outcome = branch->client->call(branch->tool, branch->arguments, {.deadline = deadline});
}

}  // namespace coir::mcp::detail
