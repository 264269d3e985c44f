#include "mcp/access/claims.h"

#include <coir/net/detail/secret_hash.h>
#include <string.h>

#include <algorithm>

#include "http/text/base64.h"
#include "http/text/characters.h"
#include "mcp/message/message.h"

namespace coir::mcp {
namespace {

constexpr std::string_view kHashed = "sha256:";

std::string_view text_claim(JsonView claims, std::string_view name) noexcept {
  return text_of(claims.find(name)).value_or(std::string_view());
}

// is_for tells whether `aud`, one text or several, has the audience.
bool is_for(const std::optional<JsonView>& audiences, std::string_view wanted) noexcept {
  if (text_of(audiences) == wanted) return true;
  if (!is_kind(audiences, JsonKind::array)) return false;
  for (const JsonView each : audiences->elements()) {
    if (text_of(each) == wanted) return true;
  }
  return false;
}

// has_scope looks for a word among those that single blanks part (RFC 6749, 3.3).
bool has_scope(std::string_view scopes, std::string_view wanted) noexcept {
  while (!scopes.empty()) {
    const std::string_view each = http::until(scopes, ' ');
    if (each == wanted) return true;
    scopes = each.size() < scopes.size() ? scopes.substr(each.size() + 1) : std::string_view();
  }
  return false;
}

// time_claim reads a NumericDate, which may have a fraction. False: it is there and no time.
bool time_claim(JsonView claims, std::string_view name, std::optional<double>& into) noexcept {
  const auto value = claims.find(name);
  if (!value) return true;
  const auto number = value->number();
  if (number) into = *number;
  return number.has_value();
}

}  // namespace

void name_principal(Principal& who, std::string_view subject) noexcept {
  const bool visible = std::ranges::all_of(subject, [](char c) { return c > ' ' && c <= '~'; });
  if (visible && subject.size() <= Principal::kMost && !subject.starts_with(kHashed)) return who.set(subject);
  char text[kHashed.size() + http::base64_bytes(kDigestBytes)];
  static_assert(sizeof text <= Principal::kMost);
  memcpy(text, kHashed.data(), kHashed.size());
  const Digest digest = plain_digest({subject});
  http::encode_base64(view(digest), std::span(text).subspan(kHashed.size()));
  who.set({text, sizeof text});
}

Judgement judge_claims(JsonView claims, const AccessRules& rules, ClaimsOf of, std::int64_t now_s) noexcept {
  Judgement judged;
  if (claims.kind() != JsonKind::object) return judged;
  const bool is_signed = of == ClaimsOf::signed_token;
  const auto issuer = claims.find("iss");
  if ((issuer || is_signed) && text_of(issuer) != rules.issuer) return judged;
  if (!is_for(claims.find("aud"), rules.audience)) return judged;

  std::optional<double> expires, begins;
  if (!time_claim(claims, "exp", expires) || !time_claim(claims, "nbf", begins)) return judged;
  const auto now = static_cast<double>(now_s);
  const auto leeway = static_cast<double>(rules.leeway.count());
  if (is_signed && !expires) return judged;
  if (expires && *expires + leeway <= now) return judged;
  if (is_signed && begins && *begins - leeway > now) return judged;

  std::string_view subject = text_claim(claims, "sub");
  if (subject.empty() && !is_signed) subject = text_claim(claims, "username");
  if (subject.empty()) subject = text_claim(claims, "client_id");
  if (subject.empty()) return judged;
  name_principal(judged.who, subject);
  constexpr double kLongest = 1e9;
  judged.left_s = static_cast<std::int64_t>(expires ? std::clamp(*expires + leeway - now, 0.0, kLongest) : kLongest);
  const std::string_view scopes = text_claim(claims, "scope");
  const bool may = std::ranges::all_of(rules.scopes, [&](std::string_view each) { return has_scope(scopes, each); });
  judged.verdict = may ? Verdict::allowed : Verdict::forbidden;
  return judged;
}

}  // namespace coir::mcp
