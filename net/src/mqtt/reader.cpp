// How an MqttClient reads the broker's packets. Declared in mqtt/client_state.h.
#include <string.h>

#include <algorithm>
#include <bit>

#include "mqtt/client_state.h"
#include "socket/kernel.h"

namespace coir::mqtt {

Error ClientState::read_all() noexcept {
  for (;;) {
    const auto packet = next_packet(Deadline::never());
    if (!packet) return packet.error();
    const auto handled = handle(*packet);
    if (handled) continue;
    // The sender takes our leave. The program may still look at what lies in the buffer.
    if (handled.error() == ErrorCode::closed) drain();
    return handled.error();
  }
}

// drain reads until the broker hangs up.
void ClientState::drain() noexcept {
  char nothing[64];
  const Deadline deadline = Deadline::after(std::chrono::seconds(1));
  while (stream.read(nothing, deadline)) {
  }
}

// next_packet returns the next packet, whose views are valid until it is called again. Errors: those of Stream;
// protocol.
std::expected<Packet, Error> ClientState::next_packet(Deadline deadline) noexcept {
  for (;;) {
    const std::size_t left_out = std::min(skipped, have - begin);
    begin += left_out;
    skipped -= left_out;
    if (skipped == 0) {
      const ParsedPacket parsed = parse_packet({in.data() + begin, have - begin}, options.max_packet);
      if (parsed.state == PacketState::malformed) return std::unexpected(Error{ErrorCode::protocol});
      if (parsed.state == PacketState::packet) {
        begin += parsed.size;
        return parsed.packet;
      }
      if (parsed.state == PacketState::too_large) {
        skipped = parsed.size;
        counters.too_large.fetch_add(1, std::memory_order_relaxed);
        if (parsed.packet.qos == 0) continue;
        const PacketType type = parsed.packet.qos == 1 ? PacketType::puback : PacketType::pubrec;
        if (auto replied = reply(type, parsed.packet.id); !replied) return std::unexpected(replied.error());
        continue;
      }
    }
    if (begin != 0) memmove(in.data(), in.data() + begin, have - begin);
    have -= std::exchange(begin, 0);
    if (std::exchange(waits_for_answers, false)) kernel::acknowledge_now(stream.fd());
    const auto got = stream.read(in.bytes().subspan(have), deadline);
    if (!got) return std::unexpected(got.error());
    have += *got;
    heard_ns.store(monotonic_ns(), std::memory_order_relaxed);
  }
}

std::expected<void, Error> ClientState::handle(const Packet& packet) noexcept {
  switch (packet.type) {
    case PacketType::publish:
      return hand_over(packet);
    case PacketType::puback:
      return take_answers(packet.id);
    case PacketType::pubrel:
      return reply(PacketType::pubcomp, packet.id);
    case PacketType::suback:
      return take_grants(packet);
    case PacketType::pingresp: {
      auto held = lock.lock();
      if (!held) return std::unexpected(held.error());
      pinged = false;
      return {};
    }
    default:
      return std::unexpected(Error{ErrorCode::protocol});
  }
}

// take_grants reads the broker's answer to the subscriptions that it was asked for, one code each. A refused subscription is
// requested again after a pause. Errors: protocol (not so many codes), cancelled, timed_out (a scope around it).
std::expected<void, Error> ClientState::take_grants(const Packet& packet) noexcept {
  auto held = lock.lock();
  if (!held) return std::unexpected(held.error());
  std::uint64_t refused = 0, left = asked;
  for (const char code : packet.payload) {
    if (left == 0) return std::unexpected(Error{ErrorCode::protocol});
    const std::uint64_t first = left & -left;
    if (static_cast<unsigned char>(code) == 0x80) refused |= first;
    left ^= first;
  }
  if (left != 0) return std::unexpected(Error{ErrorCode::protocol});
  lacking ^= asked ^ refused;
  asked = 0;
  const auto pause = refusals.after(refused == 0, {options.pause, options.longest_pause}, {});
  asks_ns = monotonic_ns() + ReconnectPause::spread(pause).count();
  to_send.notify_one();
  held->unlock();
  for (; refused != 0; refused &= refused - 1) {
    counters.refused_filters.fetch_add(1, std::memory_order_relaxed);
    if (!options.on_refused) continue;
    options.on_refused(options.subscriptions[static_cast<unsigned>(std::countr_zero(refused))].filter);
  }
  return {};
}

// take_answers takes a PUBACK and those that came with it, so that the sender fills the window again in one write.
// Errors: cancelled, timed_out (a scope around it).
std::expected<void, Error> ClientState::take_answers(std::uint16_t id) noexcept {
  auto held = lock.lock();
  if (!held) return std::unexpected(held.error());
  for (;;) {
    answered(id);
    const ParsedPacket next = parse_packet({in.data() + begin, have - begin}, options.max_packet);
    if (next.state != PacketState::packet || next.packet.type != PacketType::puback) break;
    begin += next.size;
    id = next.packet.id;
  }
  waits_for_answers = queue.in_flight() != 0 && queue.is_all_sent();
  to_send.notify_one();
  if (queue.empty()) all_sent.notify_all();
  return {};
}

// answered is called with the mutex held. An answer to nothing is of a message that was dropped.
void ClientState::answered(std::uint16_t id) noexcept {
  if (!queue.acknowledge(id)) return;
  counters.acknowledged.fetch_add(1, std::memory_order_relaxed);
  if (file.is_open() && !file.remove(id, queue)) counters.queue_file_errors.fetch_add(1, std::memory_order_relaxed);
}

// is_asked_for tells a message of a subscription from one that a kept session has left of another program's, or of this
// one's before it was set up anew.
bool ClientState::is_asked_for(std::string_view topic) const noexcept {
  return std::ranges::any_of(options.subscriptions,
                             [topic](const Subscription& each) { return matches(each.filter, topic); });
}

// hand_over waits until the program is done with a message, and then acknowledges it. Errors: closed (the connection is
// lost, or close was called), cancelled, timed_out (a scope around it).
std::expected<void, Error> ClientState::hand_over(const Packet& packet) noexcept {
  if (!is_asked_for(packet.topic)) {
    counters.unasked.fetch_add(1, std::memory_order_relaxed);
  } else {
    auto held = lock.lock();
    if (!held) return std::unexpected(held.error());
    offered = packet;
    handing = Handing::offered;
    to_read.notify_one();
    const auto waited = taken.wait_until(
        *held, [this] { return handing == Handing::nothing || closing || (handing == Handing::offered && lost); });
    const bool done = handing == Handing::nothing;
    if (handing == Handing::offered) handing = Handing::nothing;
    if (!done) return std::unexpected(waited ? Error{ErrorCode::closed} : waited.error());
    // Until now no answer was read.
    pinged_ns = asked_ns = monotonic_ns();
    to_send.notify_one();
  }
  if (packet.qos == 0) return {};
  return reply(packet.qos == 1 ? PacketType::puback : PacketType::pubrec, packet.id);
}

std::expected<void, Error> ClientState::reply(PacketType type, std::uint16_t id) noexcept {
  auto held = lock.lock();
  if (!held) return std::unexpected(held.error());
  auto room = taken.wait_until(*held, [this] { return reply_count < kMostReplies || lost || closing; });
  if (!room) return room;
  if (reply_count == kMostReplies) return std::unexpected(Error{ErrorCode::closed});
  replies[reply_count++] = {type, id};
  to_send.notify_one();
  return {};
}

}  // namespace coir::mqtt
