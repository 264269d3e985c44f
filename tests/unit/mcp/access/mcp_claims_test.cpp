// The claims of a token: what they have to say, whom they name, and what is remembered of verdicts.

#include <CppUTest/TestHarness.h>
#include <coir/format.h>
#include <coir/json.h>
#include <coir/mcp/access.h>
#include <string.h>

#include <string_view>

#include "mcp/access/claims.h"
#include "mcp/access/verdicts.h"
#include "tests/unit/mcp/access/signed_token.h"

namespace mcp_claims_test {

using namespace coir;
using namespace coir::mcp;
using namespace coir::test;

namespace {

Judgement judge(std::string_view claims, ClaimsOf of = ClaimsOf::signed_token) {
  const auto document = JsonDocument::parse(claims);
  CHECK(document.has_value());
  return judge_claims(document->root(), kRules, of, 1000);
}

constexpr std::string_view kIssuerAndAudience = R"("iss":"https://id.example","aud":"https://board.example/mcp")";

// claims_and are good claims and some more.
Judgement claims_and(std::string_view more) {
  char text[500];
  return judge(coir::format(text, "{", kIssuerAndAudience, R"(,"scope":"read write",)", more, "}"));
}

bool is(const Judgement& judged, Verdict verdict) {
  return judged.verdict == verdict;
}

}  // namespace

// clang-format off
TEST_GROUP(McpClaims) { void teardown() override { LONGS_EQUAL(0, account::mcp.used()); } };
// clang-format on

TEST(McpClaims, claims_are_all_there_and_now) {
  CHECK(is(claims_and(R"("exp":1001,"sub":"a")"), Verdict::allowed));
  CHECK(is(claims_and(R"("exp":971,"sub":"a")"), Verdict::allowed));  // another clock is 30 s behind
  CHECK(is(claims_and(R"("exp":970,"sub":"a")"), Verdict::unknown));
  CHECK(is(claims_and(R"("exp":1e300,"sub":"a")"), Verdict::allowed));
  CHECK(is(claims_and(R"("exp":1001,"nbf":1030.5,"sub":"a")"), Verdict::unknown));
  CHECK(is(claims_and(R"("exp":1001,"nbf":1030,"sub":"a")"), Verdict::allowed));
  CHECK(is(claims_and(R"("exp":"1001","sub":"a")"), Verdict::unknown));
  CHECK(is(claims_and(R"("exp":1001,"nbf":"1","sub":"a")"), Verdict::unknown));
  CHECK(is(claims_and(R"("sub":"a")"), Verdict::unknown));
  CHECK(is(claims_and(R"("exp":1001)"), Verdict::unknown));
  CHECK(is(claims_and(R"("exp":1001,"client_id":"c")"), Verdict::allowed));
  CHECK(is(judge("[]"), Verdict::unknown));
  CHECK(is(judge(R"({"iss":"https://id.example","exp":1001,"sub":"a","scope":"read write"})"), Verdict::unknown));
  CHECK(is(judge(R"({"iss":"https://id.example","aud":["https://board.example"],"exp":1001,"sub":"a"})"),
           Verdict::unknown));
  CHECK(is(judge(R"({"aud":"https://board.example/mcp","exp":1001,"sub":"a"})"), Verdict::unknown));
}

TEST(McpClaims, a_scope_is_a_whole_word) {
  const auto with = [](std::string_view scope) {
    char text[500];
    return judge(coir::format(text, "{", kIssuerAndAudience, R"(,"exp":1001,"sub":"a","scope":")", scope, R"("})"));
  };
  CHECK(is(with("write read"), Verdict::allowed));
  CHECK(is(with("x  read write"), Verdict::allowed));
  CHECK(is(with("readwrite"), Verdict::forbidden));
  CHECK(is(with("read writes"), Verdict::forbidden));
  CHECK(is(with(""), Verdict::forbidden));
}

TEST(McpClaims, a_token_that_was_introspected_needs_fewer_claims) {
  constexpr auto kAsked = ClaimsOf::introspection;
  CHECK(is(judge(R"({"aud":"https://board.example/mcp","username":"a","scope":"read write"})", kAsked),
           Verdict::allowed));
  CHECK(is(judge(R"({"iss":"x","aud":"https://board.example/mcp","sub":"a","scope":"read write"})", kAsked),
           Verdict::unknown));
  CHECK(is(judge(R"({"aud":"x","sub":"a","scope":"read write"})", kAsked), Verdict::unknown));
  CHECK(is(judge(R"({"aud":"https://board.example/mcp","sub":"a","exp":900,"scope":"read write"})", kAsked),
           Verdict::unknown));
}

TEST(McpClaims, a_claim_of_another_kind_is_none) {
  constexpr auto kAsked = ClaimsOf::introspection;
  CHECK(is(judge(R"({"iss":7,"aud":"https://board.example/mcp","sub":"a","scope":"read write"})", kAsked),
           Verdict::unknown));
  CHECK(is(judge(R"({"aud":{"0":"https://board.example/mcp"},"sub":"a","scope":"read write"})", kAsked),
           Verdict::unknown));
  CHECK(is(judge(R"({"aud":[7,["https://board.example/mcp"]],"sub":"a","scope":"read write"})", kAsked),
           Verdict::unknown));
  CHECK(is(judge(R"({"aud":"https://board.example/mcp","sub":7,"scope":"read write"})", kAsked), Verdict::unknown));
  CHECK(is(judge(R"({"aud":"https://board.example/mcp","sub":"a","exp":true,"scope":"read write"})", kAsked),
           Verdict::unknown));
  CHECK(is(judge(R"({"aud":"https://board.example/mcp","sub":"a","scope":["read","write"]})", kAsked),
           Verdict::forbidden));
}

// A signed token's name for a user is another's to choose; the server that was asked has judged when the token begins.
TEST(McpClaims, what_only_an_asked_issuer_may_say_counts_in_no_signed_token) {
  CHECK(is(claims_and(R"("exp":1001,"username":"a")"), Verdict::unknown));
  CHECK(is(judge(R"({"aud":"https://board.example/mcp","sub":"a","nbf":5000,"scope":"read write"})",
                 ClaimsOf::introspection),
           Verdict::allowed));
}

TEST(McpClaims, the_subject_names_the_principal_before_the_client_does) {
  CHECK(claims_and(R"("exp":1001,"sub":"s","client_id":"c")").who.name() == "s");
  CHECK(claims_and(R"("exp":1001,"sub":"","client_id":"c")").who.name() == "c");
  const auto asked = [](std::string_view names) {
    char text[300];
    return judge(coir::format(text, R"({"aud":"https://board.example/mcp",)", names, "}"), ClaimsOf::introspection);
  };
  CHECK(asked(R"("sub":"s","username":"u","client_id":"c")").who.name() == "s");
  CHECK(asked(R"("username":"u","client_id":"c")").who.name() == "u");
  CHECK(asked(R"("client_id":"c")").who.name() == "c");
  // A principal that a scope keeps out has a name in the log.
  CHECK(is(asked(R"("sub":"s")"), Verdict::forbidden));
}

TEST(McpClaims, a_verdict_lasts_as_long_as_its_token_and_the_clocks_differ) {
  LONGS_EQUAL(31, claims_and(R"("exp":1001,"sub":"a")").left_s);
  LONGS_EQUAL(1'000'000'000, claims_and(R"("exp":1e300,"sub":"a")").left_s);
  LONGS_EQUAL(1'000'000'000, judge(R"({"aud":"https://board.example/mcp","sub":"a"})", ClaimsOf::introspection).left_s);
}

TEST(McpClaims, two_subjects_have_two_names_and_none_breaks_a_line) {
  const auto name = [](std::string_view subject) {
    Principal who;
    name_principal(who, subject);
    return who;
  };
  CHECK(name("ada@example").name() == "ada@example");
  char a[80], b[80];
  memset(a, 'x', sizeof a);
  memset(b, 'x', sizeof b);
  b[79] = 'y';
  const Principal long_a = name({a, 80}), long_b = name({b, 80});
  CHECK(long_a.name() != long_b.name());
  CHECK(long_a.name().starts_with("sha256:"));
  CHECK(name("a\nb").name().starts_with("sha256:"));
  CHECK(name(long_a.name()).name() != long_a.name());
  CHECK(name({a, Principal::kMost}).name() == std::string_view(a, Principal::kMost));
  CHECK(name({a, Principal::kMost + 1}).name().starts_with("sha256:"));
  CHECK(name("!~").name() == "!~");
  for (const std::string_view hidden : {"a b", "a\x7f", "a\xc3\xa4"}) CHECK(name(hidden).name().starts_with("sha256:"));
}

TEST(McpClaims, a_verdict_is_remembered_until_its_token_expires) {
  Verdicts verdicts(std::chrono::seconds(60));
  const Digest one = plain_digest({"1"}), two = plain_digest({"2"});
  Judgement good{.verdict = Verdict::allowed, .left_s = 10};
  good.who.set("ada");
  verdicts.keep(one, 0, good);
  good.left_s = 1000;
  verdicts.keep(two, 0, good);
  Judgement found;
  CHECK(verdicts.find(one, 9'999'999'999, found));
  CHECK(found.verdict == Verdict::allowed && found.who.name() == "ada");
  CHECK_FALSE(verdicts.find(one, 10'000'000'000, found));
  CHECK(verdicts.find(two, 59'999'999'999, found));
  CHECK_FALSE(verdicts.find(two, 60'000'000'000, found));
}

TEST(McpClaims, a_later_verdict_replaces_one_and_the_one_that_ends_first_makes_room) {
  Verdicts verdicts(std::chrono::seconds(60));
  char text[20];
  const auto token = [&](std::size_t i) { return plain_digest({coir::format(text, i)}); };
  Judgement found;
  for (std::size_t i = 0; i < Verdicts::kPlaces; ++i) {
    verdicts.keep(token(i), 0, {.verdict = Verdict::allowed, .left_s = i == 7 ? 20 : 40});
  }
  verdicts.keep(token(3), 1, {.verdict = Verdict::forbidden, .left_s = 40});
  CHECK(verdicts.find(token(3), 2, found) && found.verdict == Verdict::forbidden);
  CHECK(verdicts.find(token(7), 2, found));
  verdicts.keep(token(100), 3, {.verdict = Verdict::allowed, .left_s = 40});
  CHECK_FALSE(verdicts.find(token(7), 4, found));
  for (std::size_t i = 0; i < Verdicts::kPlaces; ++i) CHECK_EQUAL(i != 7, verdicts.find(token(i), 4, found));
  Verdicts none(std::chrono::seconds(0));
  none.keep(token(1), 0, {.verdict = Verdict::allowed, .left_s = 40});
  CHECK_FALSE(none.find(token(1), 0, found));
}

TEST(McpClaims, tokens_that_are_made_up_drive_out_no_good_one) {
  Verdicts verdicts(std::chrono::seconds(60));
  char text[20];
  const auto token = [&](std::size_t i) { return plain_digest({coir::format(text, i)}); };
  const Judgement good{.verdict = Verdict::allowed, .left_s = 1000};
  for (std::size_t i = 0; i < 10; ++i) verdicts.keep(token(i), 0, good);
  for (std::size_t i = 100; i < 1000; ++i) verdicts.keep(token(i), 1, {});
  Judgement found;
  for (std::size_t i = 0; i < 10; ++i) CHECK(verdicts.find(token(i), 2, found));
  for (std::size_t i = 10; i < 10 + Verdicts::kPlaces; ++i) verdicts.keep(token(i), 2, good);
  CHECK(verdicts.find(token(9 + Verdicts::kPlaces), 3, found));
  verdicts.keep(token(2000), 3, {});
  CHECK_FALSE(verdicts.find(token(2000), 4, found));
}

}  // namespace mcp_claims_test
