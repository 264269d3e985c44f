#include "mcp/sessions/listeners.h"

#include <coir/format.h>
#include <coir/mcp/detail/account.h>
#include <coir/pressure.h>
#include <stdlib.h>
#include <string.h>

#include <memory>
#include <new>
#include <utility>

#include "base/turn.h"
#include "http/session/engine.h"
#include "socket/kernel.h"

namespace coir::mcp {
namespace {

using namespace std::chrono_literals;
using http::Connection;
using http::KeptMemory;

constexpr unsigned kBatch = 32;
constexpr unsigned kVanishedMs = 30'000;

std::size_t listener_bytes(const Listener& one) noexcept {
  return sizeof(Listener) + one.id_bytes;
}

}  // namespace

Listener* Listeners::make_listener(const MessageId& id, Session* session, Interests* interests) noexcept {
  const std::size_t bytes = sizeof(Listener) + id.text.size();
  if (!Pressure::charge(account::mcp, bytes)) return nullptr;
  void* const memory = malloc(bytes);
  if (memory == nullptr) {
    account::mcp.refund(bytes);
    return nullptr;
  }
  auto* const one = new (memory) Listener;
  one->session = session;
  one->interests = interests != nullptr ? interests : &one->own;
  one->id_is_text = id.is_text;
  one->id_number = id.number;
  one->id_bytes = static_cast<std::uint8_t>(id.text.size());
  if (!id.text.empty()) memcpy(one + 1, id.text.data(), id.text.size());
  if (interests == nullptr) enter(one->own);
  bool retires = false;
  {
    Locked locked(lock_);
    if (Listener* const earlier = one->interests->listener) earlier->retired = retires = true;
    one->interests->listener = one;
    one->retired = one->interests->left;
  }
  if (retires) news();
  return one;
}

void Listeners::drop_listener(Listener* one) noexcept {
  if (one->session == nullptr) leave(one->own);
  Watched* removed;
  {
    Locked locked(lock_);
    if (one->session != nullptr && one->interests->listener == one) one->interests->listener = nullptr;
    removed = let_go(*one);
  }
  forget(removed);
  Session* const session = one->session;
  const std::size_t bytes = listener_bytes(*one);
  std::destroy_at(one);
  free(one);
  account::mcp.refund(bytes);
  if (session != nullptr) release_session(context, session);
}

void Listeners::listen(http::Exchange& exchange, Listener* one) noexcept {
  Place place = admit(exchange, options_.most);
  if (!place) return drop_listener(one);
  http::ResponseHead& head = exchange.start(200);
  head.fixed("Content-Type: text/event-stream\r\nCache-Control: no-store\r\nX-Accel-Buffering: no\r\n");
  if (!open(exchange, Opening::content)) return drop_listener(one);
  if (!keep(exchange, reinterpret_cast<std::uintptr_t>(one), 0, std::move(place))) drop_listener(one);
}

void Listeners::dropped(std::uint64_t mark) noexcept {
  drop_listener(reinterpret_cast<Listener*>(static_cast<std::uintptr_t>(mark)));
}

void Listeners::begin(Connection& connection, std::string_view, KeptMemory memory) noexcept {
  Listener& one = listener(connection);
  connection.part = 0;
  kernel::give_up_after(connection.stream.fd(), kVanishedMs);
  std::string_view first;
  if (one.session == nullptr) {
    first = write_acknowledged(one, memory.out);
  } else {
    std::uint32_t number;
    {
      Locked locked(lock_);
      number = one.interests->number;
    }
    first = format(memory.out, "id: 0-", number, "\nretry: ", options_.retry.count(), "\ndata: \n\n");
  }
  if (first.empty() || !connection.stream.write(first, Deadline::after(1s))) return end(connection);
  send_news(connection, memory, false);
}

void Listeners::serve(Connection& connection, KeptMemory memory) noexcept {
  send_news(connection, memory, connection.awaits == Direction::readable);
}

void Listeners::send_news(Connection& connection, KeptMemory memory, bool readable) noexcept {
  Listener& one = listener(connection);
  for (;;) {
    if (readable && !drop_input(connection, memory.in)) return end(connection);
    if (!pick(one)) {
      if (rest(connection, Direction::readable, [&] { return has_news(one); })) return;
      readable = true;
      continue;
    }
    if (one.item == Listener::Item::none) return end(connection);  // retired
    const std::string_view event = write_news(one, memory.out);
    const iovec part = {const_cast<char*>(event.data()) + connection.part, event.size() - connection.part};
    const auto written = connection.stream.write_some({&part, 1}, Deadline::now());
    if (written) {
      connection.part += static_cast<std::uint32_t>(*written);
      if (connection.part < event.size()) continue;
      connection.part = 0;
      sent(one);
    } else if (written.error() != ErrorCode::timed_out) {
      return end(connection);
    } else if (rest(connection, Direction::writable, [&] { return one.retired; })) {
      return;
    }
  }
}

bool Listeners::pick(Listener& one) noexcept {
  Locked locked(lock_);
  if (one.item != Listener::Item::none) return true;
  if (one.retired) return true;
  Interests& interests = *one.interests;
  for (unsigned list = 0; list < kLists; ++list) {
    const auto bit = static_cast<ListBits>(1u << list);
    if ((interests.pending & bit) == 0) continue;
    interests.pending = static_cast<ListBits>(interests.pending & ~bit);
    one.number = interests.sent[list] = ++interests.number;
    one.item = static_cast<Listener::Item>(list + 1);
    return true;
  }
  for (Watched* each = interests.watched; each != nullptr; each = each->next) {
    if (!each->pending) continue;
    each->pending = 0;
    each->senders = static_cast<std::uint16_t>((each->senders + 1) & 0x3fff);
    one.number = each->sent = ++interests.number;
    one.current = each;
    one.item = Listener::Item::watched;
    return true;
  }
  return false;
}

void Listeners::sent(Listener& one) noexcept {
  Watched* removed;
  {
    Locked locked(lock_);
    removed = let_go(one);
    one.item = Listener::Item::none;
  }
  forget(removed);
}

void Listeners::end(Connection& connection) noexcept {
  Listener* const one = &listener(connection);
  close(connection);
  drop_listener(one);
}

// farewell ends the request in good order where nothing else is half said.
void Listeners::farewell(Connection& connection) noexcept {
  Listener* const one = &listener(connection);
  if (one->session == nullptr && connection.part == 0) {
    char room[640];
    const std::string_view last = write_last(*one, room);
    const iovec part = {const_cast<char*>(last.data()), last.size()};
    static_cast<void>(connection.stream.write_some({&part, 1}, Deadline::now()));
  }
  drop_listener(one);
}

// Others' news must not put keep-alives off: the time is that of the last ones.
Deadline Listeners::next_work() const noexcept {
  return keep_alive_at_.is_never() && options_.keep_alive > 0ms ? Deadline::after(options_.keep_alive) : keep_alive_at_;
}

void Listeners::work(bool) noexcept {
  send_to_all();
  const bool is_due = keep_alive_at_.passed();
  if (is_due) {
    send_keep_alives([](const Connection&, bool&) { return true; },
                     [this](Connection& each) { send_news(each, {.in = dropped_, .out = piece_}, false); },
                     [this](Connection& each) { end(each); });
  }
  if (options_.keep_alive > 0ms && (is_due || keep_alive_at_.is_never())) {
    keep_alive_at_ = Deadline::after(options_.keep_alive);
  }
}

void Listeners::send_to_all() noexcept {
  const KeptMemory memory = {.in = dropped_, .out = piece_};
  unsigned served = 0;
  Slice slice;
  while (Connection* const next =
             take(Direction::readable, [this](const Connection& each, bool&) { return has_news(listener(each)); })) {
    send_news(*next, memory, false);
    if (++served % kBatch == 0) slice.go_on();
  }
  while (Connection* const retired =
             take(Direction::writable, [](const Connection& each, bool&) { return listener(each).retired; })) {
    end(*retired);
  }
}

void Listeners::attach_to(http::Exchange& exchange) noexcept {
  if (engine() == nullptr) static_cast<void>(attach(exchange));
}

void Listeners::stopping() noexcept {
  stopping_source_.cancel("the server stops");
  Hub::stopping();
}

}  // namespace coir::mcp
