#include "mcp/client/program.h"

#include "mcp/client/envelope.h"
#include "mcp/message/raw_json.h"

namespace coir::mcp::detail {

namespace {

constexpr int kNotSent = 404;  // as HTTP says that a session is gone: the request was not taken

std::optional<std::uint64_t> number_in(JsonView object, std::string_view name) noexcept {
  const auto value = object.find(name);
  if (!value || value->kind() != JsonKind::number) return std::nullopt;
  const auto number = value->integer<std::uint64_t>();
  return number ? std::optional(*number) : std::nullopt;
}

// named_in is the id of the request that a notification belongs to.
std::optional<std::uint64_t> named_in(const ReplyBlock& message) noexcept {
  const auto params = message.document.root().find("params");
  if (!params || params->kind() != JsonKind::object) return std::nullopt;
  if (const auto token = number_in(*params, "progressToken")) return token;
  const auto meta = params->find("_meta");
  return meta && meta->kind() == JsonKind::object ? number_in(*meta, kSubscriptionKey) : std::nullopt;
}

bool is_of_caller(Error error) noexcept {
  return error == ErrorCode::cancelled || error == ErrorCode::timed_out;
}

}  // namespace

std::expected<std::uint32_t, Error> Program::await_start() noexcept {
  for (;;) {
    if (auto waited = news_.wait(); !waited) return std::unexpected(waited.error());
    const Locked locked(lock_);
    if (state_.closed.load(std::memory_order_relaxed)) return std::unexpected(Error{ErrorCode::closed});
    if (runs_) return instance_;
    if (not_started_.code != ErrorCode{}) return std::unexpected(not_started_);
    news_.reset();
  }
}

bool Program::add(Pending& pending, std::uint32_t instance) noexcept {
  const Locked locked(lock_);
  if (!runs_ || instance_ != instance) return false;
  pending_.push_back(pending);
  return true;
}

void Program::remove(Pending& pending) noexcept {
  coir::detail::IntrusiveQueue<ReplyBlock> left;
  {
    const Locked locked(lock_);
    pending_.remove(pending);
    left = std::exchange(pending.queue, {});
  }
  await_wakers();
  while (ReplyBlock* const each = left.pop()) free_reply(each);
}

std::expected<Reply, Error> Program::take_queued(Pending& pending) noexcept {
  for (;;) {
    {
      const Locked locked(lock_);
      if (ReplyBlock* const message = pending.queue.pop()) {
        --pending.queued;
        return Reply(message);
      }
      if (pending.ended.code != ErrorCode{}) return std::unexpected(pending.ended);
      pending.ready.reset();
    }
    if (auto waited = pending.ready.wait(); !waited) return std::unexpected(waited.error());
  }
}

void Program::wake(Pending& pending) noexcept {
  pending.ready.set();
  const Locked locked(lock_);
  --waking_;
}

void Program::cancel(CancelScope& scope, const char* reason) noexcept {
  scope.cancel(reason);
  const Locked locked(lock_);
  --waking_;
}

void Program::await_wakers() noexcept {
  for (SpinWait turn;; turn.pause()) {
    const Locked locked(lock_);
    if (waking_ == 0) return;
  }
}

// queue is called with lock_ held, and takes the message over, if it does not leave it out. The caller wakes.
void Program::queue(Pending& pending, Reply& message) noexcept {
  const bool answers = message->kind == MessageKind::result || message->kind == MessageKind::error;
  if (answers ? pending.is_answered : pending.queued >= Pending::kMostQueued) {
    // Progress and questions that nobody reads may be left out; a change that was left out would never be noticed.
    if (pending.to_listen) pending.ended = ErrorCode::limit;
    state_.counters.ignored.fetch_add(1, std::memory_order_relaxed);
  } else {
    if (answers) pending.is_answered = true;
    pending.queue.push(*message.release());
    ++pending.queued;
  }
  ++waking_;
}

// receiver is who waits for a message. With lock_ held.
Pending* Program::receiver(const ReplyBlock& message) noexcept {
  const bool answers = message.kind == MessageKind::result || message.kind == MessageKind::error;
  const auto id = answers ? message.id : message.kind == MessageKind::request ? std::nullopt : named_in(message);
  Pending* oldest = nullptr;
  std::size_t callers = 0;
  for (Pending* each = pending_.front(); each != nullptr; each = each->next) {
    if (!each->to_listen) ++callers;
    if (id ? each->id == *id : !answers && oldest == nullptr && !each->to_listen) oldest = each;
  }
  // Log lines, and a legacy program's questions, do not say which request they belong to. A line may tell what another
  // caller has asked for: it is for the only one.
  if (!id && message.method == "notifications/message") return callers == 1 ? oldest : nullptr;
  return id || answers || message.kind == MessageKind::request ? oldest : nullptr;
}

bool Program::deliver(Reply& message) noexcept {
  Pending* pending;
  {
    const Locked locked(lock_);
    pending = receiver(*message);
    if (pending == nullptr) return false;
    if (message->kind == MessageKind::result || message->kind == MessageKind::error) fruitful_ = true;
    queue(*pending, message);
  }
  wake(*pending);
  return true;
}

bool Program::deliver_to_listeners(const Reply& message) noexcept {
  if (message->kind != MessageKind::notification || named_in(*message)) return false;
  bool delivered = false;
  const auto listens = [&](std::size_t place) -> bool {
    // Each gets a copy, which is made, and freed if it is left out, without the lock.
    auto copy = Reply::read(message->text, state_.options.max_message);
    Pending* each;
    {
      const Locked locked(lock_);
      each = pending_.front();
      while (each != nullptr && (!each->to_listen || place-- != 0)) each = each->next;
      if (each == nullptr) return false;
      if (copy) {
        queue(*each, *copy);
      } else {
        each->ended = copy.error();
        ++waking_;
      }
    }
    delivered = true;
    wake(*each);
    return true;
  };
  for (std::size_t place = 0; listens(place); ++place) {
  }
  return delivered;
}

// refuse answers a question that belongs to no request.
void Program::refuse(const ReplyBlock& request) noexcept {
  using namespace std::chrono_literals;
  GrowingText message;
  TextParts parts(message);
  parts << R"({"jsonrpc":"2.0","id":)" << request.id_text;
  parts << (request.method == "ping" ? R"(,"result":{}})"
                                     : R"(,"error":{"code":-32601,"message":"This client does not answer that"}})");
  CancelScope scope(Deadline::after(1s));
  if (parts.outcome()) static_cast<void>(notify_by_program(state_, message.view()));
}

void Program::dispatch_one(std::string_view text) noexcept {
  auto message = Reply::read(text, state_.options.max_message);
  if (!message) {
    state_.counters.garbage.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  if (deliver(*message) || deliver_to_listeners(*message)) return;
  if ((*message)->kind == MessageKind::request) return refuse(**message);
  state_.counters.ignored.fetch_add(1, std::memory_order_relaxed);
}

void Program::dispatch(std::string_view line) noexcept {
  const std::size_t begin = line.find_first_not_of(" \t");
  if (begin == line.npos) return;
  if (line[begin] != '[') return dispatch_one(line.substr(begin));
  RawElements batch(line);
  while (const auto element = batch.next()) dispatch_one(*element);
}

std::expected<void, Error> Program::write(std::string_view message, std::uint32_t instance) noexcept {
  auto held = writing_.lock();
  if (!held) return std::unexpected(held.error());
  {
    const Locked locked(lock_);
    if (!runs_ || instance_ != instance) return std::unexpected(Error{ErrorCode::closed});
  }
  std::size_t sent = 0;
  while (sent < message.size()) {
    const auto more = input_.write_some(message.substr(sent));
    if (more) {
      sent += *more;
      continue;
    }
    if (sent == 0 && is_of_caller(more.error())) return std::unexpected(more.error());
    // Half a line: nothing can be said to this child any more.
    CancelScope* living;
    {
      const Locked locked(lock_);
      living = living_;
      if (living != nullptr) ++waking_;
    }
    if (living != nullptr) cancel(*living, "a line to the program was cut off");
    return std::unexpected(is_of_caller(more.error()) ? more.error() : Error{ErrorCode::closed});
  }
  return {};
}

Error notify_by_program(McpClientState& state, std::string_view message) noexcept {
  const auto instance = state.program->await_start();
  if (!instance) return instance.error();
  GrowingText line;
  if (auto copied = line.write(message); !copied) return copied.error();
  if (auto ended = line.end_line(); !ended) return ended.error();
  const auto written = state.program->write(line.view(), *instance);
  return written ? Error{} : written.error();
}

Outcome send_by_program(McpClientState& state, const Agreement& session, Ask& ask) noexcept {
  Program& program = *state.program;
  GrowingText line;
  if (!ask.to_listen) {
    if (auto written = write_request(line, state, session, ask); !written) return Outcome::of(written.error());
    if (auto ended = line.end_line(); !ended) return Outcome::of(ended.error());
  }
  const bool listens = ask.to_listen || ask.request.method == "subscriptions/listen";
  Pending pending{.id = ask.id, .to_listen = listens, .wants_told = bool(ask.options.told)};
  if (!program.add(pending, session.instance)) return Outcome::of(ErrorCode::closed, kNotSent);
  struct Removal {
    Program& program;
    Pending& pending;
    ~Removal() { program.remove(pending); }
  } const removal{program, pending};
  if (ask.to_listen) {
    if (auto told = Reply::read(R"({"method":"notifications/subscriptions/acknowledged","params":{}})", 128)) {
      take(state, session, ask, *told);
    }
  } else if (auto written = program.write(line.view(), session.instance); !written) {
    return Outcome::of(written.error(), written.error() == ErrorCode::closed ? kNotSent : 0);
  }
  state.counters.requests.fetch_add(1, std::memory_order_relaxed);
  for (;;) {
    auto message = program.take_queued(pending);
    if (!message) {
      if (is_of_caller(message.error()) && !ask.to_listen && ask.request.method != "initialize") {
        tell_cancelled(state, session, ask.id);
      }
      return Outcome::of(message.error());
    }
    const MessageKind kind = (*message)->kind;
    if (kind == MessageKind::result || kind == MessageKind::error) return {std::move(*message), {}, 0};
    take(state, session, ask, *message);
  }
}

}  // namespace coir::mcp::detail
