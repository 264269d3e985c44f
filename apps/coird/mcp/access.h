#pragma once

#include "../options/options.h"
#include "options.h"

#if COIRD_MCP
#include <coir/mcp.h>

#if COIR_TLS
#include <coir/mcp/access.h>
#endif

#include <optional>
#include <span>
#include <string_view>

// McpAccess is who may call: whoever brings the token of --mcp-token-file, or an access token of --mcp-issuer, judged by
// --mcp-jwt-key or --mcp-introspect.
class McpAccess {
 public:
  McpAccess() noexcept = default;
  McpAccess(const McpAccess&) = delete;
  McpAccess& operator=(const McpAccess&) = delete;
  ~McpAccess();

  // open reads the files that the options name. False: one line has said why not.
  [[nodiscard]] bool open(const Options& options) noexcept;

  // asks tells whether requests are judged here at all, and by_issuer whether by an issuer's tokens, by judge.
  bool asks() const noexcept { return !token_.empty() || by_issuer(); }
  bool by_issuer() const noexcept { return !issuer_.empty(); }
  std::string_view token() const noexcept { return token_; }
  coir::mcp::Verdict judge(std::string_view token, coir::mcp::Principal& who) const noexcept;

  // The metadata that tells a client where to get a token (RFC 9728).
  std::string_view resource() const noexcept { return resource_; }
  std::span<const std::string_view> issuers() const noexcept { return {&issuer_, issuer_.empty() ? 0u : 1u}; }
  std::span<const std::string_view> scopes() const noexcept { return scopes_; }

 private:
  bool read_token(const char* path) noexcept;
  bool open_issuer(const McpOptions& options) noexcept;

  const Options* all_ = nullptr;
  std::string_view token_, issuer_, resource_;
  std::span<const std::string_view> scopes_;
  char token_room_[257] = {};
#if COIR_TLS
  std::optional<coir::mcp::SigningKeys> keys_;
#if COIR_CLIENT
  bool open_introspection(const McpOptions& options, const coir::mcp::AccessRules& rules) noexcept;

  std::optional<coir::http::Client> client_;
  std::optional<coir::mcp::Introspection> introspection_;
#endif
#endif
};
#endif
