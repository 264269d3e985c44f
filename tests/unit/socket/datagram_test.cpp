// DatagramSocket keeps its promises on plain threads, on fibers and in builds without them.

#include <CppUTest/TestHarness.h>
#include <coir/net/datagram.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/support/both_sides.h"
#include "tests/support/child.h"
#include "tests/support/folder.h"
#include "tests/support/pipe.h"
#include "tests/support/until.h"
#include "tests/support/without_syscall.h"

namespace datagram_test {

using namespace std::chrono_literals;
using coir::Address;
using coir::Datagram;
using coir::DatagramBatch;
using coir::DatagramSocket;
using coir::Deadline;
using coir::Error;
using coir::ErrorCode;
using coir::LocalEnd;

namespace {

Deadline soon() {
  return Deadline::after(60s);
}

Address address(const char* text) {
  return *Address::parse(text);
}

// all_at is a port of every host of the loopback's subnet.
Address all_at(std::uint16_t port) {
  return address("127.255.255.255:1").with_port(port);
}

bool is(const std::expected<Datagram, Error>& datagram, std::string_view bytes) {
  return datagram && !datagram->truncated() && datagram->bytes == bytes;
}

bool fails(const auto& outcome, Error error) {
  return !outcome && outcome.error() == error;
}

bool fails(const auto& outcome, int number) {
  return !outcome && outcome.error() == ErrorCode::system && outcome.error().sys == number;
}

// Too large for a fiber's stack.
DatagramBatch g_batch;
char g_buffers[DatagramBatch::kMost][16];
constinit char g_large[70'000] = {};

}  // namespace

TEST_GROUP_BASE(Datagram, coir::test::BothSides) {
  coir::test::Folder folder;
  char text[200], other_text[200];

  void setup() override {
    snprintf(text, sizeof text, "unix:%s", folder.at("one"));
    snprintf(other_text, sizeof other_text, "unix:%s", folder.at("two"));
  }
  bool exists(const char* at) const {
    struct stat info;
    return lstat(at + 5, &info) == 0;
  }

  DatagramSocket bound(const char* at, DatagramSocket::Options options = {}) {
    auto socket = DatagramSocket::bind(address(at), options);
    expect(socket.has_value());
    return socket ? std::move(*socket) : DatagramSocket();
  }
  Address place(const DatagramSocket& socket) {
    const auto at = socket.local_address();
    expect(at.has_value());
    return at ? *at : Address();
  }
  DatagramSocket connected(const Address& to) {
    auto socket = DatagramSocket::connect(to);
    expect(socket.has_value());
    return socket ? std::move(*socket) : DatagramSocket();
  }
  void meets(const char* here, const char* there) {
    DatagramSocket one = bound(here), two = bound(there);
    expect(one.send_to("question", place(two), soon()).has_value());
    char buffer[32];
    const auto question = two.receive_from(buffer, soon());
    expect(is(question, "question") && question->bytes.data() == buffer);
    expect(question && two.answer("reply", *question, soon()).has_value());
    const auto reply = one.receive_from(buffer, soon());
    expect(is(reply, "reply"));
    char names[2][Address::kMaxText];
    expect(reply && reply->peer.format(names[0]) == place(two).format(names[1]));
  }
  // refused_port is one that was open a moment ago.
  Address refused_port() {
    DatagramSocket gone = bound("127.0.0.1:0");
    return place(gone);
  }
};

TEST(Datagram, goes_there_and_back) {
  both_sides([&] {
    meets("127.0.0.1:0", "127.0.0.1:0");
    meets("[::1]:0", "[::1]:0");
    meets(text, other_text);
  });
}

TEST(Datagram, a_datagram_that_does_not_fit_is_an_error) {
  both_sides([&] {
    const char* const places[] = {"127.0.0.1:0", "[::1]:0", text};
    for (const char* at : places) {
      DatagramSocket socket = bound(at), sender = connected(place(socket));
      expect(sender.send("0123456789", soon()).has_value());
      expect(sender.send("next", soon()).has_value());
      char buffer[4];
      const auto cut = socket.receive_from(buffer, soon());
      expect(cut && cut->truncated() && cut->bytes == "0123" && cut->lost_bytes == 6);
      expect(is(socket.receive_from(buffer, soon()), "next"));
    }
  });
}

TEST(Datagram, an_empty_one_is_no_end) {
  both_sides([&] {
    const char* const places[] = {"127.0.0.1:0", text};
    for (const char* at : places) {
      DatagramSocket socket = bound(at), sender = connected(place(socket));
      expect(sender.send("", soon()).has_value());
      expect(sender.send("next", soon()).has_value());
      char buffer[4];
      expect(is(socket.receive_from(buffer, soon()), ""));
      expect(is(socket.receive_from(buffer, soon()), "next"));
    }
  });
}

TEST(Datagram, a_connected_socket_is_told_of_a_closed_port) {
  both_sides([&] {
    DatagramSocket socket = connected(refused_port());
    expect(socket.send("anybody?", soon()).has_value());
    char buffer[4];
    expect(fails(socket.receive_from(buffer, soon()), ECONNREFUSED));
    // Once told it is forgotten.
    expect(socket.send("anybody?", soon()).has_value());
    expect(fails(socket.send("anybody?", soon()), ECONNREFUSED));
  });
}

TEST(Datagram, a_closed_port_is_no_matter_of_other_peers) {
  both_sides([&] {
    DatagramSocket socket = bound("127.0.0.1:0"), peer = bound("127.0.0.1:0");
    const Address refused = refused_port();
    char buffer[8];
    for (int i = 0; i < 3; ++i) {
      expect(socket.send_to("anybody?", refused, soon()).has_value());
      expect(socket.send_to("you", place(peer), soon()).has_value());
      expect(is(peer.receive_from(buffer, soon()), "you"));
      expect(peer.send_to("yes", place(socket), soon()).has_value());
      expect(is(socket.receive_from(buffer, soon()), "yes"));
    }
  });
}

// The client takes nothing but from the address that it asked.
TEST(Datagram, the_answer_comes_from_the_address_that_was_asked) {
  const unsigned loopback = if_nametoindex("lo");
  both_sides([&] {
    for (const char* at : {"*:0", "0.0.0.0:0"}) {
      DatagramSocket server = bound(at);
      char asked[32];
      snprintf(asked, sizeof asked, "127.0.0.2:%d", place(server).port());
      DatagramSocket client = connected(address(asked));
      expect(client.send("question", soon()).has_value());
      char buffer[16];
      const auto question = server.receive_from(buffer, soon());
      expect(is(question, "question"));
      if (!question) return;
      expect(question->local.interface == loopback && !question->local.group);
      const unsigned char* const local = question->local.address + (at[0] == '*' ? 12 : 0);
      expect(memcmp(local, "\x7f\0\0\x02", 4) == 0);
      // The kernel's choice is another address.
      expect(server.send_to("stray", question->peer, soon()).has_value());
      expect(server.answer("reply", *question, soon()).has_value());
      expect(is(client.receive_from(buffer, soon()), "reply"));
    }
  });
}

// The subnet's broadcast address is no address of this machine, so no answer may leave from it.
TEST(Datagram, what_was_sent_to_all_is_answered_by_one) {
  const unsigned loopback = if_nametoindex("lo");
  both_sides([&] {
    for (const char* at : {"*:0", "0.0.0.0:0"}) {
      DatagramSocket server = bound(at), client = bound("127.0.0.1:0", {.broadcast = true});
      const unsigned char* const own = reinterpret_cast<const unsigned char*>("\x7f\0\0\x01");
      const auto is_to_all = [&](const Datagram& datagram) {
        const LocalEnd& local = datagram.local;
        return local.group && local.interface == loopback &&
               memcmp(local.address + (at[0] == '*' ? 12 : 0), own, 4) == 0;
      };
      const Address all = all_at(place(server).port());
      expect(client.send_to("anybody?", all, soon()).has_value());
      expect(client.send_to("batch", all, soon()).has_value());
      char buffer[16];
      const auto question = server.receive_from(buffer, soon());
      expect(is(question, "anybody?") && is_to_all(*question));
      if (!question || !server.answer("here", *question, soon())) return expect(false);
      expect(is(client.receive_from(buffer, soon()), "here"));
      g_batch.clear();
      g_batch.add(std::span<char>(g_buffers[0]));
      expect(server.receive_batch(g_batch, soon()) == 1u && g_batch[0].bytes == "batch" && is_to_all(g_batch[0]));
    }
  });
}

TEST(Datagram, a_connected_socket_sends_to_all_only_if_it_asks) {
  both_sides([&] {
    DatagramSocket server = bound("0.0.0.0:0");
    const Address all = all_at(place(server).port());
    expect(fails(DatagramSocket::connect(all), EACCES));
    auto client = DatagramSocket::connect(all, {.broadcast = true});
    expect(client && client->send("wake up", soon()));
    char buffer[8];
    expect(is(server.receive_from(buffer, soon()), "wake up"));
  });
}

TEST(Datagram, a_local_end_that_is_not_there_is_refused) {
  both_sides([&] {
    DatagramSocket socket = bound("127.0.0.1:0");
    const LocalEnd elsewhere = {.address = {203, 0, 113, 9}};
    expect(!socket.send_to("x", place(socket), elsewhere, soon()));
    expect(fails(socket.send_to("x", place(socket), {.interface = 0x7fffffff}, soon()), ErrorCode::invalid));
    expect(fails(socket.send("x", soon()), ErrorCode::invalid));
  });
}

TEST(Datagram, too_long_is_limit) {
  both_sides([&] {
    DatagramSocket socket = bound("127.0.0.1:0");
    expect(fails(socket.send_to({g_large, sizeof g_large}, place(socket), soon()), ErrorCode::limit));
  });
}

TEST(Datagram, a_deadline_ends_the_wait) {
  both_sides([&] {
    DatagramSocket socket = bound("127.0.0.1:0");
    char buffer[4];
    expect(fails(socket.receive_from(buffer, Deadline::now()), ErrorCode::timed_out));
    expect(fails(socket.receive_from(buffer, Deadline::after(1ms)), ErrorCode::timed_out));
  });
}

TEST(Datagram, a_closed_socket_says_so) {
  both_sides([&] {
    DatagramSocket socket = bound("127.0.0.1:0");
    const Address at = place(socket);
    socket.close();
    socket.close();
    char buffer[4];
    g_batch.clear();
    g_batch.add(std::span<char>(buffer));
    expect(!socket.is_open() && socket.fd() == -1);
    expect(fails(socket.receive_from(buffer), ErrorCode::closed));
    expect(fails(socket.receive_batch(g_batch), ErrorCode::closed));
    expect(fails(socket.send_to("x", at), ErrorCode::closed));
    expect(fails(socket.connect_to(at), ErrorCode::closed));
    expect(fails(socket.set_hops(3), ErrorCode::closed));
    expect(fails(socket.local_address(), ErrorCode::closed));
  });
}

TEST(Datagram, a_connected_socket_hears_its_peer_alone) {
  both_sides([&] {
    DatagramSocket socket = bound("127.0.0.1:0"), peer = bound("127.0.0.1:0"), stranger = bound("127.0.0.1:0");
    expect(socket.connect_to(place(peer)).has_value());
    expect(stranger.send_to("forged", place(socket), soon()).has_value());
    expect(peer.send_to("right", place(socket), soon()).has_value());
    char buffer[8];
    expect(is(socket.receive_from(buffer, soon()), "right"));
    expect(fails(socket.receive_from(buffer, Deadline::now()), ErrorCode::timed_out));
  });
}

TEST(Datagram, a_port_in_use_is_shared_only_if_both_ask) {
  both_sides([&] {
    DatagramSocket alone = bound("127.0.0.1:0");
    expect(fails(DatagramSocket::bind(place(alone)), EADDRINUSE));
    expect(fails(DatagramSocket::bind(place(alone), {.share = true}), EADDRINUSE));
    DatagramSocket shared = bound("127.0.0.1:0", {.share = true});
    expect(DatagramSocket::bind(place(shared), {.share = true}).has_value());
  });
}

TEST(Datagram, a_batch_is_received_and_answered_by_one_call) {
  both_sides([&] {
    DatagramSocket server = bound("*:0"), client = bound("127.0.0.1:0");
    char asked[32];
    snprintf(asked, sizeof asked, "127.0.0.2:%d", place(server).port());
    const Address at = address(asked);
    // More than fits into one, each of another length.
    g_batch.clear();
    constexpr std::string_view kText = "0123456789abcdef";
    while (g_batch.add(kText.substr(0, g_batch.size()), at)) {
    }
    expect(g_batch.size() == DatagramBatch::kMost);
    std::size_t sent = 0;
    while (sent < g_batch.size()) {
      const auto some = client.send_batch(g_batch, sent, soon());
      if (!some) return expect(false);
      sent += *some;
    }
    expect(client.send_to(kText, at, soon()).has_value());

    g_batch.clear();
    for (auto& buffer : g_buffers) {
      expect(g_batch.add(std::span<char>(buffer, 8)));
      expect(!g_batch.add("x", at));
    }
    expect(!g_batch.add(std::span<char>(g_large)));
    const auto got = server.receive_batch(g_batch, soon());
    expect(got == DatagramBatch::kMost);
    for (std::size_t i = 0; got && i < *got; ++i) {
      const Datagram one = g_batch[i];
      expect(one.bytes == kText.substr(0, std::min<std::size_t>(i, 8)) && one.lost_bytes == (i < 8 ? 0 : i - 8));
      expect(one.peer.port() == place(client).port() && memcmp(one.local.address + 12, "\x7f\0\0\x02", 4) == 0);
    }
    const auto rest = server.receive_batch(g_batch, soon());
    expect(rest == 1u && g_batch[0].lost_bytes == 8);

    // From the address that was asked.
    const Datagram last = g_batch[0];
    g_batch.clear();
    expect(g_batch.add("one", last.peer, last.local) && g_batch.add("two", last.peer, last.local));
    expect(!g_batch.add(std::span<char>(g_large)));
    expect(client.connect_to(at).has_value());
    expect(server.send_batch(g_batch, 0, soon()) == 2u);
    char buffer[8];
    expect(is(client.receive_from(buffer, soon()), "one"));
    expect(is(client.receive_from(buffer, soon()), "two"));
  });
}

TEST(Datagram, a_batch_stops_at_the_one_that_cannot_be_sent) {
  both_sides([&] {
    DatagramSocket socket = bound("127.0.0.1:0");
    const Address here = place(socket);
    g_batch.clear();
    g_batch.add("one", here);
    g_batch.add({g_large, sizeof g_large}, here);
    g_batch.add("three", here);
    expect(socket.send_batch(g_batch, 0, soon()) == 1u);
    expect(fails(socket.send_batch(g_batch, 1, soon()), ErrorCode::limit));
    expect(socket.send_batch(g_batch, 2, soon()) == 1u);
    expect(fails(socket.send_batch(g_batch, 3, soon()), ErrorCode::invalid));
    expect(fails(socket.receive_batch(g_batch, soon()), ErrorCode::invalid));
    g_batch.clear();
    expect(fails(socket.receive_batch(g_batch, soon()), ErrorCode::invalid));
    g_batch.add(std::span<char>(g_buffers[0]));
    expect(fails(socket.send_batch(g_batch, 0, soon()), ErrorCode::invalid));
    expect(socket.receive_batch(g_batch, soon()) == 1u && g_batch[0].bytes == "one");
    expect(socket.receive_batch(g_batch, soon()) == 1u && g_batch[0].bytes == "three");
    expect(fails(socket.receive_batch(g_batch, Deadline::now()), ErrorCode::timed_out));
  });
}

TEST(Datagram, a_full_queue_of_a_unix_peer_is_told_or_waited_for) {
  both_sides([&] {
    DatagramSocket server = bound(text), client = bound(other_text);
    std::expected<void, Error> sent;
    do {
      sent = client.send_to("x", place(server), soon());
    } while (sent);
    expect(sent.error() == ErrorCode::queue_full);
    expect(client.connect_to(place(server)).has_value());
    expect(fails(client.send("y", Deadline::now()), ErrorCode::timed_out));
    char buffer[4];
    expect(is(server.receive_from(buffer, soon()), "x"));
    expect(client.send("y", soon()).has_value());
  });
}

TEST(Datagram, the_path_of_the_dead_is_taken_over_and_of_the_living_kept) {
  both_sides([&] {
    {
      DatagramSocket first = bound(text);
      expect(fails(DatagramSocket::bind(address(text)), EADDRINUSE));
      expect(exists(text));
    }
    expect(!exists(text));
    const int dead = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    expect(bind(dead, address(text).get(), address(text).length()) == 0);
    close(dead);
    expect(exists(text));
    expect(fails(DatagramSocket::connect(address(text)), ECONNREFUSED));
    expect(bound(text).is_open());
    expect(fails(DatagramSocket::connect(address(text)), ErrorCode::not_found));
  });
}

TEST(Datagram, descriptors_of_a_unix_peer_do_not_come_in) {
  const int before = coir::test::count_fds();
  {
    DatagramSocket server = bound(text), client = connected(place(server));
    alignas(cmsghdr) unsigned char control[CMSG_SPACE(sizeof(int))] = {};
    iovec part = {const_cast<char*>("x"), 1};
    msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* const passed = CMSG_FIRSTHDR(&message);
    passed->cmsg_level = SOL_SOCKET;
    passed->cmsg_type = SCM_RIGHTS;
    passed->cmsg_len = CMSG_LEN(sizeof(int));
    const int given = STDIN_FILENO;
    memcpy(CMSG_DATA(passed), &given, sizeof given);
    for (int i = 0; i < 2; ++i) CHECK_EQUAL(1, sendmsg(client.fd(), &message, 0));
    char buffer[4];
    CHECK_TRUE(is(server.receive_from(buffer, soon()), "x"));
    g_batch.clear();
    g_batch.add(std::span<char>(buffer));
    CHECK_TRUE(server.receive_batch(g_batch, soon()) == 1u);
    CHECK_EQUAL(before + 2, coir::test::count_fds());
  }
  CHECK_TRUE(coir::test::fds_are_back_to(before));
  check();
}

// A process of its own forgets the calls for several datagrams, and no other thread may run when it is forked.
TEST_GROUP(DatagramKernel) {};

TEST(DatagramKernel, batches_pass_one_by_one_where_it_has_no_calls_for_several) {
  constexpr int kNoFilter = 77;
  const coir::test::ChildEnd end = coir::test::in_child([] {
#if defined(SYS_recvmmsg_time64)
    if (!coir::test::forget_syscall(SYS_recvmmsg_time64)) return kNoFilter;
#endif
    if (!coir::test::forget_syscall(SYS_recvmmsg) || !coir::test::forget_syscall(SYS_sendmmsg)) return kNoFilter;
    auto socket = DatagramSocket::bind(address("127.0.0.1:0"));
    if (!socket) return 1;
    const Address here = *socket->local_address();
    g_batch.clear();
    if (!g_batch.add("one", here) || !g_batch.add("twenty", here)) return 2;
    g_batch.add({g_large, sizeof g_large}, here);
    if (socket->send_batch(g_batch, 0, soon()) != 2u) return 3;
    if (!fails(socket->send_batch(g_batch, 2, soon()), ErrorCode::limit)) return 4;
    g_batch.clear();
    for (auto& buffer : g_buffers) g_batch.add(std::span<char>(buffer, 4));
    if (socket->receive_batch(g_batch, soon()) != 2u) return 5;
    if (g_batch[0].bytes != "one" || g_batch[1].bytes != "twen" || g_batch[1].lost_bytes != 2) return 6;
    return fails(socket->receive_batch(g_batch, Deadline::now()), ErrorCode::timed_out) ? 0 : 7;
  });
  if (end.status != kNoFilter) CHECK_EQUAL(0, end.status);
}

#if !COIR_NO_ASYNC

TEST(Datagram, closing_ends_a_wait) {
  both_sides([&] {
    if (coir::current().id() == 0) return;
    const char* const places[] = {"127.0.0.1:0", text};
    for (const char* at : places) {
      DatagramSocket socket = bound(at);
      coir::Fiber receiver = coir::spawn({.name = "receiver"}, [&] {
        char buffer[4];
        expect(fails(socket.receive_from(buffer, soon()), ErrorCode::closed));
      });
      expect(coir::test::until_parked(receiver));
      socket.close();
      expect(receiver.join(soon()).has_value());
    }
  });
}

// Speakers of mDNS look at two sockets after each packet.
TEST(Datagram, a_look_at_an_empty_socket_gives_no_turn_away) {
  bool timed_out = false, switched = false, switched_by_look = true;
  CHECK_TRUE(coir::run_until_idle({.workers = 1}, [&] {
               DatagramSocket socket = bound("127.0.0.1:0");
               coir::Fiber other = coir::spawn([&] { switched = true; });
               char buffer[4];
               timed_out = fails(socket.receive_from(buffer, Deadline::now()), ErrorCode::timed_out);
               switched_by_look = switched;
               static_cast<void>(other.join());
             }).has_value());
  CHECK_TRUE(timed_out && switched && !switched_by_look);
}

TEST(Datagram, a_sender_waits_for_room_in_a_unix_peers_queue) {
  both_sides([&] {
    if (coir::current().id() == 0) return;
    DatagramSocket server = bound(text), client = connected(place(server));
    std::expected<void, Error> sent;
    int queued = 0;
    do {
      sent = client.send("x", Deadline::now());
      queued += sent.has_value();
    } while (sent);
    coir::Fiber sender = coir::spawn({.name = "sender"}, [&] { expect(client.send("y", soon()).has_value()); });
    expect(coir::test::until_parked(sender));
    char buffer[4];
    while (queued-- > 0) expect(is(server.receive_from(buffer, soon()), "x"));
    expect(is(server.receive_from(buffer, soon()), "y"));
    expect(sender.join(soon()).has_value());
  });
}

#endif

}  // namespace datagram_test
