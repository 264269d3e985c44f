#include <coir/http/wire/query.h>
#include <coir/http/wire/url.h>
#include <coir/mcp/access.h>
#include <string.h>

#include "base/charged.h"
#include "http/text/base64.h"
#include "mcp/access/claims.h"
#include "mcp/access/verdicts.h"
#include "mcp/access/web_token.h"
#include "mcp/message/message.h"
#include "mcp/message/text.h"
#include "tls/library/trusted_time.h"

// introspection.cpp: tokens judged by their issuer (RFC 7662), for access.h.
namespace coir::mcp {

namespace {

constexpr std::size_t kMostCredentials = 256;
constexpr std::size_t kMostAnswer = 8 * 1024;
constexpr std::string_view kBasic = "Basic ";

}  // namespace

namespace detail {

struct IntrospectionState {
  explicit IntrospectionState(const IntrospectionOptions& given) noexcept
      : options(given), verdicts(given.rules.lifetime) {}
  ~IntrospectionState() { explicit_bzero(credentials, sizeof credentials); }

  const IntrospectionOptions options;
  Verdicts verdicts;
  char credentials[kBasic.size() + http::base64_bytes(kMostCredentials)];  // the field Authorization
  std::size_t credential_bytes = 0;
};

}  // namespace detail

namespace {

// write_credentials writes the field Authorization: both parts are encoded as in forms (RFC 6749, 2.3.1).
bool write_credentials(detail::IntrospectionState& state) noexcept {
  if (state.options.client_id.empty()) return true;
  char plain[kMostCredentials];
  std::span<char> rest = plain;
  const auto id = http::encode_percent(state.options.client_id, rest);
  if (!id || id->size() == rest.size()) return false;
  plain[id->size()] = ':';
  rest = rest.subspan(id->size() + 1);
  const auto secret = http::encode_percent(state.options.client_secret, rest);
  if (!secret) return false;
  memcpy(state.credentials, kBasic.data(), kBasic.size());
  const auto text = http::encode_base64({plain, id->size() + 1 + secret->size()},
                                        std::span(state.credentials).subspan(kBasic.size()));
  state.credential_bytes = kBasic.size() + text.size();
  explicit_bzero(plain, sizeof plain);
  return true;
}

// ask_issuer asks about a token. `unavailable`: there is no answer that says anything.
Judgement ask_issuer(const detail::IntrospectionState& state, std::string_view token) noexcept {
  constexpr Judgement kUnavailable{.verdict = Verdict::unavailable};
  const IntrospectionOptions& options = state.options;
  http::Client* const client = options.client != nullptr ? options.client : http::Client::shared();
  constexpr std::string_view kBefore = "token=", kBehind = "&token_type_hint=access_token";
  const std::size_t most = token.size() * 3;
  Text form({}, kBefore.size() + most + kBehind.size());
  if (client == nullptr || !form.write(kBefore)) return kUnavailable;
  char* const room = form.take(most);
  if (room == nullptr) return kUnavailable;
  const auto encoded = http::encode_percent(token, {room, most});
  if (!encoded) return kUnavailable;
  form.cut(kBefore.size() + encoded->size());
  if (!form.write(kBehind)) return kUnavailable;
  const http::RequestField fields[] = {
      {.name = "Accept", .value = "application/json"},
      {.name = "Authorization", .value = {state.credentials, state.credential_bytes}, .secret = true}};
  auto response = client->post(options.url, form.view(), "application/x-www-form-urlencoded",
                               {.deadline = Deadline::after(options.deadline),
                                .fields = std::span(fields).first(state.credential_bytes != 0 ? 2 : 1),
                                .max_redirects = 0});
  if (!response || response->status() != 200) return kUnavailable;
  const auto document = response->json(kMostAnswer);
  if (!document) return kUnavailable;
  const JsonView claims = document->root();
  const auto active = member_of(object_of(claims), "active");
  if (!is_kind(active, JsonKind::boolean)) return kUnavailable;
  if (!active->boolean().value_or(false)) return {};
  return judge_claims(claims, options.rules, ClaimsOf::introspection, tls::trusted_time().seconds);
}

}  // namespace

std::expected<Introspection, Error> Introspection::create(const IntrospectionOptions& options) noexcept {
  if (!http::parse_url(options.url) || options.rules.audience.empty()) return std::unexpected(ErrorCode::invalid);
  auto* const state = construct_charged<detail::IntrospectionState>(account::mcp, options);
  if (state == nullptr) return std::unexpected(ErrorCode::no_memory);
  Introspection made(state);
  if (!write_credentials(*state)) return std::unexpected(ErrorCode::invalid);
  return made;
}

Introspection::~Introspection() {
  destroy_charged(account::mcp, state_);
}

Verdict Introspection::judge(std::string_view token, Principal& who) const noexcept {
  if (token.empty() || token.size() > kMostToken) return Verdict::unknown;
  const Digest digest = plain_digest({token});
  Judgement judged;
  if (!state_->verdicts.find(digest, monotonic_ns(), judged)) {
    judged = ask_issuer(*state_, token);
    if (judged.verdict == Verdict::unavailable) return judged.verdict;
    state_->verdicts.keep(digest, monotonic_ns(), judged);
  }
  who = judged.who;
  return judged.verdict;
}

}  // namespace coir::mcp
