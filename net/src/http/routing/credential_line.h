#pragma once

#include <coir/net/detail/secret_hash.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace coir::http {

// Credential is one line of a CredentialStore's text.
struct Credential {
  static constexpr std::size_t kMostName = 63;
  static constexpr std::size_t kMostSalt = 32;
  static constexpr std::uint32_t kFewestIterations = 1'000;
  static constexpr std::uint32_t kMostIterations = 10'000'000;

  Digest hash{};
  std::uint32_t iterations = 0;  // 0: of a token
  std::uint8_t name_size = 0;
  std::uint8_t salt_size = 0;
  char name[kMostName];
  char salt[kMostSalt];

  bool is_token() const noexcept { return iterations == 0; }
  std::string_view name_text() const noexcept { return {name, name_size}; }
  std::string_view salt_text() const noexcept { return {salt, salt_size}; }
};

// is_credential_name tells what may be a name.
bool is_credential_name(std::string_view name) noexcept;

// is_credential_password tells what may be a password: any bytes but controls.
bool is_credential_password(std::string_view password) noexcept;

// is_bearer_token tells what may be a token (b64token, RFC 6750, 2.1).
bool is_bearer_token(std::string_view text) noexcept;

// parse_credential reads a line that is neither empty nor a comment. Returns null, or what is wrong with it.
const char* parse_credential(std::string_view line, Credential& out) noexcept;

}  // namespace coir::http
