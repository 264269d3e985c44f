// A datagram socket whose calls to the kernel fail: the caller is told, nothing is left open, and the next call does.

#include <CppUTest/TestHarness.h>
#include <coir/net/datagram.h>
#include <errno.h>

#include "tests/support/both_sides.h"
#include "tests/support/faults.h"
#include "tests/support/pipe.h"

namespace datagram_faults_test {

using namespace std::chrono_literals;
using coir::Address;
using coir::DatagramSocket;
using coir::Deadline;
using coir::ErrorCode;
using coir::test::Call;
using coir::test::inject;
using coir::test::withdraw;

namespace {

Deadline soon() {
  return Deadline::after(60s);
}

bool fails(const auto& outcome, ErrorCode code, int number) {
  return !outcome && outcome.error() == code && outcome.error().sys == number;
}

}  // namespace

TEST_GROUP_BASE(DatagramFaults, coir::test::BothSides) {};

TEST(DatagramFaults, a_socket_that_cannot_be_opened_leaves_nothing) {
  const int before = coir::test::count_fds();
  const Address here = *Address::parse("127.0.0.1:0");
  inject({.call = Call::socket, .error = EMFILE});
  CHECK_TRUE(fails(DatagramSocket::bind(here), ErrorCode::limit, EMFILE));
  inject({.call = Call::connect, .error = ENETUNREACH});
  CHECK_TRUE(fails(DatagramSocket::connect(here), ErrorCode::system, ENETUNREACH));
  // A kernel without IPv6 still has the other family.
  inject({.call = Call::socket, .error = EAFNOSUPPORT});
  auto any = DatagramSocket::bind(*Address::parse("*:0"));
  CHECK_EQUAL(1, withdraw());
  CHECK_TRUE(any && any->local_address()->family() == Address::Family::ipv4);
  any->close();
  CHECK_EQUAL(before, coir::test::count_fds());
}

TEST(DatagramFaults, an_interrupted_call_goes_on) {
  both_sides([&] {
    auto socket = DatagramSocket::bind(*Address::parse("127.0.0.1:0"));
    const Address here = *socket->local_address();
    inject({.call = Call::sendmsg, .error = EINTR});
    expect(socket->send_to("x", here, soon()).has_value() && withdraw() == 1);
    char buffer[4];
    inject({.call = Call::recvmsg, .error = EINTR});
    const auto got = socket->receive_from(buffer, soon());
    expect(got && got->bytes == "x" && withdraw() == 1);
    inject({.call = Call::connect, .error = EINTR});
    expect(socket->connect_to(here).has_value() && withdraw() == 1);
  });
}

TEST(DatagramFaults, want_of_memory_is_told_and_passes) {
  both_sides([&] {
    auto socket = DatagramSocket::bind(*Address::parse("127.0.0.1:0"));
    const Address here = *socket->local_address();
    inject({.call = Call::sendmsg, .error = ENOBUFS});
    expect(fails(socket->send_to("x", here, soon()), ErrorCode::no_memory, ENOBUFS));
    expect(socket->send_to("y", here, soon()).has_value());
    char buffer[4];
    inject({.call = Call::recvmsg, .error = ENOMEM});
    expect(fails(socket->receive_from(buffer, soon()), ErrorCode::no_memory, ENOMEM));
    const auto got = socket->receive_from(buffer, soon());
    expect(got && got->bytes == "y");
    inject({.call = Call::setsockopt, .error = ENOBUFS});
    expect(fails(socket->join(*Address::parse("239.255.77.9:1"), 1), ErrorCode::limit, ENOBUFS));
    withdraw();
  });
}

}  // namespace datagram_faults_test
