#include "access.h"

#if COIRD_MCP

#include <coir/file.h>
#include <string.h>

#include "../complaint.h"
#include "../private_file.h"

namespace {

constexpr const char* kSeeAccess = "coird --help explains --mcp";
[[maybe_unused]] constexpr std::size_t kMostKeyFile = 4096;

}  // namespace

McpAccess::~McpAccess() {
  explicit_bzero(token_room_, sizeof token_room_);
}

bool McpAccess::read_token(const char* path) noexcept {
  const auto token = ::read_token({path, all_, "mcp-token-file"}, kSeeAccess, token_room_);
  if (token) token_ = *token;
  return token.has_value();
}

bool McpAccess::open(const Options& all) noexcept {
  all_ = &all;
  const McpOptions& options = all.mcp;
  if (options.token_file != nullptr && !read_token(options.token_file)) return false;
  return options.issuer == nullptr || open_issuer(options);
}

#if COIR_TLS

bool McpAccess::open_issuer(const McpOptions& options) noexcept {
  issuer_ = options.issuer;
  resource_ = options.audience;
  scopes_ = {options.scopes.texts, options.scopes.count};
  const coir::mcp::AccessRules rules{.issuer = issuer_, .audience = resource_, .scopes = scopes_};
#if COIR_CLIENT
  if (options.introspect != nullptr) return open_introspection(options, rules);
#endif
  const auto file = coir::File::open(options.jwt_key);
  auto pem = file ? file->read_all(coir::account::mcp, kMostKeyFile) : std::unexpected(file.error());
  if (!pem) return all_->wrong("mcp-jwt-key", options.jwt_key, "name a file of PEM", {pem.error()});
  auto keys = coir::mcp::SigningKeys::read(pem->text(), rules);
  if (!keys && keys.error() == coir::ErrorCode::invalid)
    return all_->wrong("mcp-jwt-key", options.jwt_key, "openssl ec -in KEY -pubout writes one",
                       {"no public key on P-256, or more than ", coir::mcp::SigningKeys::kMostKeys, " of them"});
  if (!keys) return all_->wrong("mcp-jwt-key", options.jwt_key, kSeeAccess, {keys.error()});
  keys_.emplace(std::move(*keys));
  return true;
}

#if COIR_CLIENT
bool McpAccess::open_introspection(const McpOptions& options, const coir::mcp::AccessRules& rules) noexcept {
  coir::mcp::IntrospectionOptions asked{.url = options.introspect, .rules = rules};
  if (options.client_file != nullptr) {
    const auto line = read_secret_line({options.client_file, all_, "mcp-client-file"}, kSeeAccess, token_room_);
    if (!line) return false;
    const std::size_t colon = line->find(':');
    if (colon == line->npos || colon == 0)
      return all_->wrong("mcp-client-file", options.client_file, "as the issuer has registered this board",
                         {"its first line is not ID:SECRET"});
    asked.client_id = line->substr(0, colon);
    asked.client_secret = line->substr(colon + 1);
  }
  auto client = coir::http::Client::create({.max_connections = 8, .max_resting = 2});
  if (!client) return all_->wrong("mcp-introspect", options.introspect, kSeeAccess, {client.error()});
  client_.emplace(std::move(*client));
  asked.client = &*client_;
  auto made = coir::mcp::Introspection::create(asked);
  if (!made)
    return all_->wrong("mcp-introspect", options.introspect, "such as https://id.example/introspect",
                       {"this address, or the content of mcp-client-file: ", made.error()});
  introspection_.emplace(std::move(*made));
  return true;
}
#endif

coir::mcp::Verdict McpAccess::judge(std::string_view token, coir::mcp::Principal& who) const noexcept {
#if COIR_CLIENT
  if (introspection_) return introspection_->judge(token, who);
#endif
  return keys_ ? keys_->judge(token, who) : coir::mcp::Verdict::unknown;
}

#else

bool McpAccess::open_issuer(const McpOptions&) noexcept {
  return false;
}

coir::mcp::Verdict McpAccess::judge(std::string_view, coir::mcp::Principal&) const noexcept {
  return coir::mcp::Verdict::unknown;
}

#endif

#endif
