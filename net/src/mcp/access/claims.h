#pragma once

#include <coir/json.h>
#include <coir/mcp/access.h>

#include <cstdint>
#include <string_view>

namespace coir::mcp {

// Judgement is what has been found out about a token.
struct Judgement {
  Verdict verdict = Verdict::unknown;
  Principal who = {};
  std::int64_t left_s = 0;  // until it expires
};

// ClaimsOf is where claims come from: in a signed token all of them have to be there; the server that is asked about a token may
// leave out its issuer and when it expires, and has judged whether it holds already.
enum class ClaimsOf : std::uint8_t { signed_token, introspection };

// judge_claims judges the claims of a token whose signature is right, or that is active.
Judgement judge_claims(JsonView claims, const AccessRules& rules, ClaimsOf of, std::int64_t now_s) noexcept;

// name_principal makes a name of the text that an issuer has for somebody: two texts have two names, and no name breaks a line.
void name_principal(Principal& who, std::string_view subject) noexcept;

}  // namespace coir::mcp
