#pragma once

// Access tokens of OAuth 2.1, judged by their issuer's key.
//
//   auto keys = mcp::SigningKeys::read(text, {.issuer = "https://id.example", .audience = "https://board/mcp"});
//   if (!keys) return complain("the key cannot be read");

#include <coir/config.h>
#include <coir/mcp.h>

#if !COIR_TLS
#error "this build of coir has no TLS, and no signatures without it: configure it with -DCOIR_TLS=ON"
#endif

#if COIR_CLIENT
#include <coir/http/client.h>
#endif

#include <cstddef>
#include <expected>
#include <span>
#include <string_view>
#include <utility>

namespace coir::mcp {

// An OAuth 2.1 resource server: who may ask is decided by access tokens that an authorization server issues. They are judged by
// its public key, or by asking it.
//
//   auto keys = mcp::SigningKeys::read(pem, {.issuer = "https://id.example", .audience = "https://board.example/mcp"});
//   auto server = mcp::McpServer::create({
//       .tools = kTools,
//       .authorize = [&](const http::Request&, std::string_view token, mcp::Principal& who) {
//         return keys->judge(token, who);
//       },
//       .resource_url = "https://board.example/mcp",
//       .authorization_servers = kIssuers,
//   });

// AccessRules is which tokens are taken. All that it refers to outlives what has the rules.
struct AccessRules {
  std::string_view issuer;    // the claim `iss`
  std::string_view audience;  // among the claim `aud`: this server, as McpServerOptions::resource_url names it
  std::span<const std::string_view> scopes = {};  // a token without one of these is `forbidden`
  std::chrono::seconds leeway{30};                // by which two clocks may differ
  std::chrono::seconds lifetime{60};              // of a verdict that is remembered, at most; 0: none is
};

namespace detail {
struct SigningKeysState;    // signing_keys.cpp
struct IntrospectionState;  // introspection.cpp
}  // namespace detail

// SigningKeys judges JSON Web Tokens (RFC 7519, RFC 9068) that are signed by ES256. A token has to name the issuer, the audience,
// when it expires (`exp`) and its subject (`sub`, or `client_id`), which becomes the principal; `nbf` is respected. A subject
// that is no visible ASCII of at most Principal::kMost characters becomes "sha256:" and its digest. The latest verdicts are
// remembered, so that a client's token costs one signature in AccessRules::lifetime. Any fiber or thread.
class SigningKeys {
 public:
  static constexpr std::size_t kMostKeys = 4;

  // read reads the public keys of a PEM text with a NUL behind it: two, while the issuer changes its key. Errors: invalid (no
  // public key on P-256, more than kMostKeys, no issuer or audience), no_memory.
  [[nodiscard]] static std::expected<SigningKeys, Error> read(std::string_view pem, const AccessRules& rules) noexcept;

  SigningKeys(SigningKeys&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  SigningKeys& operator=(SigningKeys&&) = delete;
  ~SigningKeys();

  // judge is for McpServerOptions::authorize. `unavailable`: there is no memory, or this machine's clock has not been
  // set, so that nobody knows whether the token has expired.
  Verdict judge(std::string_view token, Principal& who) const noexcept;

 private:
  explicit SigningKeys(detail::SigningKeysState* state) noexcept : state_(state) {}

  detail::SigningKeysState* state_;
};

#if COIR_CLIENT
struct IntrospectionOptions {
  std::string_view url;        // of the authorization server's introspection endpoint
  std::string_view client_id;  // as whom this server asks, by the Basic scheme
  std::string_view client_secret;
  AccessRules rules;
  std::chrono::milliseconds deadline{5'000};
  http::Client* client = nullptr;  // outlives it; null: http::Client::shared()
};

// Introspection judges tokens of any kind by asking the authorization server (RFC 7662). An active token has to name
// the audience, and no other issuer; the principal is its `sub`, `username` or `client_id`, as with SigningKeys.
// Verdicts are remembered, bad ones too; a token that the server has revoked counts for AccessRules::lifetime at most.
// Any fiber or thread.
class Introspection {
 public:
  // create takes memory. Errors: invalid (no URL of http or https, no audience, too long an id or
  // secret), unsupported (https, in a build without TLS), no_memory.
  [[nodiscard]] static std::expected<Introspection, Error> create(const IntrospectionOptions& options) noexcept;

  Introspection(Introspection&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  Introspection& operator=(Introspection&&) = delete;
  ~Introspection();

  // judge is for McpServerOptions::authorize. `unavailable`: the authorization server gave no answer, or there is no memory.
  Verdict judge(std::string_view token, Principal& who) const noexcept;

 private:
  explicit Introspection(detail::IntrospectionState* state) noexcept : state_(state) {}

  detail::IntrospectionState* state_;
};
#endif

}  // namespace coir::mcp
