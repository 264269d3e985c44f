#include "tls/library/es256.h"

#include <coir/worker_stack.h>
#include <mbedtls/ecdsa.h>
#include <mbedtls/ecp.h>
#include <mbedtls/pk.h>
#include <string.h>

#include "tls/library/library.h"

namespace coir::tls {
namespace {

constexpr unsigned char kUncompressed = 4;  // SEC 1, 2.3.3: both coordinates follow
constexpr std::size_t kNumberBytes = 32;

using Point = unsigned char[1 + sizeof Es256Key::point];

const unsigned char* es256_bytes(std::string_view text) noexcept {
  return reinterpret_cast<const unsigned char*>(text.data());
}

int read_point(std::string_view pem, Point& into) noexcept {
  mbedtls_pk_context key;
  mbedtls_pk_init(&key);
  int code = mbedtls_pk_parse_public_key(&key, es256_bytes(pem), pem.size() + 1);
  if (code == 0 && mbedtls_pk_get_type(&key) != MBEDTLS_PK_ECKEY) code = MBEDTLS_ERR_PK_TYPE_MISMATCH;
  if (code == 0) {
    const mbedtls_ecp_keypair* const pair = mbedtls_pk_ec(key);
    std::size_t size = 0;
    code = mbedtls_ecp_keypair_get_group_id(pair) == MBEDTLS_ECP_DP_SECP256R1
               ? mbedtls_ecp_write_public_key(pair, MBEDTLS_ECP_PF_UNCOMPRESSED, &size, into, sizeof into)
               : MBEDTLS_ERR_PK_TYPE_MISMATCH;
  }
  mbedtls_pk_free(&key);
  return code;
}

int verify(const Es256Key& key, const Digest& digest, std::string_view signature) noexcept {
  Point point = {kUncompressed};
  memcpy(point + 1, key.point, sizeof key.point);
  mbedtls_ecp_group curve;
  mbedtls_ecp_point public_point;
  mbedtls_mpi r, s;
  mbedtls_ecp_group_init(&curve);
  mbedtls_ecp_point_init(&public_point);
  mbedtls_mpi_init(&r);
  mbedtls_mpi_init(&s);
  int code = mbedtls_ecp_group_load(&curve, MBEDTLS_ECP_DP_SECP256R1);
  if (code == 0) code = mbedtls_ecp_point_read_binary(&curve, &public_point, point, sizeof point);
  if (code == 0) code = mbedtls_mpi_read_binary(&r, es256_bytes(signature), kNumberBytes);
  if (code == 0) code = mbedtls_mpi_read_binary(&s, es256_bytes(signature) + kNumberBytes, kNumberBytes);
  if (code == 0) code = mbedtls_ecdsa_verify(&curve, digest.data(), digest.size(), &public_point, &r, &s);
  mbedtls_mpi_free(&s);
  mbedtls_mpi_free(&r);
  mbedtls_ecp_point_free(&public_point);
  mbedtls_ecp_group_free(&curve);
  return code;
}

}  // namespace

std::expected<Es256Key, Error> read_es256_key(std::string_view pem) noexcept {
  if (auto started = start_library(); !started) return std::unexpected(started.error());
  Point point;
  const int code = on_worker_stack([&]() noexcept { return read_point(pem, point); });
  if (code != 0) {
    return std::unexpected(error_of(code) == ErrorCode::no_memory ? ErrorCode::no_memory : ErrorCode::invalid);
  }
  Es256Key key;
  memcpy(key.point, point + 1, sizeof key.point);
  return key;
}

std::expected<bool, Error> verifies_es256(const Es256Key& key, const Digest& digest,
                                          std::string_view signature) noexcept {
  if (signature.size() != kEs256SignatureBytes) return false;
  const int code = on_worker_stack([&]() noexcept { return verify(key, digest, signature); });
  if (code != 0 && error_of(code) == ErrorCode::no_memory) return std::unexpected(ErrorCode::no_memory);
  return code == 0;
}

}  // namespace coir::tls
