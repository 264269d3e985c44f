#include "mcp/message/request_state.h"

#include <coir/config.h>
#include <string.h>

#if COIR_TLS
#include <coir/http/authorization.h>
#include <coir/net/detail/secret_hash.h>
#endif

#include "http/text/base64.h"

namespace coir::mcp {

#if COIR_TLS

namespace {

constexpr std::size_t kExpiryBytes = 8;
static_assert(kStateOverhead == kExpiryBytes + kDigestBytes);

struct Lengths {
  char bytes[5 * 8];
};

// Each part is preceded by its length, so that no two bindings are the same bytes.
Digest digest_of(const StateBinding& binding, std::string_view expiry_and_state) noexcept {
  Lengths lengths;
  const std::string_view parts[] = {binding.principal, binding.method, binding.name, binding.arguments,
                                    expiry_and_state};
  for (std::size_t i = 0; i < 5; ++i) {
    const std::uint64_t size = parts[i].size();
    for (std::size_t b = 0; b < 8; ++b) lengths.bytes[i * 8 + b] = static_cast<char>(size >> (8 * b));
  }
  return keyed_digest(binding.key,
                      {{lengths.bytes, sizeof lengths.bytes}, parts[0], parts[1], parts[2], parts[3], parts[4]});
}

}  // namespace

std::expected<std::string_view, Error> seal_state(const StateBinding& binding, std::string_view state,
                                                  std::int64_t expires_s, std::span<char> room,
                                                  std::span<char> out) noexcept {
  const std::size_t size = kStateOverhead + state.size();
  if (room.size() < size || out.size() < sealed_bytes(state.size())) return std::unexpected(ErrorCode::limit);
  // | digest | expiry | state |
  char* const signed_part = room.data() + kDigestBytes;
  for (std::size_t b = 0; b < kExpiryBytes; ++b) {
    signed_part[b] = static_cast<char>(static_cast<std::uint64_t>(expires_s) >> (8 * b));
  }
  if (!state.empty()) memcpy(signed_part + kExpiryBytes, state.data(), state.size());
  const Digest digest = digest_of(binding, {signed_part, kExpiryBytes + state.size()});
  memcpy(room.data(), digest.data(), kDigestBytes);
  return http::encode_base64({room.data(), size}, out);
}

std::expected<std::string_view, Error> open_state(const StateBinding& binding, std::string_view text,
                                                  std::int64_t now_s, std::span<char> room) noexcept {
  const auto bytes = http::decode_base64(text, room);
  if (!bytes) return std::unexpected(bytes.error());
  if (bytes->size() < kStateOverhead) return std::unexpected(ErrorCode::invalid);
  const std::string_view signed_part = bytes->substr(kDigestBytes);
  const Digest digest = digest_of(binding, signed_part);
  if (!http::same_secret(bytes->substr(0, kDigestBytes), view(digest))) return std::unexpected(ErrorCode::invalid);
  std::uint64_t expires = 0;
  for (std::size_t b = 0; b < kExpiryBytes; ++b) {
    expires |= static_cast<std::uint64_t>(static_cast<unsigned char>(signed_part[b])) << (8 * b);
  }
  if (static_cast<std::int64_t>(expires) < now_s) return std::unexpected(ErrorCode::timed_out);
  return signed_part.substr(kExpiryBytes);
}

#else

std::expected<std::string_view, Error> seal_state(const StateBinding&, std::string_view, std::int64_t, std::span<char>,
                                                  std::span<char>) noexcept {
  return std::unexpected(ErrorCode::unsupported);
}

std::expected<std::string_view, Error> open_state(const StateBinding&, std::string_view, std::int64_t,
                                                  std::span<char>) noexcept {
  return std::unexpected(ErrorCode::unsupported);
}

#endif

}  // namespace coir::mcp
