// A wake that another worker has claimed runs beside the end of what it belongs to: before what that has kept is given back, or
// after. The linker has the test decide when it runs.

#include <CppUTest/TestHarness.h>
#include <coir/pressure.h>
#include <coir/resting_wait.h>
#include <netinet/in.h>

#include <atomic>
#include <utility>

#include "tests/unit/proxy/gateway.h"

namespace proxy_claimed_wakes_test {

using namespace coir::test;

namespace {

// Moment is when the claimed wake runs: as the upstream's descriptor is closed, or once all is given back.
enum class Moment { within, behind };

// Threads of the upstream close descriptors of their own meanwhile.
std::atomic<std::uint16_t> g_upstream{0};  // the port whose next disarmed wait counts as claimed; 0: none
coir::RestingWait* g_claimed = nullptr;
std::atomic<int> g_closed{-1};  // the claimed wait's descriptor, if its wake runs as that is closed
Moment g_moment;
std::size_t g_held_within = 0;  // by the ledger, once the wake has run within

std::uint16_t peer_port(int fd) {
  sockaddr_in peer{};
  socklen_t size = sizeof peer;
  return ::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) == 0 ? ntohs(peer.sin_port) : std::uint16_t{0};
}

void wake_claimed() {
  coir::RestingWait& record = *std::exchange(g_claimed, nullptr);
  record.wake(record);
}

}  // namespace

extern "C" {
int __real_close(int fd);
int __wrap_close(int fd) {
  int closed = fd;
  if (g_closed.compare_exchange_strong(closed, -1)) {
    wake_claimed();
    g_held_within = coir::account::streams.used();
  }
  return __real_close(fd);
}
bool __real__ZN4coir19disarm_resting_waitERNS_11RestingWaitE(coir::RestingWait& record);
bool __wrap__ZN4coir19disarm_resting_waitERNS_11RestingWaitE(coir::RestingWait& record) {
  const bool disarmed = __real__ZN4coir19disarm_resting_waitERNS_11RestingWaitE(record);
  if (!disarmed || g_upstream == 0 || peer_port(record.fd) != g_upstream) return disarmed;
  g_claimed = &record;
  if (g_moment == Moment::within) g_closed = record.fd;
  g_upstream = 0;
  return false;
}
}

TEST_GROUP_BASE(ProxyClaimedWakes, Gateway) {
  // evicts makes room where `resting` exchanges of this upstream rest, and checks what is held until the claimed wake has run.
  void evicts(std::string_view says, std::size_t (Forwarder::*resting)() const noexcept) {
    for (const Moment moment : {Moment::within, Moment::behind}) {
      std::atomic<std::uint16_t> port{0};
      through(
          [&](Peer& peer) {
            sockaddr_in own{};
            socklen_t size = sizeof own;
            ::getsockname(peer.fd(), reinterpret_cast<sockaddr*>(&own), &size);
            peer.hear();
            port = ntohs(own.sin_port);
            peer.say(says);
            peer.until_gone();
          },
          {}, {.evict_after = 0ms},
          [&](Server& server, const coir::Address& address, Stage& stage) {
            const std::size_t nothing = coir::account::streams.used();
            Client client(address);
            expect(client.say(kGet));
            expect(until([&] { return port != 0 && (stage.forwarder->*resting)() == 1 && server.gauges().active == 0; },
                         soon()));
            const std::size_t held = coir::account::streams.used();
            expect(held > nothing);
            g_moment = moment;
            g_held_within = 0;
            g_upstream = port.load();
            // It counts as silent from the clock's next tick on.
            expect(until(
                [&] {
                  coir::Pressure::make_room(coir::account::connections, SIZE_MAX);
                  return g_upstream == 0 || (stage.forwarder->*resting)() == 0;
                },
                soon()));
            // The reactor has claimed that wake itself, and nobody can say when.
            if (g_upstream.exchange(0) != 0) return;
            if (moment == Moment::behind && g_claimed != nullptr) {
              expect(coir::account::streams.used() == held);
              wake_claimed();
            } else {
              expect(g_held_within == held);
            }
            expect(coir::account::streams.used() == nothing && (stage.forwarder->*resting)() == 0);
          });
    }
  }
};

TEST(ProxyClaimedWakes, of_a_stream_frees_its_record_or_leaves_it_to_its_end) {
  evicts("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n",
         &Forwarder::streams);
}

TEST(ProxyClaimedWakes, of_a_waiting_exchange_frees_its_record_or_leaves_it_to_its_end) {
  evicts("", &Forwarder::waiting);
}

}  // namespace proxy_claimed_wakes_test
