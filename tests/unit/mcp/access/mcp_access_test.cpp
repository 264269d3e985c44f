// Access tokens: what a signed one has to say, whose signature counts, and what is remembered of them.

#include <CppUTest/TestHarness.h>
#include <coir/format.h>
#include <coir/json.h>
#include <coir/mcp/access.h>

#include <string_view>

#include "mcp/access/claims.h"
#include "mcp/access/verdicts.h"
#include "mcp/access/web_token.h"
#include "tests/unit/mcp/access/signed_token.h"
#include "tls/es256.h"

namespace mcp_access_test {

using namespace coir;
using namespace coir::mcp;
using namespace coir::test;

namespace {

// Two more public keys, on P-256 and P-384, and more tokens that python's cryptography has signed. kOfSecond is the second key's,
// all others are the first one's.
constexpr std::string_view kSecondKey =
    "-----BEGIN PUBLIC KEY-----\n"
    "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE6EA3yQrQ5OJ8DxQBu7EyWn+UiGnT\n"
    "7Q/REf2tzB3uq428ObybnJe/chNgSKoMHf5sQIgcIdjhBlavIERubTC5MA==\n"
    "-----END PUBLIC KEY-----\n";
constexpr std::string_view kLargeKey =
    "-----BEGIN PUBLIC KEY-----\n"
    "MHYwEAYHKoZIzj0CAQYFK4EEACIDYgAErVTbTz8/a9C+W656Phsh4Y2TfoO+oNsP\n"
    "NWQr3MO9fAAP2l9Nff13lzw7LErZDh8QPRZlrVlQs9eU0eIeS/8vWvpFEy83fEOs\n"
    "+eoHctfCEXzoL+O9LIPqhn2Tnsop9OUc\n"
    "-----END PUBLIC KEY-----\n";
constexpr std::string_view kOfSecond =
    "eyJhbGciOiJFUzI1NiIsInR5cCI6ImF0K2p3dCIsImtpZCI6IjEifQ.eyJpc3MiOiJodHRwczovL2lkLmV4YW1wbGUiLCJhdWQiO"
    "iJodHRwczovL2JvYXJkLmV4YW1wbGUvbWNwIiwiZXhwIjo0MTAyNDQ0ODAwLCJzdWIiOiJhZGEiLCJzY29wZSI6InJlYWQgd3Jpd"
    "GUifQ.TXuaUU4EoJ5MXvKI22j3MpWdGJntPF3alligFE7VblAFLijso6XB0Uz2l5rPk82NVlPp25hnokfBlkQHunNxkw";
constexpr std::string_view kPlain =
    "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJodHRwczovL2lkLmV4YW1wbGUiLCJhdWQiOlsieCIsImh0dHBzOi8vYm9hcmQuZXhhbXB"
    "sZS9tY3AiXSwiZXhwIjo0MTAyNDQ0ODAwLCJzdWIiOiJhZGEiLCJzY29wZSI6InJlYWQgd3JpdGUifQ.blRhBeaSPdEz79_TR44b"
    "b7fcB2yjd6umbKE8KrTm3RU-SY8wU9vMRlikAOAYQBvzuVcikfbiWwAuq014cbfolA";
constexpr std::string_view kCritical =
    "eyJhbGciOiJFUzI1NiIsInR5cCI6ImF0K2p3dCIsImtpZCI6IjEiLCJjcml0IjpbIngiXSwieCI6MX0.eyJpc3MiOiJodHRwczov"
    "L2lkLmV4YW1wbGUiLCJhdWQiOiJodHRwczovL2JvYXJkLmV4YW1wbGUvbWNwIiwiZXhwIjo0MTAyNDQ0ODAwLCJzdWIiOiJhZGEi"
    "LCJzY29wZSI6InJlYWQgd3JpdGUifQ.aCzcmVA3XDWRAmv-x-zEr1PY2fWmgWLwNHV_fM-"
    "Tj5NnIc3QKtd0XWpTxLpNtYdJH7r69KKYHEoVTezrWD28pg";
constexpr std::string_view kOfAnother =
    "eyJhbGciOiJFUzI1NiIsInR5cCI6ImF0K2p3dCIsImtpZCI6IjEifQ.eyJpc3MiOiJodHRwczovL290aGVyLmV4YW1wbGUiLCJhd"
    "WQiOiJodHRwczovL2JvYXJkLmV4YW1wbGUvbWNwIiwiZXhwIjo0MTAyNDQ0ODAwLCJzdWIiOiJhZGEiLCJzY29wZSI6InJlYWQgd"
    "3JpdGUifQ.KfMtHigjJBB_Sdwr0oA8xaqCMfgh4GN9X7rrXtWy5nZE52zOrVpnfKyIE0jF58ETpqUb7olLm8YJNWFkMTB8Yg";
constexpr std::string_view kExpired =
    "eyJhbGciOiJFUzI1NiIsInR5cCI6ImF0K2p3dCIsImtpZCI6IjEifQ.eyJpc3MiOiJodHRwczovL2lkLmV4YW1wbGUiLCJhdWQiO"
    "iJodHRwczovL2JvYXJkLmV4YW1wbGUvbWNwIiwiZXhwIjoxNzAwMDAwMDAwLCJzdWIiOiJhZGEiLCJzY29wZSI6InJlYWQgd3Jpd"
    "GUifQ.ZyvHeImnONQswgrDvF3rasL-1zgUck_bC4vpW4hWTFCkxiUQ4FHePv2MHe1Ghhj4zXpJWjhKiN-fNVsMHwY93Q";
constexpr std::string_view kReadsOnly =
    "eyJhbGciOiJFUzI1NiIsInR5cCI6ImF0K2p3dCIsImtpZCI6IjEifQ.eyJpc3MiOiJodHRwczovL2lkLmV4YW1wbGUiLCJhdWQiO"
    "iJodHRwczovL2JvYXJkLmV4YW1wbGUvbWNwIiwiZXhwIjo0MTAyNDQ0ODAwLCJzdWIiOiJhZGEiLCJzY29wZSI6InJlYWQifQ.dY"
    "GZJTHEmeG1qSa2UQMz2KOKZMSHHMgvnrjUDQeaUwxt9DJ8RwHZo7IYvcQ3v3Sa5OxzjRXOVVi4D3bDCUIFwQ";
constexpr std::string_view kEs384 =
    "eyJhbGciOiJFUzM4NCIsInR5cCI6ImF0K2p3dCIsImtpZCI6IjEifQ.eyJpc3MiOiJodHRwczovL2lkLmV4YW1wbGUiLCJhdWQiO"
    "iJodHRwczovL2JvYXJkLmV4YW1wbGUvbWNwIiwiZXhwIjo0MTAyNDQ0ODAwLCJzdWIiOiJhZGEiLCJzY29wZSI6InJlYWQgd3Jpd"
    "GUifQ.IRQeAOWvBIiAsv6XvgjdP96v6XF-rCxjvkb3l3ZCDfS_QGQvfe0EKEBocyH3nfKsq8KSKwe115uSUJkPj0uqWQ";

Verdict judge(const SigningKeys& keys, std::string_view token) {
  Principal who;
  return keys.judge(token, who);
}

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
TEST_GROUP(McpAccess) { void teardown() override { LONGS_EQUAL(0, account::mcp.used()); } };
// clang-format on

TEST(McpAccess, a_token_of_the_issuer_is_taken_and_names_its_subject) {
  const auto keys = SigningKeys::read(kFirstKey, kRules);
  CHECK(keys.has_value());
  for (int i = 0; i < 2; ++i) {
    Principal who;
    CHECK(keys->judge(kGood, who) == Verdict::allowed);
    CHECK(who.name() == "ada");
  }
  CHECK(judge(*keys, kPlain) == Verdict::allowed);
  CHECK(judge(*keys, kReadsOnly) == Verdict::forbidden);
}

TEST(McpAccess, a_token_of_anybody_else_is_not) {
  const auto keys = SigningKeys::read(kFirstKey, kRules);
  CHECK(keys.has_value());
  CHECK(judge(*keys, kOfSecond) == Verdict::unknown);
  CHECK(judge(*keys, kOfAnother) == Verdict::unknown);
  CHECK(judge(*keys, kExpired) == Verdict::unknown);
  CHECK(judge(*keys, kCritical) == Verdict::unknown);
  CHECK(judge(*keys, kEs384) == Verdict::unknown);
  CHECK(judge(*keys, "") == Verdict::unknown);
  CHECK(judge(*keys, {}) == Verdict::unknown);
}

TEST(McpAccess, a_token_without_its_signature_is_none) {
  const auto keys = SigningKeys::read(kFirstKey, kRules);
  CHECK(keys.has_value());
  // {"alg":"none"}
  CHECK(judge(*keys,
              "eyJhbGciOiAibm9uZSJ9."
              "eyJpc3MiOiAiaHR0cHM6Ly9pZC5leGFtcGxlIiwgImF1ZCI6ICJodHRwczovL2JvYXJkLmV4YW1wbGUvbWNwIiwgImV4cCI6IDQxMDI0"
              "NDQ4MDAsICJzdWIiOiAiYWRhIiwgInNjb3BlIjogInJlYWQgd3JpdGUifQ.") == Verdict::unknown);
  char text[kMostToken];
  // Each bit of the token matters, but the last two of its signature's last character, which have to be 0.
  for (std::size_t i = 0; i < kGood.size(); i += 7) {
    const std::string_view copy = coir::format(text, kGood);
    text[i] = text[i] == 'A' ? 'B' : 'A';
    CHECK(judge(*keys, copy) == Verdict::unknown);
  }
  CHECK(judge(*keys, kGood.substr(0, kGood.size() - 1)) == Verdict::unknown);
  CHECK(judge(*keys, coir::format(text, kGood, "=")) == Verdict::unknown);
  CHECK(judge(*keys, kGood.substr(0, kGood.rfind('.'))) == Verdict::unknown);
  CHECK(judge(*keys, coir::format(text, kGood.substr(0, kGood.rfind('.')), ".")) == Verdict::unknown);
}

TEST(McpAccess, two_keys_hold_while_the_issuer_changes_them) {
  char text[1024];
  const auto keys =
      SigningKeys::read(coir::format(text, kSecondKey, kFirstKey, '\0').substr(0, kSecondKey.size() * 2), kRules);
  CHECK(keys.has_value());
  CHECK(judge(*keys, kGood) == Verdict::allowed);
  CHECK(judge(*keys, kOfSecond) == Verdict::allowed);
}

TEST(McpAccess, a_point_that_is_not_on_the_curve_is_refused) {
  CHECK(SigningKeys::read("", kRules).error() == ErrorCode::invalid);
  CHECK(SigningKeys::read("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", kRules).error() ==
        ErrorCode::invalid);
  CHECK(SigningKeys::read(kLargeKey, kRules).error() == ErrorCode::invalid);
  CHECK(SigningKeys::read(kFirstKey, {.issuer = "https://id.example"}).error() == ErrorCode::invalid);
  CHECK(SigningKeys::read(kFirstKey, {.audience = "https://board.example/mcp"}).error() == ErrorCode::invalid);
}

// RFC 7515, appendix A.3.
TEST(McpAccess, a_signature_of_the_standard_is_verified) {
  constexpr std::string_view kToken =
      "eyJhbGciOiJFUzI1NiJ9."
      "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVl"
      "fQ.DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q";
  constexpr std::string_view kX = "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU";
  constexpr std::string_view kY = "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0";
  tls::Es256Key key;
  char room[64];
  for (const std::string_view each : {kX, kY}) {
    const auto bytes = decode_base64url(each, room);
    CHECK(bytes && bytes->size() == 32);
    memcpy(key.point + (each == kX ? 0 : 32), bytes->data(), 32);
  }
  const auto token = read_web_token(kToken);
  CHECK(token.has_value());
  const std::string_view signature(token->signature, sizeof token->signature);
  CHECK(tls::verifies_es256(key, plain_digest({token->signed_part}), signature).value_or(false));
  CHECK_FALSE(tls::verifies_es256(key, plain_digest({"another"}), signature).value_or(true));
  key.point[0] = static_cast<unsigned char>(key.point[0] ^ 1);  // not on the curve
  CHECK_FALSE(tls::verifies_es256(key, plain_digest({token->signed_part}), signature).value_or(true));
}

TEST(McpAccess, claims_are_all_there_and_now) {
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

TEST(McpAccess, a_scope_is_a_whole_word) {
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

TEST(McpAccess, a_token_that_was_introspected_needs_fewer_claims) {
  constexpr auto kAsked = ClaimsOf::introspection;
  CHECK(is(judge(R"({"aud":"https://board.example/mcp","username":"a","scope":"read write"})", kAsked),
           Verdict::allowed));
  CHECK(is(judge(R"({"iss":"x","aud":"https://board.example/mcp","sub":"a","scope":"read write"})", kAsked),
           Verdict::unknown));
  CHECK(is(judge(R"({"aud":"x","sub":"a","scope":"read write"})", kAsked), Verdict::unknown));
  CHECK(is(judge(R"({"aud":"https://board.example/mcp","sub":"a","exp":900,"scope":"read write"})", kAsked),
           Verdict::unknown));
}

TEST(McpAccess, two_subjects_have_two_names_and_none_breaks_a_line) {
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
}

TEST(McpAccess, a_verdict_is_remembered_until_its_token_expires) {
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

TEST(McpAccess, tokens_that_are_made_up_drive_out_no_good_one) {
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

TEST(McpAccess, base64_for_urls_has_one_text_for_each_sequence_of_bytes) {
  char room[16];
  CHECK(decode_base64url("-_8", room) == std::string_view("\xfb\xff"));
  CHECK(decode_base64url("", room) == std::string_view());
  for (const std::string_view bad : {"+/8", "-_8=", "-_9", "A", "-_ 8"})
    CHECK_FALSE(decode_base64url(bad, room).has_value());
  CHECK(decode_base64url("AAAAAAAAAAAAAAAAAAAAAAAA", room).error() == ErrorCode::limit);
}

}  // namespace mcp_access_test
