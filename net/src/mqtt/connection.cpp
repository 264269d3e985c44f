// How a MqttClient's connections begin and end. Declared in mqtt/client_state.h.
#include <coir/cancel_scope.h>
#include <coir/nursery.h>
#include <coir/stack_size.h>

#include <algorithm>

#include "mqtt/client_state.h"
#include "outbound/dialler.h"
#include "socket/kernel.h"

namespace coir::mqtt {

namespace {

constexpr int kFirstRefusal = 0x49000000;  // an error carries a broker's refusal in `sys`, above every errno

Error refused(std::uint8_t code) noexcept {
  return {code == 3 ? ErrorCode::temporary : ErrorCode::invalid, kFirstRefusal + code};
}

}  // namespace

const char* phrase_of_refusal(Error error) noexcept {
  static constexpr const char* kReasons[] = {
      "refused for a reason unknown", "the broker does not speak MQTT 3.1.1", "the broker rejects the client's id",
      "the broker is not available",  "user or password are wrong",           "not authorized"};
  const int code = error.sys - kFirstRefusal;
  if (code < 0 || code > UINT8_MAX) return nullptr;
  return kReasons[code < static_cast<int>(std::size(kReasons)) ? code : 0];
}

std::expected<void, Error> ClientState::run() noexcept {
  for (;;) {
    std::expected<void, Error> outcome = connect();
    bool settled = false;
    if (outcome) {
      const Deadline settles = Deadline::after(2 * options.pause);
      counters.connections.fetch_add(1, std::memory_order_relaxed);
      tell(true, {});
      serve();
      outcome = std::unexpected(lost_why);
      // A broker that takes us in and throws us out at once is not asked faster than one that is down.
      settled = settles.passed();
    }
    stream.close();
    tell(false, outcome.error());
    if (!outcome.error().ends_waits()) outcome = pause(settled);
    if (!outcome) {
      end();
      if (outcome.error() == ErrorCode::closed) return {};
      return outcome;
    }
  }
}

// end lets go of whoever waits for this client.
void ClientState::end() noexcept {
  const Shield shield(Deadline::never());
  const auto held = lock.lock();
  ended = true;
  to_read.notify_all();
  all_sent.notify_all();
}

void ClientState::tell(bool connected, Error error) noexcept {
  if (!options.on_connection) return;
  options.on_connection({.connected = connected,
                         .session_present = connected && session_present,
                         .error = error,
                         .refusal = std::exchange(refusal, 0)});
}

// pause waits before the next attempt. Errors: closed (close was called), cancelled, timed_out (a scope around it).
std::expected<void, Error> ClientState::pause(bool settled) noexcept {
  const auto span = ReconnectPause::spread(pauses.after(settled, {options.pause, options.longest_pause}, {}));
  auto held = lock.lock();
  if (!held) return std::unexpected(held.error());
  const auto waited = to_send.wait_until(*held, [this] { return closing; }, Deadline::after(span));
  if (closing) return std::unexpected(Error{ErrorCode::closed});
  if (!waited && waited.error().ends_waits()) return waited;
  return {};
}

std::expected<void, Error> ClientState::connect() noexcept {
  {
    auto held = lock.lock();
    if (!held) return std::unexpected(held.error());
    // A message that the program has still lies in the buffer that is read into.
    const auto waited = taken.wait_until(*held, [this] { return closing || handing != Handing::held; });
    if (!waited) return waited;
    if (closing) return std::unexpected(Error{ErrorCode::closed});
    begin = have = skipped = reply_count = 0;
    lost = pinged = false;
    asked = 0;
    asks_ns = 0;
    queue.restart();
  }
  if (auto met = meet(); !met) {
    return closes.cancelled() ? std::unexpected(Error{ErrorCode::closed}) : met;
  }
  auto held = lock.lock();
  if (!held) return std::unexpected(held.error());
  if (!session_present) lacking = all_subscriptions();
  sent_ns = monotonic_ns();
  heard_ns.store(sent_ns, std::memory_order_relaxed);
  is_connected.store(true, std::memory_order_relaxed);
  return {};
}

// meet finds the broker and is taken in by it, or close ends it.
[[gnu::noinline]] std::expected<void, Error> ClientState::meet() noexcept {
  CancelScope attempt;
  const CancellationWatch watch(closes.token(), attempt);
  const Deadline deadline = Deadline::after(options.connect_timeout);
  Dialler dialler{stream, {.last = deadline}};
  if (auto dialled = dialler.dial(options.host, options.port, options.tls); !dialled) return dialled;
  // Writes to a peer that has vanished end, too, where nobody waits for an answer.
  const auto patience = options.keep_alive + options.answer_timeout;
  kernel::give_up_after(stream.fd(), static_cast<unsigned>(std::chrono::milliseconds(patience).count()));
  return greet(deadline);
}

// greet says who we are and waits for the broker's consent. Errors: those of Stream; protocol, and what refused makes
// of a refusal.
[[gnu::noinline]] std::expected<void, Error> ClientState::greet(Deadline deadline) noexcept {
  const PublishFields will{.topic = options.will.topic,
                           .payload = options.will.payload,
                           .qos = static_cast<std::uint8_t>(options.will.options.qos),
                           .retained = options.will.options.retained};
  const auto or_none = [](std::string_view text) { return text.empty() ? std::string_view() : text; };
  const std::size_t size =
      write_connect(out.bytes(), {.client_id = options.client_id,
                                  .user = or_none(options.user),
                                  .password = or_none(options.password),
                                  .will = will.topic.empty() ? nullptr : &will,
                                  .keep_alive_s = static_cast<std::uint16_t>(options.keep_alive.count()),
                                  .clean = options.clean_session});
  if (auto sent = stream.write({out.data(), size}, deadline); !sent) return sent;
  const auto answer = next_packet(deadline);
  if (!answer) return std::unexpected(answer.error());
  if (answer->type != PacketType::connack) return std::unexpected(Error{ErrorCode::protocol});
  refusal = answer->code;
  if (refusal != 0) return std::unexpected(refused(refusal));
  session_present = answer->session_present && !options.clean_session;
  return {};
}

// serve lasts as long as a connection.
void ClientState::serve() noexcept {
  using coir::operator""_KiB;
  Nursery nursery;
  const Error started = nursery.start({.name = "mqtt sender", .stack = 8_KiB}, [this] { send_all(); }).error();
  const Error why = started.code == ErrorCode{} ? read_all() : started;
  {
    const Shield shield(Deadline::never());
    const auto held = lock.lock();
    fail(why);
    is_connected.store(false, std::memory_order_relaxed);
  }
  static_cast<void>(nursery.join());
}

}  // namespace coir::mqtt
