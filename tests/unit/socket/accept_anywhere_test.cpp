// accept_each is the same call on a plain thread and in a build without fibers: the client is served in its body.

#include <CppUTest/TestHarness.h>
#include <coir/tcp.h>

namespace accept_anywhere_test {

using coir::Address;
using coir::Deadline;
using coir::TcpListener;
using coir::TcpStream;
using namespace std::chrono_literals;

TEST_GROUP(AcceptAnywhere) {};

TEST(AcceptAnywhere, each_connection_is_served_in_its_turn_until_the_listener_is_closed) {
  const Deadline soon = Deadline::after(60s);
  auto listener = *TcpListener::listen(*Address::parse("127.0.0.1:0"));
  auto first = TcpStream::connect(listener.local_address(), soon);
  auto second = TcpStream::connect(listener.local_address(), soon);
  CHECK_TRUE(first && second);
  int served = 0;
  const auto ended = coir::accept_each(listener, [&](TcpStream client) {
    CHECK_TRUE(client.write("x", soon).has_value());
    if (++served == 2) listener.close();
  });
  CHECK_TRUE(ended.has_value());
  for (TcpStream* stream : {&*first, &*second}) {
    char byte;
    LONGS_EQUAL(1, stream->read({&byte, 1}, soon).value_or(0));
  }
}

}  // namespace accept_anywhere_test
