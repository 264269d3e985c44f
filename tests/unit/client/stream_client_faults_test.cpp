// Want of memory or descriptors at any one point of the life of a client's WebSocket and of one that follows events: the
// n-th charge is refused, or the n-th call to the kernel of a kind fails, for n = 1, 2, 3 ... until a life meets none.
// Each ends whole or with an error, the next is whole, and nothing is left over.

#include <CppUTest/TestHarness.h>
#include <coir/detail/accounts.h>
#include <coir/events.h>
#include <coir/http/websocket.h>
#include <coir/program.h>
#include <errno.h>

#include "net/src/base/buffer_pool.h"
#include "net/src/websocket/accept.h"
#include "tests/support/expectations.h"
#include "tests/support/faults.h"
#include "tests/support/pipe.h"
#include "tests/support/until.h"
#include "tests/unit/client/scripted_server.h"

namespace stream_client_faults_test {

using namespace std::chrono_literals;
using namespace coir::http;
using namespace coir::test;
using coir::Deadline;

namespace {

struct Kind {
  Call call;
  int error;
};
constexpr Kind kKinds[] = {
    {Call::charge, 0},          {Call::close, EINTR},        {Call::epoll_ctl, ENOMEM}, {Call::epoll_wait, EINTR},
    {Call::eventfd, EMFILE},    {Call::madvise, ENOSYS},     {Call::mmap, ENOMEM},      {Call::mprotect, ENOMEM},
    {Call::poll, ENOMEM},       {Call::ppoll, ENOMEM},       {Call::recv, ENOMEM},      {Call::recv, ECONNRESET},
    {Call::send, ENOBUFS},      {Call::send, EPIPE},         {Call::sendmsg, ENOMEM},   {Call::sendmsg, ECONNRESET},
    {Call::shutdown, ENOTCONN}, {Call::setsockopt, ENOBUFS}, {Call::socket, EMFILE},    {Call::socket, ENOBUFS},
};

// Life is a client's: whole, ended with an error, or wrong, which nothing may make it.
enum class Heard { whole, error, wrong };

Deadline patience() {
  return Deadline::after(60s);
}

// speak is a server that says a message in fragments with a ping between, and answers a close.
void speak(Peer& peer) {
  spare_this_thread();
  const std::string_view head = peer.hear();
  constexpr std::string_view kKey = "Sec-WebSocket-Key: ";
  const std::size_t at = head.find(kKey);
  if (at == head.npos) return;
  const auto accept = websocket_accept(head.substr(at + kKey.size()));
  peer.say("HTTP/1.1 101 Go\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ");
  peer.say({accept.data(), accept.size()});
  peer.say({"\r\n\r\n\x01\x03hel\x89\x01p\x80\x02lo", 16});
  // Its pong and its message, then its close.
  if (peer.hear_content(7 + 8).size() == 15) peer.say({"\x88\x02\x03\xe8", 4});
  peer.until_gone();
}

Heard converse(Client& client, const ScriptedServer& server) {
  auto socket = connect_websocket(client, server.url("/", "ws"), {.options = {.close_timeout = 100ms}}, patience());
  if (!socket) return Heard::error;
  const auto message = socket->receive(patience());
  if (!message) return Heard::error;
  if (message->bytes != "hello" || !message->text) return Heard::wrong;
  if (!socket->send_text("hi", patience())) return Heard::error;
  const auto next = socket->receive(patience());
  if (next) return Heard::wrong;
  return socket->close_code() == CloseCode::normal ? Heard::whole : Heard::error;
}

// tell is a server of two events: the second comes with the second connection.
void tell(Peer& peer) {
  spare_this_thread();
  const std::string_view head = peer.hear();
  if (head.empty()) return;
  peer.say("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n");
  if (head.find("\r\nLast-Event-ID: 1\r\n") == head.npos) {
    peer.say(":\n\nid: 1\ndata: one\n\n");
    peer.stop_sending();
  } else {
    peer.say("id: 2\ndata: two\n\n");
  }
  peer.until_gone();
}

Heard follow(Client& client, const ScriptedServer& server) {
  auto events = coir::http::EventClient::create(client, {.url = server.url("/"), .pause = 1ms, .longest_pause = 5ms});
  if (!events) return Heard::error;
  auto event = events->next(patience());
  if (!event) return Heard::error;
  if (event->data != "one") return Heard::wrong;
  event = events->next(patience());
  if (!event) return Heard::error;
  return event->data == "two" && events->last_id() == "2" ? Heard::whole : Heard::wrong;
}

}  // namespace

struct StreamClientFaultsGroup : Expecting {
  unsigned failed_calls[kCalls] = {};

  // try_every lets each call of each kind fail once.
  template <class Life>
  void try_every(const ScriptedServer::Script& script, Life life) {
    const ScriptedServer server(script);
    auto client = Client::create({.max_resting = 4});
    expect(client.has_value());
    if (!client) return;
    // The first one leaves things for good: threads, registered descriptors, spare buffers.
    expect(life(*client, server) == Heard::whole);
    client->close_resting();
    const std::size_t connections = coir::account::connections.used(), http = coir::account::http.used();
    const int descriptors = count_fds();
    for (const Kind& kind : kKinds) {
      for (unsigned nth = 1;; ++nth) {
        inject({.call = kind.call, .error = kind.error, .nth = nth});
        const Heard heard = life(*client, server);
        const unsigned failed = withdraw();
        failed_calls[static_cast<unsigned>(kind.call)] += failed;
        expect(heard == Heard::whole || (heard == Heard::error && failed != 0));
        if (failed != 0) expect(life(*client, server) == Heard::whole);
        client->close_resting();
        expect(client->open() == 0 && coir::account::connections.used() == connections);
        expect(coir::account::http.used() == http);
        expect(coir::account::buffers.used() == coir::Buffer::spare_bytes());
        until([&] { return count_fds() <= descriptors; });
        if (failed == 0 || wrong() != 0) break;
        expect(nth < 200);
      }
    }
  }
  template <class Life>
  void everywhere(const ScriptedServer::Script& script, Life life) {
    try_every(script, life);
    check("on a thread");
#if !COIR_NO_ASYNC
    const auto ran = coir::run_until_idle({.workers = 1}, [&] { try_every(script, life); });
    CHECK_TRUE(ran.has_value());
    check("on a fiber");
#endif
    for (const Call call : {Call::charge, Call::recv, Call::socket}) {
      if (failed_calls[static_cast<unsigned>(call)] == 0) FAIL(coir::test::name_of(call));
    }
  }
};

TEST_GROUP_BASE(StreamClientFaults, StreamClientFaultsGroup) {};

TEST(StreamClientFaults, end_one_websocket_and_leave_nothing) {
  everywhere(speak, converse);
}

TEST(StreamClientFaults, end_one_follower_or_one_connection_and_leave_nothing) {
  everywhere(tell, follow);
}

}  // namespace stream_client_faults_test
