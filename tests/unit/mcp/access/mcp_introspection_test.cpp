// Access tokens that the authorization server is asked about: what it is told, what its answers mean, how often it is asked.

#include <coir/format.h>
#include <coir/mcp/access.h>

#include <CppUTest/TestHarness.h>

#include <string_view>

#include "tests/support/both_sides.h"
#include "tests/unit/client/scripted_server.h"

namespace mcp_introspection_test {

using namespace coir;
using namespace coir::mcp;
using coir::test::Peer;
using coir::test::ScriptedServer;

namespace {

// Issuer answers each question by `status` and `content`, and keeps the last one.
struct Issuer {
  std::string_view content = R"({"active":true,"aud":"https://board.example/mcp","sub":"ada"})";
  const char* status = "200 OK";
  std::atomic<int> asked{0};
  char head[1000] = {};
  char form[1000] = {};
  ScriptedServer server{[this](Peer& peer) {
    for (std::string_view text; !(text = peer.hear()).empty();) {
      static_cast<void>(coir::format(head, text, '\0'));
      const std::size_t at = text.find("Content-Length: ");
      const auto length = static_cast<std::size_t>(atoi(text.data() + at + 16));
      static_cast<void>(coir::format(form, peer.hear_content(length), '\0'));
      ++asked;
      char answer[10'000];
      if (!peer.say(coir::format(answer, "HTTP/1.1 ", status, "\r\nContent-Type: application/json\r\nContent-Length: ",
                                 content.size(), "\r\n\r\n", content)))
        return;
    }
  }};
};

}  // namespace

TEST_GROUP_BASE(McpIntrospection, coir::test::BothSides) {
  // with_issuer visits a judge of tokens, from a fiber and from a thread.
  template <class Visit>
  void with_issuer(Visit visit, IntrospectionOptions options = {}) {
    both_sides([&] {
      Issuer issuer;
      auto client = http::Client::create();
      expect(client.has_value());
      if (!client) return;
      options.url = issuer.server.url("/introspect");
      options.rules.audience = "https://board.example/mcp";
      options.client = &*client;
      {
        const auto made = Introspection::create(options);
        expect(made.has_value());
        if (made) visit(issuer, *made);
      }
      expect(account::mcp.used() == 0);
    });
  }
};

TEST(McpIntrospection, the_issuer_is_asked_once_for_a_token_that_it_knows) {
  with_issuer(
      [&](Issuer& issuer, const Introspection& judge) {
        for (int i = 0; i < 3; ++i) {
          Principal who;
          expect(judge.judge("a+token/=", who) == Verdict::allowed && who.name() == "ada");
        }
        expect(issuer.asked == 1);
        expect(std::string_view(issuer.form) == "token=a%2Btoken%2F%3D&token_type_hint=access_token");
        // "board:s%3Acret": both parts are encoded before they are put together.
        expect(std::string_view(issuer.head).contains("Authorization: Basic Ym9hcmQ6cyUzQWNyZXQ=\r\n"));
        Principal who;
        expect(judge.judge("another", who) == Verdict::allowed && issuer.asked == 2);
      },
      {.client_id = "board", .client_secret = "s:cret"});
}

TEST(McpIntrospection, an_issuer_that_knows_no_clients_is_told_of_none) {
  with_issuer([&](Issuer& issuer, const Introspection& judge) {
    Principal who;
    expect(judge.judge("t", who) == Verdict::allowed);
    const std::string_view head = issuer.head;
    expect(head.starts_with("POST /introspect HTTP/1.1\r\n") && !head.contains("Authorization:"));
    expect(head.contains("Accept: application/json\r\n"));
    expect(head.contains("Content-Type: application/x-www-form-urlencoded\r\n"));
    // The server is not asked about what can be no token, and an answer that is too long says nothing.
    char many[5000];
    memset(many, 'x', sizeof many);
    expect(judge.judge({many, sizeof many}, who) == Verdict::unknown && issuer.asked == 1);
    static char large[9000];
    issuer.content = coir::format(large, R"({"active":true,"aud":"https://board.example/mcp","sub":"ada","x":")",
                                  std::string_view(many, 4200), std::string_view(many, 4200), R"("})");
    expect(judge.judge("u", who) == Verdict::unavailable && issuer.asked == 2);
  });
}

TEST(McpIntrospection, a_token_that_is_not_active_is_unknown_and_asked_about_once) {
  with_issuer([&](Issuer& issuer, const Introspection& judge) {
    issuer.content = R"({"active":false})";
    Principal who;
    for (int i = 0; i < 3; ++i) expect(judge.judge("t", who) == Verdict::unknown);
    expect(issuer.asked == 1 && who.name().empty());
    issuer.content = R"({"active":true,"aud":"https://another.example","sub":"ada"})";
    expect(judge.judge("u", who) == Verdict::unknown && issuer.asked == 2);
  });
}

TEST(McpIntrospection, an_issuer_that_says_nothing_of_use_makes_no_verdict) {
  with_issuer([&](Issuer& issuer, const Introspection& judge) {
    Principal who;
    for (const std::string_view content : {"", "{", "[]", R"({"active":"yes"})", "{}"}) {
      issuer.content = content;
      expect(judge.judge("t", who) == Verdict::unavailable);
    }
    issuer.content = R"({"active":true,"aud":"https://board.example/mcp","sub":"ada"})";
    for (const char* const status : {"401 Unauthorized", "500 Oops", "302 Go"}) {
      issuer.status = status;
      expect(judge.judge("t", who) == Verdict::unavailable);
    }
    issuer.status = "200 OK";
    expect(judge.judge("t", who) == Verdict::allowed);
    expect(judge.judge("", who) == Verdict::unknown && issuer.asked == 9);
  });
}

TEST(McpIntrospection, an_issuer_that_hangs_costs_its_deadline) {
  both_sides([&] {
    const ScriptedServer silent([](Peer& peer) {
      peer.hear();
      peer.until_gone();
    });
    auto client = http::Client::create();
    expect(client.has_value());
    if (!client) return;
    const auto judge = Introspection::create({.url = silent.url("/"),
                                              .rules = {.audience = "a"},
                                              .deadline = std::chrono::milliseconds(20),
                                              .client = &*client});
    Principal who;
    expect(judge && judge->judge("t", who) == Verdict::unavailable);
  });
}

TEST(McpIntrospection, an_address_that_cannot_be_asked_is_refused) {
  CHECK(Introspection::create({.url = "ftp://a", .rules = {.audience = "a"}}).error() == ErrorCode::invalid);
  CHECK(Introspection::create({.url = "http://a/"}).error() == ErrorCode::invalid);
  char id[300];
  memset(id, 'x', sizeof id);
  CHECK(Introspection::create({.url = "http://a/", .client_id = {id, sizeof id}, .rules = {.audience = "a"}}).error() ==
        ErrorCode::invalid);
  // An id and a secret have 255 bytes between them, as they are encoded.
  const auto with = [&](std::size_t of_id, std::size_t of_secret) {
    return Introspection::create({.url = "http://a/",
                                  .client_id = {id, of_id},
                                  .client_secret = {id, of_secret},
                                  .rules = {.audience = "a"}})
        .has_value();
  };
  CHECK_TRUE(with(255, 0) && with(200, 55));
  CHECK_FALSE(with(256, 0) || with(200, 56));
  LONGS_EQUAL(0, account::mcp.used());
}

}  // namespace mcp_introspection_test
