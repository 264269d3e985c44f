// Which peers of a full socket are stuck.

#include <CppUTest/TestHarness.h>
#include <sys/socket.h>

#include "net/src/socket/slow_peer.h"
#include "tests/support/tls_pair.h"

namespace slow_peer_test {

using coir::SlowPeer;
using namespace coir::test;

TEST_GROUP(SlowPeer) {
  SocketPair pair;
  const int fd = pair.server.fd();
  char bytes[8192];

  void fill() {
    while (coir::kernel::send(fd, bytes, sizeof bytes, 0) > 0) {
    }
  }
  void take() { CHECK_EQUAL(ssize_t{sizeof bytes}, coir::kernel::receive(pair.client.fd(), bytes, sizeof bytes)); }
};

TEST(SlowPeer, is_stuck_when_it_has_taken_nothing_in_two_halves) {
  fill();
  SlowPeer peer(fd);
  CHECK_FALSE(peer.is_stuck(fd));
  CHECK_TRUE(peer.is_stuck(fd));
}

TEST(SlowPeer, is_not_stuck_while_it_takes_something_in_each_second_half) {
  fill();
  if (coir::kernel::unsent(fd) <= 0) return;  // an emulator that does not tell
  SlowPeer peer(fd);
  for (int times = 0; times < 3; ++times) {
    CHECK_FALSE(peer.is_stuck(fd));
    take();
    CHECK_FALSE(peer.is_stuck(fd));
  }
  CHECK_FALSE(peer.is_stuck(fd));
  CHECK_TRUE(peer.is_stuck(fd));
}

// A TLS record goes out in parts, of which its writer does not hear: room that was filled again counts.
TEST(SlowPeer, is_not_stuck_where_more_was_sent) {
  SlowPeer peer(fd);
  CHECK_FALSE(peer.is_stuck(fd));
  fill();
  CHECK_EQUAL(coir::kernel::unsent(fd) < 0, peer.is_stuck(fd));
}

// A socket without the question: the clock alone decides.
TEST(SlowPeer, is_stuck_in_time_where_the_kernel_does_not_tell) {
  SlowPeer peer(-1);
  CHECK_FALSE(peer.is_stuck(-1));
  CHECK_TRUE(peer.is_stuck(-1));
}

}  // namespace slow_peer_test
