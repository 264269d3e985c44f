// Access tokens that are signed: whose signature counts, and of which form they are.

#include <CppUTest/TestHarness.h>
#include <coir/format.h>
#include <coir/mcp/access.h>
#include <string.h>

#include <string_view>

#include "http/text/base64.h"
#include "mcp/access/web_token.h"
#include "tests/unit/mcp/access/signed_token.h"
#include "tls/library/es256.h"

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

// with_header is a token of that header, whose signature has the right form and no meaning.
std::expected<WebToken, Error> with_header(std::string_view header, std::string_view claims = "e30",
                                           std::string_view more = {}) {
  char encoded[1024], text[8192];
  std::string_view part = http::encode_base64(header, encoded);
  while (part.ends_with('=')) part.remove_suffix(1);
  for (char& c : std::span(encoded).first(part.size())) c = c == '+' ? '-' : c == '/' ? '_' : c;
  char signature[87];
  memset(signature, 'A', sizeof signature - 1);
  return read_web_token(coir::format(text, part, ".", claims, ".", std::string_view(signature, 86), more));
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

TEST(McpAccess, a_header_names_es256_and_a_token_and_nothing_critical) {
  for (const std::string_view good :
       {R"({"alg":"ES256"})", R"({"alg":"ES256","typ":"JWT"})", R"({"alg":"ES256","typ":"at+jwt"})",
        R"({"alg":"ES256","typ":"Application/AT+JWT"})", R"({"alg":"ES256","kid":"1","x":{"y":[1]}})"}) {
    CHECK(with_header(good).has_value());
  }
  for (const std::string_view bad :
       {"{}", "[]", R"("ES256")", "", R"({"alg":"none"})", R"({"alg":"ES384"})", R"({"alg":"es256"})",
        R"({"alg":["ES256"]})", R"({"alg":"ES256","typ":"JOSE"})", R"({"alg":"ES256","typ":"application/"})",
        R"({"alg":"ES256","typ":7})", R"({"alg":"ES256","crit":[]})", R"({"alg":"ES256","b64":true})",
        R"({"alg":"ES256","x":[[[[1]]]]})"}) {
    CHECK(with_header(bad).error() == ErrorCode::invalid);
  }
  char many[kMostToken], header[700];
  memset(many, 'e', sizeof many);
  const auto of = [&](std::size_t bytes) {
    return coir::format(header, R"({"alg":"ES256","x":")", std::string_view(many, bytes), R"("})");
  };
  CHECK(with_header(of(300)).has_value());
  CHECK(with_header(of(400)).error() == ErrorCode::invalid);
  // A token of more than kMostToken bytes is not looked at; it has three parts.
  CHECK(with_header("{\"alg\":\"ES256\"}", {many, kMostToken - 150}).has_value());
  CHECK(with_header("{\"alg\":\"ES256\"}", {many, kMostToken - 100}).error() == ErrorCode::invalid);
  CHECK(with_header("{\"alg\":\"ES256\"}", "e30", ".").error() == ErrorCode::invalid);
  CHECK(read_web_token(kGood.substr(0, kGood.find('.'))).error() == ErrorCode::invalid);
}

TEST(McpAccess, a_key_too_many_or_too_long_is_refused) {
  char text[2048], room[2048];
  std::string_view keys;
  for (std::size_t i = 1; i <= SigningKeys::kMostKeys + 1; ++i) {
    const std::size_t before = keys.size();
    memcpy(text + before, kFirstKey.data(), kFirstKey.size());
    text[before + kFirstKey.size()] = '\0';
    keys = {text, before + kFirstKey.size()};
    CHECK_EQUAL(i <= SigningKeys::kMostKeys, SigningKeys::read(keys, kRules).has_value());
  }
  memset(text, 'A', sizeof text);
  const std::string_view large =
      coir::format(room, "-----BEGIN PUBLIC KEY-----\n", std::string_view(text, 600), "\n-----END PUBLIC KEY-----\n");
  CHECK(SigningKeys::read(large, kRules).error() == ErrorCode::invalid);
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
