// Unix sockets add a path to TcpListener: it is taken over from a dead process, not from a living one, and removed at
// the end.

#include <CppUTest/TestHarness.h>
#include <coir/tcp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/folder.h"

namespace unix_socket_test {

using namespace std::chrono_literals;
using coir::Address;
using coir::Deadline;
using coir::TcpListener;
using coir::TcpStream;

TEST_GROUP(UnixSocket) {
  coir::test::Folder folder;
  char text[200];

  void setup() override { snprintf(text, sizeof text, "unix:%s", folder.at("socket")); }
  const char* path() const { return text + 5; }
  bool exists() const {
    struct stat info;
    return lstat(path(), &info) == 0;
  }
  Address address() const { return *Address::parse(text); }
};

TEST(UnixSocket, carries_bytes_both_ways) {
  auto listener = TcpListener::listen(address());
  CHECK(listener.has_value());
  auto client = TcpStream::connect(address());
  CHECK(client.has_value());
  auto server = listener->accept(Deadline::after(5s));
  CHECK(server.has_value());
  CHECK(client->write("ping").has_value());
  char got[8];
  LONGS_EQUAL(4, *server->read(got));
  CHECK(server->write("pong").has_value());
  LONGS_EQUAL(4, *client->read(got));
  STRNCMP_EQUAL("pong", got, 4);
}

TEST(UnixSocket, a_full_queue_is_waited_for) {
  const int busy = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const Address at = address();
  CHECK_EQUAL(0, bind(busy, at.get(), at.length()));
  CHECK_EQUAL(0, listen(busy, 0));
  auto first = TcpStream::connect(at);
  CHECK(first.has_value());
  const auto late = TcpStream::connect(at, Deadline::after(20ms));
  CHECK(!late && late.error() == coir::ErrorCode::timed_out);
  close(accept(busy, nullptr, nullptr));
  CHECK(TcpStream::connect(at, Deadline::after(20s)).has_value());
  close(busy);
}

TEST(UnixSocket, the_path_goes_with_the_listener) {
  {
    auto listener = TcpListener::listen(address());
    CHECK(listener.has_value());
    CHECK(exists());
    TcpListener moved = std::move(*listener);
    CHECK(exists());
  }
  CHECK_FALSE(exists());
}

TEST(UnixSocket, a_path_left_behind_is_taken_over) {
  const int dead = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const Address at = address();
  CHECK_EQUAL(0, bind(dead, at.get(), at.length()));
  close(dead);
  CHECK(exists());
  CHECK(TcpListener::listen(at).has_value());
}

TEST(UnixSocket, a_path_in_use_or_of_another_kind_is_left_alone) {
  auto listener = TcpListener::listen(address());
  CHECK(listener.has_value());
  auto second = TcpListener::listen(address());
  CHECK_FALSE(second.has_value());
  LONGS_EQUAL(EADDRINUSE, second.error().sys);
  CHECK(TcpStream::connect(address()).has_value());
  listener->close();

  FILE* file = fopen(path(), "w");
  CHECK(file != nullptr);
  fclose(file);
  CHECK_FALSE(TcpListener::listen(address()).has_value());
  CHECK(exists());
}

TEST(UnixSocket, abstract_names_need_no_file) {
  char name[64];
  snprintf(name, sizeof name, "unix:@coir-test-%d", static_cast<int>(getpid()));
  const Address at = *Address::parse(name);
  auto listener = TcpListener::listen(at);
  CHECK(listener.has_value());
  CHECK(TcpStream::connect(at).has_value());
}

}  // namespace unix_socket_test
