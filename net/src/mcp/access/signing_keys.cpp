#include <coir/mcp/access.h>

#include <string.h>

#include "base/charged.h"
#include "mcp/access/claims.h"
#include "mcp/access/verdicts.h"
#include "mcp/access/web_token.h"
#include "mcp/message/text.h"
#include "tls/library/es256.h"
#include "tls/library/trusted_time.h"

// signing_keys.cpp: tokens judged by keys, for access.h.
namespace coir::mcp {

namespace detail {

struct SigningKeysState {
  explicit SigningKeysState(const AccessRules& given) noexcept : rules(given), verdicts(given.lifetime) {}

  const AccessRules rules;
  tls::Es256Key keys[SigningKeys::kMostKeys];
  std::size_t count = 0;
  Verdicts verdicts;
};

}  // namespace detail

namespace {

constexpr std::size_t kMostPem = 512;  // of one key

// is_signed tells whether one of the keys has made the signature.
std::expected<bool, Error> is_signed(const detail::SigningKeysState& state, const WebToken& token) noexcept {
  const Digest digest = plain_digest({token.signed_part});
  for (std::size_t i = 0; i < state.count; ++i) {
    const auto right =
        tls::verifies_es256(state.keys[i], digest, std::string_view(token.signature, sizeof token.signature));
    if (!right || *right) return right;
  }
  return false;
}

// judge_token judges a token that is not remembered. Errors: no_memory.
std::expected<Judgement, Error> judge_token(const detail::SigningKeysState& state, std::string_view text) noexcept {
  const tls::TrustedTime now = tls::trusted_time();
  if (!now.valid) return Judgement{.verdict = Verdict::unavailable};
  const auto refuse = [](Error why) -> std::expected<Judgement, Error> {
    if (why == ErrorCode::no_memory) return std::unexpected(why);
    return Judgement{};
  };
  const auto token = read_web_token(text);
  if (!token) return refuse(token.error());
  const auto right = is_signed(state, *token);
  if (!right || !*right) return refuse(right ? Error{ErrorCode::invalid} : right.error());
  Text room({}, kMostToken);
  const std::size_t size = token->claims.size() + 3;
  char* const memory = room.take(size);
  if (memory == nullptr) return refuse(room.failure());
  const auto claims = decode_base64url(token->claims, {memory, size});
  if (!claims) return Judgement{};
  const auto document = JsonDocument::parse(*claims, {.max_bytes = kMostToken, .max_depth = 8});
  if (!document) return refuse(document.error().error);
  return judge_claims(document->root(), state.rules, ClaimsOf::signed_token, now.seconds);
}

}  // namespace

std::expected<SigningKeys, Error> SigningKeys::read(std::string_view pem, const AccessRules& rules) noexcept {
  if (rules.issuer.empty() || rules.audience.empty()) return std::unexpected(ErrorCode::invalid);
  auto* const state = construct_charged<detail::SigningKeysState>(account::mcp, rules);
  if (state == nullptr) return std::unexpected(ErrorCode::no_memory);
  SigningKeys made(state);
  constexpr std::string_view kBegin = "-----BEGIN ";
  for (std::size_t at = pem.find(kBegin); at != pem.npos;) {
    const std::size_t next = pem.find(kBegin, at + kBegin.size());
    const std::string_view each = pem.substr(at, next - at);
    char room[kMostPem + 1];
    if (state->count == kMostKeys || each.size() > kMostPem) return std::unexpected(ErrorCode::invalid);
    memcpy(room, each.data(), each.size());
    room[each.size()] = '\0';
    const auto key = tls::read_es256_key({room, each.size()});
    if (!key) return std::unexpected(key.error());
    state->keys[state->count++] = *key;
    at = next;
  }
  if (state->count == 0) return std::unexpected(ErrorCode::invalid);
  return made;
}

SigningKeys::~SigningKeys() {
  destroy_charged(account::mcp, state_);
}

Verdict SigningKeys::judge(std::string_view token, Principal& who) const noexcept {
  if (token.empty()) return Verdict::unknown;
  const Digest digest = plain_digest({token});
  Judgement judged;
  if (!state_->verdicts.find(digest, monotonic_ns(), judged)) {
    const auto found = judge_token(*state_, token);
    if (!found) return Verdict::unavailable;
    judged = *found;
    // An invented token costs only the check of a signature, which need not be remembered.
    if (judged.verdict == Verdict::allowed || judged.verdict == Verdict::forbidden) {
      state_->verdicts.keep(digest, monotonic_ns(), judged);
    }
  }
  who = judged.who;
  return judged.verdict;
}

}  // namespace coir::mcp
