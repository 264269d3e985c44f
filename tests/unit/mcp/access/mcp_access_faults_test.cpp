// Want of memory or descriptors at any one point of a judgement: the n-th charge is refused, or the n-th call to the kernel
// of a kind fails, for n = 1, 2, 3 ... until a judge meets none. No token is admitted or refused for it: the verdict is
// `unavailable`, is not remembered, and nothing is left over.

#include <CppUTest/TestHarness.h>
#include <coir/detail/accounts.h>
#include <coir/mcp/access.h>
#include <coir/program.h>
#include <errno.h>

#include "tests/support/both_sides.h"
#include "tests/support/faults.h"
#include "tests/unit/client/scripted_server.h"
#include "tests/unit/mcp/access/signed_token.h"

namespace mcp_access_faults_test {

using namespace coir::mcp;
using namespace coir::test;
using coir::test::Call;

namespace {

struct Kind {
  Call call;
  int error;
};
constexpr Kind kKinds[] = {{Call::charge, 0},         {Call::epoll_ctl, ENOMEM}, {Call::mmap, ENOMEM},
                           {Call::recv, ECONNRESET},  {Call::recv, ENOMEM},      {Call::send, EPIPE},
                           {Call::sendmsg, ENOMEM},   {Call::socket, EMFILE},    {Call::connect, ENETUNREACH},
                           {Call::setsockopt, ENOMEM}};

}  // namespace

TEST_GROUP_BASE(McpAccessFaults, Expecting) {
  // try_every lets each point of `make` and of the first judgement fail once.
  template <class Make>
  void try_every(Make make, std::string_view token) {
    {
      // The first one leaves some memory for good.
      auto judge = make();
      Principal who;
      expect(judge && judge->judge(token, who) == Verdict::allowed);
    }
    const std::size_t http = coir::account::http.used();
    for (const Kind& kind : kKinds) {
      for (unsigned nth = 1;; ++nth) {
        unsigned failed = 0;
        Verdict verdict = Verdict::unavailable;
        inject({.call = kind.call, .error = kind.error, .nth = nth});
        {
          auto judge = make();
          Principal who;
          if (judge) verdict = judge->judge(token, who);
          failed = withdraw();
          expect(verdict == Verdict::allowed || (verdict == Verdict::unavailable && failed != 0));
          expect(who.name() == (verdict == Verdict::allowed ? "ada" : ""));
          if (judge) expect(judge->judge(token, who) == Verdict::allowed && who.name() == "ada");
        }
        expect(coir::account::http.used() == http && coir::account::mcp.used() == 0);
        if (failed == 0 || wrong() != 0) break;
        expect(nth < 10'000);
      }
    }
  }
};

TEST(McpAccessFaults, a_key_judges_or_says_that_it_cannot) {
  const auto ran = coir::run_until_idle({.workers = 1},
                                        [&] { try_every([] { return SigningKeys::read(kFirstKey, kRules); }, kGood); });
  CHECK_TRUE(ran.has_value());
  check();
}

TEST(McpAccessFaults, an_issuer_is_asked_or_nothing_is_known) {
  const auto ran = coir::run_until_idle({.workers = 1}, [&] {
    const ScriptedServer issuer([](Peer& peer) {
      spare_this_thread();
      for (std::string_view text; !(text = peer.hear()).empty();) {
        peer.hear_content(static_cast<std::size_t>(atoi(text.data() + text.find("Content-Length: ") + 16)));
        if (!peer.say("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 82\r\n\r\n"
                      R"({"active":true,"aud":"https://board.example/mcp","sub":"ada","scope":"read write"})"))
          return;
      }
    });
    auto client = coir::http::Client::create();
    expect(client.has_value());
    if (!client) return;
    const std::string_view url = issuer.url("/introspect");
    try_every(
        [&] {
          return Introspection::create(
              {.url = url, .client_id = "board", .client_secret = "s", .rules = kRules, .client = &*client});
        },
        "a+token");
  });
  CHECK_TRUE(ran.has_value());
  check();
}

}  // namespace mcp_access_faults_test
