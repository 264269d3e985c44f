#include <coir/mqtt.h>

#include <coir/cancel_scope.h>
#include <coir/utf8.h>

#include <algorithm>

#include "base/charged.h"
#include "mqtt/client_state.h"

namespace coir::account {
constinit Account mqtt("mqtt");
}  // namespace coir::account

namespace coir::mqtt {

namespace {

constexpr std::size_t kMostText = 65'535;

std::expected<void, Error> check(const ClientOptions& options) noexcept {
  const Error invalid{ErrorCode::invalid}, limit{ErrorCode::limit};
  if (options.host.empty() || options.client_id.empty() || options.client_id.size() > kMostText ||
      options.client_id.contains('\0') || !is_utf8(options.client_id) || !is_utf8(options.user) ||
      options.user.size() > kMostText || options.password.size() > kMostText) {
    return std::unexpected(invalid);
  }
  if (options.keep_alive.count() < 1 || options.keep_alive.count() > 65'535 || options.max_in_flight == 0 ||
      options.queue_messages == 0 || options.max_packet < 128 || options.pause.count() <= 0) {
    return std::unexpected(invalid);
  }
  if (!options.will.topic.empty() && !may_publish(options.will.topic)) return std::unexpected(invalid);
  if (options.subscriptions.size() > kMostSubscriptions) return std::unexpected(limit);
  std::size_t filters = 16;
  for (const Subscription& each : options.subscriptions) {
    if (!is_filter(each.filter)) return std::unexpected(invalid);
    filters += filter_bytes(each.filter);
  }
  const std::size_t greeting = 64 + options.client_id.size() + options.user.size() + options.password.size() +
                               options.will.topic.size() + options.will.payload.size();
  if (std::max({filters, greeting}) > options.max_packet || options.will.payload.size() > kMostText) {
    return std::unexpected(limit);
  }
  return {};
}

}  // namespace

std::expected<MqttClient, Error> MqttClient::create(const ClientOptions& options) noexcept {
  detail::add_phrase(phrase_of_refusal);
  if (auto sound = check(options); !sound) return std::unexpected(sound.error());
  auto* const memory = construct_charged<ClientState>(account::mqtt, options);
  if (memory == nullptr) return std::unexpected(Error{ErrorCode::no_memory});
  MqttClient made(memory);
  ClientState& state = *made.state_;
  auto queue = MessageQueue::create(options.queue_bytes, options.queue_messages);
  if (!queue) return std::unexpected(queue.error());
  state.queue = std::move(*queue);
  for (Buffer* buffer : {&state.in, &state.out}) {
    auto taken = Buffer::take(options.max_packet);
    if (!taken) return std::unexpected(taken.error());
    *buffer = std::move(*taken);
  }
  if (options.queue_file != nullptr) {
    auto opened = state.file.open(options.queue_file, options.sync_queue_file, options.queue_bytes, state.queue);
    if (!opened) return std::unexpected(opened.error());
  }
  return made;
}

MqttClient::~MqttClient() {
  destroy_charged(account::mqtt, state_);
}

std::expected<void, Error> MqttClient::run() noexcept {
  return state_->run();
}

std::expected<void, Error> MqttClient::publish(std::string_view topic, std::string_view payload,
                                               PublishOptions options) noexcept {
  ClientState& state = *state_;
  if (!may_publish(topic)) return std::unexpected(Error{ErrorCode::invalid});
  PublishFields message{
      .topic = topic, .payload = payload, .qos = static_cast<std::uint8_t>(options.qos), .retained = options.retained};
  // The longest head: type, length, topic's length and id.
  if (topic.size() + payload.size() + 9 > state.options.max_packet || !state.queue.can_hold(message)) {
    return std::unexpected(Error{ErrorCode::limit});
  }
  auto held = state.lock.lock();
  if (!held) return std::unexpected(held.error());
  if (state.closing) return std::unexpected(Error{ErrorCode::closed});
  if (!state.queue.has_room(message)) {
    if (state.options.when_full == WhenFull::refuse) {
      state.counters.refused.fetch_add(1, std::memory_order_relaxed);
      return std::unexpected(Error{ErrorCode::queue_full});
    }
    do {
      state.counters.dropped.fetch_add(1, std::memory_order_relaxed);
      const std::uint16_t id = state.queue.drop_oldest();
      if (id != 0 && state.file.is_open() && !state.file.remove(id, state.queue))
        state.counters.queue_file_errors.fetch_add(1, std::memory_order_relaxed);
    } while (!state.queue.has_room(message));
  }
  if (message.qos != 0) {
    message.id = state.queue.fresh_id();
    if (state.file.is_open()) {
      if (auto added = state.file.add(message, state.queue); !added) return added;
    }
  }
  state.queue.push(message);
  state.counters.published.fetch_add(1, std::memory_order_relaxed);
  state.to_send.notify_one();
  return {};
}

std::expected<Message, Error> MqttClient::receive(Deadline deadline) noexcept {
  using Handing = ClientState::Handing;
  ClientState& state = *state_;
  auto held = state.lock.lock(deadline);
  if (!held) return std::unexpected(held.error());
  if (state.handing == Handing::held) {
    state.handing = Handing::nothing;
    state.taken.notify_all();
  }
  const auto waited = state.to_read.wait_until(
      *held, [&] { return state.handing == Handing::offered || state.ended || state.closing; }, deadline);
  if (state.handing != Handing::offered) {
    return std::unexpected(waited ? Error{ErrorCode::end_of_stream} : waited.error());
  }
  state.handing = Handing::held;
  state.counters.received.fetch_add(1, std::memory_order_relaxed);
  const Packet& packet = state.offered;
  return Message{.topic = packet.topic,
                 .payload = packet.payload,
                 .at_least_once = packet.qos != 0,
                 .retained = packet.retained,
                 .duplicate = packet.duplicate};
}

std::expected<void, Error> MqttClient::flush(Deadline deadline) noexcept {
  ClientState& state = *state_;
  auto held = state.lock.lock(deadline);
  if (!held) return std::unexpected(held.error());
  const auto waited =
      state.all_sent.wait_until(*held, [&] { return state.queue.empty() || state.ended || state.closing; }, deadline);
  if (state.queue.empty()) return {};
  return std::unexpected(waited ? Error{ErrorCode::end_of_stream} : waited.error());
}

void MqttClient::close() noexcept {
  ClientState& state = *state_;
  // A cancelled fiber closes, too.
  const Shield shield(Deadline::never());
  {
    const auto held = state.lock.lock();
    state.closing = true;
    state.to_send.notify_all();
    state.to_read.notify_all();
    state.taken.notify_all();
    state.all_sent.notify_all();
  }
  state.closes.cancel("the client is closed");
}

bool MqttClient::connected() const noexcept {
  return state_->is_connected.load(std::memory_order_relaxed);
}

std::size_t MqttClient::queued() const noexcept {
  auto held = state_->lock.lock();
  return held ? state_->queue.messages() : 0;
}

const ClientCounters& MqttClient::counters() const noexcept {
  return state_->counters;
}

std::size_t MqttClient::memory_bytes(const ClientOptions& options) noexcept {
  const auto buffer = [](std::size_t bytes) {
    std::size_t size = Buffer::kLeast;
    while (size < bytes) size *= 4;
    return size;
  };
  return sizeof(ClientState) + buffer(options.queue_bytes) + 2 * buffer(options.max_packet);
}

}  // namespace coir::mqtt
