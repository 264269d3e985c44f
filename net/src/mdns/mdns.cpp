#include <coir/net/mdns.h>

#include <coir/net/datagram.h>
#include <coir/sleep.h>
#include <coir/wait.h>
#include <stdlib.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <new>

#include "base/buffer_pool.h"
#include "base/randomness.h"
#include "base/turn.h"
#include "mdns/links.h"
#include "mdns/responder.h"

namespace coir {

constinit Account account::mdns("mdns");

namespace mdns {
namespace {

using namespace std::chrono_literals;

// A received message has at most 9,000 bytes (RFC 6762, 17); the rest of a buffer is for the answer.
constexpr std::size_t kBufferBytes = 16 * 1024, kMostReceived = 9000;
constexpr unsigned kMostAtOnce = 32;  // messages between two looks at what is due
constexpr auto kScanEvery = 5s;       // where the kernel does not tell of changes
constexpr auto kMemoryWait = 200ms;   // for a buffer
constexpr auto kSendWait = 100ms;     // for room in a socket: what is late is not worth sending

std::int64_t milliseconds_now() noexcept {
  return monotonic_ns() / 1'000'000;
}

// Speaker is what one call of serve holds.
class Speaker {
 public:
  explicit Speaker(const Options& options) noexcept
      : responder_({[this](auto... of_message) { send(of_message...); }, options.named}, seed()) {}
  ~Speaker() {
    if (watch_ >= 0) close_fd(watch_);
  }

  std::expected<void, Error> open(const Options& options) noexcept;
  std::expected<void, Error> run(Deadline deadline) noexcept;
  void say_goodbye() noexcept;

 private:
  static std::uint32_t seed() noexcept {
    char bytes[sizeof(std::uint32_t)];
    fill_with_randomness(bytes);
    return std::bit_cast<std::uint32_t>(bytes);
  }
  void send(std::span<const unsigned char> message, std::uint32_t interface, bool ipv6, const Address* to) noexcept;
  void scan(std::span<char> room) noexcept;
  bool drain(DatagramSocket& socket, Buffer& buffer) noexcept;

  Responder responder_;
  DatagramSocket sockets_[2];  // IPv4, IPv6
  Address groups_[2];
  const Datagram* asked_ = nullptr;  // what is being answered
  int watch_ = -1;
  Deadline scan_at_ = Deadline::now();
  Interfaces interfaces_;
  std::uint32_t joined_[kMostInterfaces] = {};  // whose groups the sockets are in; 0: none
};

static_assert(sizeof(Speaker) <= kServeBytes);

std::expected<void, Error> Speaker::open(const Options& options) noexcept {
  if (responder_.publish(options) != nullptr) return std::unexpected(ErrorCode::invalid);
  static constexpr std::string_view kHere[] = {"0.0.0.0:5353", "[::]:5353"};
  static constexpr std::string_view kGroups[] = {"224.0.0.251:5353", "[ff02::fb]:5353"};
  Error error(ErrorCode::unsupported);
  for (std::size_t i = 0; i < 2; ++i) {
    groups_[i] = *Address::parse(kGroups[i]);
    auto socket = DatagramSocket::bind(*Address::parse(kHere[i]), {.share = true});
    if (!socket) {
      error = socket.error();
      continue;
    }
    static_cast<void>(socket->set_multicast({.hops = 255}));
    static_cast<void>(socket->set_hops(255));
    sockets_[i] = std::move(*socket);
  }
  if (!sockets_[0].is_open() && !sockets_[1].is_open()) return std::unexpected(error);
  watch_ = watch_links();
  return {};
}

void Speaker::send(std::span<const unsigned char> message, std::uint32_t interface, bool ipv6,
                   const Address* to) noexcept {
  DatagramSocket& socket = sockets_[ipv6];
  if (!socket.is_open()) return;
  const std::string_view bytes(reinterpret_cast<const char*>(message.data()), message.size());
  const Deadline deadline = Deadline::after(kSendWait);
  // A message that is lost, as on a link that went down, is requested again.
  if (to != nullptr && asked_ != nullptr) {
    static_cast<void>(socket.answer(bytes, *asked_, deadline));
  } else {
    LocalEnd from;
    from.interface = interface;
    static_cast<void>(socket.send_to(bytes, groups_[ipv6], from, deadline));
  }
}

void Speaker::scan(std::span<char> room) noexcept {
  scan_at_ = watch_ >= 0 ? Deadline::never() : Deadline::after(kScanEvery);
  if (!scan_interfaces(interfaces_, room)) {
    scan_at_ = Deadline::after(kScanEvery);
    return;
  }
  // The kernel keeps the membership of an interface that is gone, and allows a socket twenty.
  for (std::uint32_t& index : joined_) {
    if (index == 0 || interfaces_.find(index) != nullptr) continue;
    for (std::size_t i = 0; i < 2; ++i) {
      if (sockets_[i].is_open()) static_cast<void>(sockets_[i].leave(groups_[i], index));
    }
    index = 0;
  }
  for (const Interface& each : interfaces_.all()) {
    if (std::ranges::find(joined_, each.index) == std::end(joined_)) *std::ranges::find(joined_, 0u) = each.index;
    for (std::size_t i = 0; i < 2; ++i) {
      if (sockets_[i].is_open() && each.has(i == 0 ? 4 : 16))
        static_cast<void>(sockets_[i].join(groups_[i], each.index));
    }
  }
  responder_.set_interfaces(interfaces_, milliseconds_now());
}

// drain takes what a socket has. False: there is more.
bool Speaker::drain(DatagramSocket& socket, Buffer& buffer) noexcept {
  if (!socket.is_open()) return true;
  const std::span<char> into = buffer.bytes().first(kMostReceived);
  const std::span<unsigned char> room(reinterpret_cast<unsigned char*>(buffer.data()) + kMostReceived,
                                      buffer.size() - kMostReceived);
  for (unsigned i = 0; i < kMostAtOnce; ++i) {
    const auto got = socket.receive_from(into, Deadline::now());
    if (!got) return true;
    if (got->truncated() || got->peer.port() == 0) continue;
    asked_ = &*got;
    responder_.receive({.bytes = {reinterpret_cast<const unsigned char*>(got->bytes.data()), got->bytes.size()},
                        .peer = got->peer,
                        .interface = got->local.interface,
                        .group = got->local.group},
                       room, milliseconds_now());
    asked_ = nullptr;
  }
  return false;
}

std::expected<void, Error> Speaker::run(Deadline deadline) noexcept {
  bool waits = false;
  for (;;) {
    if (waits) {
      const std::int64_t next = responder_.next();
      const Deadline due = next == Responder::kNever ? Deadline::never() : Deadline::at_ns(next * 1'000'000);
      const Awaited awaited[] = {{sockets_[0].fd()}, {sockets_[1].fd()}, {watch_}};
      const auto waited = wait_several(awaited, std::min({deadline, due, scan_at_}));
      if (!waited && !waited.error().is_late()) return waited;
    }
    if (deadline.passed()) return std::unexpected(ErrorCode::timed_out);
    auto buffer = Buffer::take(kBufferBytes);
    if (!buffer) {
      if (auto slept = sleep_until(std::min(deadline, Deadline::after(kMemoryWait))); !slept) return slept;
      waits = false;
      continue;
    }
    if ((watch_ >= 0 && links_changed(watch_, buffer->bytes())) || scan_at_.passed()) scan(buffer->bytes());
    waits = drain(sockets_[0], *buffer);
    waits &= drain(sockets_[1], *buffer);
    if (!waits) let_others_run();
    responder_.tick({reinterpret_cast<unsigned char*>(buffer->data()), buffer->size()}, milliseconds_now());
  }
}

void Speaker::say_goodbye() noexcept {
  auto buffer = Buffer::take(Buffer::kLeast);
  if (buffer) responder_.stop({reinterpret_cast<unsigned char*>(buffer->data()), buffer->size()});
}

}  // namespace

std::expected<void, Error> serve(const Options& options, Deadline deadline) noexcept {
  if (!account::mdns.charge(sizeof(Speaker))) return std::unexpected(ErrorCode::no_memory);
  void* const memory = malloc(sizeof(Speaker));
  std::expected<void, Error> done = std::unexpected(ErrorCode::no_memory);
  if (memory != nullptr) {
    auto* const speaker = new (memory) Speaker(options);
    done = speaker->open(options);
    if (done) {
      done = speaker->run(deadline);
      speaker->say_goodbye();
    }
    std::destroy_at(speaker);
    free(memory);
  }
  account::mdns.refund(sizeof(Speaker));
  return done;
}

}  // namespace mdns
}  // namespace coir
