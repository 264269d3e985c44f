// A client sends anything as an access token, and an issuer's answer holds anything. No key has signed it, so that it is never
// allowed; its parts are read as they are, and claims are judged without a complaint.

#include <coir/json.h>
#include <coir/mcp/access.h>

#include "mcp/access/claims.h"
#include "mcp/access/web_token.h"
#include "require.h"

using namespace coir;
using namespace coir::mcp;

namespace {

constexpr std::string_view kScopes[] = {"a", "b"};
constexpr AccessRules kRules = {.issuer = "i", .audience = "a", .scopes = kScopes};

void judge_anything(std::string_view text, ClaimsOf of) {
  const auto document = JsonDocument::parse(text, {.max_bytes = kMostToken, .max_depth = 8});
  if (!document) return;
  const Judgement judged = judge_claims(document->root(), kRules, of, 1000);
  require(judged.left_s >= 0);
  for (const char c : judged.who.name()) require(c > ' ' && c <= '~');
  if (judged.verdict == Verdict::unknown) return;
  require(!judged.who.name().empty());
  require(judged.verdict == Verdict::allowed || judged.verdict == Verdict::forbidden);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  if (size > 2 * kMostToken) return 0;
  ::Source source(data, size);
  const unsigned what = source.byte();
  const Exact given(source.rest());
  if (what % 3 == 0) {
    judge_anything(given.view(), what % 2 == 0 ? ClaimsOf::signed_token : ClaimsOf::introspection);
    return 0;
  }
  if (const auto token = read_web_token(given.view())) {
    const Exact room(token->claims.size() + 3);
    if (const auto claims = decode_base64url(token->claims, {room.data(), room.size()})) {
      require(claims->size() <= token->claims.size());
      judge_anything(*claims, ClaimsOf::signed_token);
    }
  }
  static const auto keys = SigningKeys::read(
      "-----BEGIN PUBLIC KEY-----\n"
      "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEyP0B4fYc1yP/0wHxZTd7+Ruo04Je\n"
      "kM66BSRhpR101AuioTKgs/D2F6ObOEmKin0QqqlYRoXTrT9JwJECYTQzqg==\n"
      "-----END PUBLIC KEY-----\n",
      kRules);
  require(keys.has_value());
  Principal who;
  require(keys->judge(given.view(), who) == Verdict::unknown);
  return 0;
}
