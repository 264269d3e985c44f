// Want of memory or descriptors at any one point of a client's life: the n-th charge is refused, or the n-th call to the
// kernel of a kind fails, for n = 1, 2, 3 ... until a request meets none. Each request ends with the whole answer or with
// an error, the next succeeds, and nothing is left over.

#include <CppUTest/TestHarness.h>
#include <coir/detail/accounts.h>
#include <coir/http/client.h>
#include <coir/program.h>
#include <errno.h>

#include "tests/support/expectations.h"
#include "tests/support/faults.h"
#include "tests/support/pipe.h"
#include "tests/support/until.h"
#include "tests/unit/client/scripted_server.h"

namespace client_faults_test {

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
    {Call::charge, 0},          {Call::epoll_ctl, ENOMEM},  {Call::eventfd, EMFILE},      {Call::madvise, ENOSYS},
    {Call::mmap, ENOMEM},       {Call::mprotect, ENOMEM},   {Call::poll, ENOMEM},         {Call::ppoll, ENOMEM},
    {Call::recv, ENOMEM},       {Call::recv, ECONNRESET},   {Call::send, ENOBUFS},        {Call::send, EPIPE},
    {Call::sendmsg, ENOMEM},    {Call::socket, EMFILE},     {Call::connect, ENETUNREACH}, {Call::connect, ENOBUFS},
    {Call::getsockopt, ENOMEM}, {Call::setsockopt, ENOMEM}, {Call::close, EINTR},
};

// serve answers "/moved" by a redirect, "/chunks" in chunks, and all else by hello.
void serve(Peer& peer) {
  spare_this_thread();
  for (;;) {
    const auto head = peer.hear();
    if (head.empty()) return;
    if (head.find("Content-Length: 4") != head.npos) peer.hear_content(4);
    if (head.find(" /moved ") != head.npos) {
      peer.say("HTTP/1.1 302 Go\r\nLocation: /chunks\r\nContent-Length: 2\r\n\r\nno");
    } else if (head.find(" /chunks ") != head.npos) {
      peer.say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n");
    } else {
      peer.say("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
    }
  }
}

enum class Heard { whole, error, wrong };

Heard ask(Client& client, std::string_view url, bool posts) {
  const ClientRequest rest{.deadline = Deadline::after(60s)};
  auto response = posts ? client.post(url, "four", "text/plain", rest) : client.get(url, rest);
  if (!response) return Heard::error;
  const auto text = response->text();
  if (!text) return Heard::error;
  return *text == "hello" && response->status() == 200 ? Heard::whole : Heard::wrong;
}

}  // namespace

TEST_GROUP_BASE(ClientFaults, coir::test::Expecting) {  // try_every lets each call of each kind fail once.
  void try_every() {
    const ScriptedServer server(serve);
    auto client = Client::create({.max_resting = 4});
    expect(client.has_value());
    if (!client) return;
    for (const char* const path : {"/", "/chunks", "/moved"}) {
      const std::string_view url = server.url(path);
      for (const bool posts : {false, true}) {
        // The first request leaves things for good: threads, registered descriptors, spare buffers.
        expect(ask(*client, url, posts) == Heard::whole);
        client->close_resting();
        const std::size_t connections = coir::account::connections.used();
        const std::size_t http = coir::account::http.used();
        const int descriptors = count_fds();
        for (const Kind& kind : kKinds) {
          for (unsigned nth = 1;; ++nth) {
            inject({.call = kind.call, .error = kind.error, .nth = nth});
            const Heard heard = ask(*client, url, posts);
            const unsigned failed = withdraw();
            expect(heard == Heard::whole || (heard == Heard::error && failed != 0));
            expect(ask(*client, url, posts) == Heard::whole);
            client->close_resting();
            expect(client->open() == 0 && coir::account::connections.used() == connections);
            expect(coir::account::http.used() == http);
            until([&] { return count_fds() <= descriptors; });
            if (failed == 0 || wrong() != 0) break;
            expect(nth < 200);
          }
        }
      }
    }
  }
};

TEST(ClientFaults, fail_one_request_and_leave_nothing) {
  try_every();
  check("on a thread");
#if !COIR_NO_ASYNC
  const auto ran = coir::run_until_idle({.workers = 1}, [&] { try_every(); });
  CHECK_TRUE(ran.has_value());
  check("on a fiber");
#endif
}

}  // namespace client_faults_test
