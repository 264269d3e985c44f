#include <coir/events.h>

#include <coir/cancel_scope.h>
#include <coir/detail/accounts.h>
#include <coir/sleep.h>
#include <coir/stack_size.h>
#if !COIR_NO_ASYNC
#include <coir/fiber.h>
#endif

#include <algorithm>
#include <utility>

#include "base/buffer_pool.h"
#include "base/charged.h"
#include "client/client_fault.h"
#include "http/text/characters.h"
#include "outbound/reconnect_pause.h"
#include "stream/event_parser.h"

namespace coir::http {

namespace detail {

// EventFollowing is what an EventClient is a handle of. Its buffer holds what the parser keeps, and at its end what was
// read last.
struct EventFollowing {
  EventFollowing(Client& through, const EventClientOptions& given) noexcept : client(through), options(given) {}
  ~EventFollowing();

  std::span<char> kept() const noexcept { return buffer.bytes().first(buffer.size() - kInput); }
  std::span<char> input() const noexcept { return buffer.bytes().last(kInput); }

  std::expected<ServerEvent, Error> next() noexcept;
  std::expected<void, Error> connect() noexcept;
  std::expected<void, Error> attempt() noexcept;
  std::expected<void, Error> ask() noexcept;
  std::expected<void, Error> check() const noexcept;
  void break_off() noexcept;

  static constexpr std::size_t kInput = 1024;
  static constexpr std::size_t kMostFields = 12;

  Client& client;
  const EventClientOptions options;
  Buffer buffer;
  EventParser parser;
  Response response;
  bool connected = false;
  bool fruitful = false;  // the last attempt has brought an event
  ReconnectPause waits;
  std::uint64_t attempts = 0;
  Deadline next_attempt = Deadline::now();
  std::string_view unread;  // of the input
  Error ended;              // for good; code 0: it goes on
#if !COIR_NO_ASYNC
  // An attempt has a fiber of its own, which goes on when a call of `next` ends by its deadline. Until it is joined, `asked`
  // and `response` belong to it.
  Fiber attempting;
  std::expected<void, Error> asked;
#endif
};

namespace {

bool is_hopeless(Error error) noexcept {
  return error == ErrorCode::invalid || error == ErrorCode::unsupported || error == ErrorCode::untrusted ||
         error == ErrorCode::protocol;
}

bool may_be_a_field(std::string_view text) noexcept {
  return std::ranges::none_of(text, [](char c) { return is(c, kFieldControl); });
}

}  // namespace

// break_off ends a connection.
void EventFollowing::break_off() noexcept {
  response = Response();
  connected = false;
  unread = {};
  const auto pause =
      waits.after(std::exchange(fruitful, false), {options.pause, options.longest_pause}, parser.retry_ms());
  next_attempt = Deadline::after(ReconnectPause::spread(pause));
}

std::expected<void, Error> EventFollowing::check() const noexcept {
  if (response.status() == 204) return std::unexpected(Error{ErrorCode::end_of_stream});
  if (response.status() != 200) return std::unexpected(status_error(response.status()));
  const std::string_view type = response.header("Content-Type");
  if (equals_ignoring_case(trim(until(type, ';')), "text/event-stream")) return {};
  return std::unexpected(client_error(ErrorCode::protocol, ClientFault::no_event_stream));
}

EventFollowing::~EventFollowing() {
#if !COIR_NO_ASYNC
  if (!attempting.started()) return;
  static_cast<void>(attempting.cancel("the event client is destroyed"));
  const Shield shield(Deadline::never());
  static_cast<void>(attempting.join());
#endif
}

std::expected<void, Error> EventFollowing::connect() noexcept {
  const auto made = attempt();
  if (!made) return made;
  if (auto good = check(); !good) {
    ended = good.error();
    return good;
  }
  parser.restart(kept());
  connected = true;
  return {};
}

// attempt waits for the answer to a request: the one that an earlier call has left under way, or a new one.
std::expected<void, Error> EventFollowing::attempt() noexcept {
  std::expected<void, Error> outcome;
#if !COIR_NO_ASYNC
  if (!attempting.started()) {
    if (auto slept = sleep_until(next_attempt); !slept) return slept;
    ++attempts;
    if (current().id() != 0) {
      attempting = spawn({.name = "event client", .stack = 16_KiB, .detached = true}, [this] { asked = ask(); });
    }
  }
  if (attempting.started()) {
    if (auto joined = attempting.join(); !joined) {
      if (joined.error() != ErrorCode::stale) return joined;
      // It ended with the run that it was made in, and brought nothing.
      attempting = Fiber();
      return std::unexpected(Error{ErrorCode::closed});
    }
    outcome = asked;
  } else {
    outcome = ask();
  }
#else
  if (auto slept = sleep_until(next_attempt); !slept) return slept;
  ++attempts;
  outcome = ask();
#endif
  // An attempt that the caller has cut off brought nothing either.
  if (!outcome && outcome.error().ends_waits()) break_off();
  return outcome;
}

std::expected<void, Error> EventFollowing::ask() noexcept {
  RequestField fields[kMostFields + 3] = {{"Accept", "text/event-stream"}, {"Cache-Control", "no-store"}};
  std::size_t count = 2;
  const std::string_view id = parser.last_id(kept());
  // An id with controls, which no field may hold, cannot be resumed from.
  if (!id.empty() && may_be_a_field(id)) fields[count++] = {"Last-Event-ID", id};
  for (const RequestField& field : options.fields) fields[count++] = field;
  auto answer = client.get(options.url, {.fields = std::span(fields).first(count), .to = options.to});
  if (!answer) return std::unexpected(answer.error());
  response = std::move(*answer);
  return {};
}

std::expected<ServerEvent, Error> EventFollowing::next() noexcept {
  for (;;) {
    if (ended.code != ErrorCode{}) return std::unexpected(ended);
    Error error;
    if (!connected) {
      const auto made = connect();
      if (made) continue;
      error = made.error();
      if (is_hopeless(error)) ended = error;
    } else {
      const ParsedEvent parsed = parser.parse(unread, kept(), options.max_event_bytes);
      if (parsed.state == EventState::event) {
        fruitful = true;
        return parsed.event;
      }
      if (parsed.state == EventState::limit) {
        ended = Error{ErrorCode::limit};
        response = Response();
        continue;
      }
      const auto got = response.read(input());
      if (got) {
        unread = {input().data(), *got};
        continue;
      }
      error = got.error();
    }
    if (error.ends_waits()) return std::unexpected(error);
    if (ended.code == ErrorCode{}) break_off();
  }
}

}  // namespace detail

std::expected<EventClient, Error> EventClient::create(Client& client, const EventClientOptions& options) noexcept {
  using detail::EventFollowing;
  if (options.fields.size() > EventFollowing::kMostFields) return std::unexpected(Error{ErrorCode::limit});
  auto taken = Buffer::take(options.max_event_bytes + EventFollowing::kInput);
  if (!taken) return std::unexpected(taken.error());
  auto* const following = construct_charged<EventFollowing>(account::http, client, options);
  if (following == nullptr) return std::unexpected(Error{ErrorCode::no_memory});
  EventClient made(following);
  made.following_->buffer = std::move(*taken);
  if (!made.following_->parser.set_last_id(options.last_id, made.following_->kept())) {
    return std::unexpected(Error{ErrorCode::invalid});
  }
  return made;
}

EventClient::~EventClient() {
  destroy_charged(account::http, following_);
}

std::expected<ServerEvent, Error> EventClient::next(Deadline deadline) noexcept {
  CancelScope scope(deadline);
  auto event = following_->next();
  if (!event && scope.caused(event.error())) event.error().scope = 0;
  return event;
}

std::string_view EventClient::last_id() const noexcept {
  return following_->parser.last_id(following_->kept());
}

std::uint64_t EventClient::attempts() const noexcept {
  return following_->attempts;
}

}  // namespace coir::http
