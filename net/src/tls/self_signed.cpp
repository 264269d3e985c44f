#include <coir/net/certificates.h>

#include <arpa/inet.h>
#include <coir/worker_stack.h>
#include <mbedtls/ecp.h>
#include <mbedtls/pk.h>
#include <mbedtls/platform_util.h>
#include <mbedtls/sha256.h>
#include <mbedtls/x509_crt.h>
#include <string.h>
#include <strings.h>

#include "tls/library/library.h"

namespace coir {
namespace {

constexpr std::size_t kMaxNames = SelfSigned::kMaxNames;
constexpr std::size_t kMaxNameBytes = 64;

// AlternativeNames is the list of names in mbedTLS's form, with addresses in binary.
class AlternativeNames {
 public:
  bool add(std::string_view name) noexcept {
    if (count_ == kMaxNames || name.empty() || name.size() >= kMaxNameBytes) return false;
    char* const text = text_[count_];
    memcpy(text, name.data(), name.size());
    text[name.size()] = '\0';
    mbedtls_x509_san_list& entry = entries_[count_];
    entry = {};
    unsigned char* const address = address_[count_];
    std::size_t bytes = 0;
    if (inet_pton(AF_INET, text, address) == 1) bytes = 4;
    if (bytes == 0 && inet_pton(AF_INET6, text, address) == 1) bytes = 16;
    entry.node.type = bytes != 0 ? MBEDTLS_X509_SAN_IP_ADDRESS : MBEDTLS_X509_SAN_DNS_NAME;
    entry.node.san.unstructured_name.p = bytes != 0 ? address : reinterpret_cast<unsigned char*>(text);
    entry.node.san.unstructured_name.len = bytes != 0 ? bytes : name.size();
    if (count_ > 0) entries_[count_ - 1].next = &entry;
    ++count_;
    return true;
  }
  const mbedtls_x509_san_list* list() const noexcept { return entries_; }
  const char* first() const noexcept { return text_[0]; }

 private:
  std::size_t count_ = 0;
  char text_[kMaxNames][kMaxNameBytes];
  unsigned char address_[kMaxNames][16];
  mbedtls_x509_san_list entries_[kMaxNames];
};

int write_certificate(mbedtls_pk_context& key, const AlternativeNames& names, SelfSigned& into) noexcept {
  char subject[kMaxNameBytes + 3] = "CN=";
  // A comma would begin another attribute; no host name holds one.
  strncat(subject, names.first(), kMaxNameBytes - 1);
  unsigned char serial[16];
  if (const int code = tls::random(nullptr, serial, sizeof serial); code != 0) return code;
  serial[0] = static_cast<unsigned char>((serial[0] & 0x7f) | 0x40);  // positive, and of full length
  mbedtls_x509write_cert certificate;
  mbedtls_x509write_crt_init(&certificate);
  mbedtls_x509write_crt_set_version(&certificate, MBEDTLS_X509_CRT_VERSION_3);
  mbedtls_x509write_crt_set_md_alg(&certificate, MBEDTLS_MD_SHA256);
  mbedtls_x509write_crt_set_subject_key(&certificate, &key);
  mbedtls_x509write_crt_set_issuer_key(&certificate, &key);
  int code = mbedtls_x509write_crt_set_subject_name(&certificate, subject);
  if (code == 0) code = mbedtls_x509write_crt_set_issuer_name(&certificate, subject);
  if (code == 0) code = mbedtls_x509write_crt_set_serial_raw(&certificate, serial, sizeof serial);
  if (code == 0) code = mbedtls_x509write_crt_set_validity(&certificate, "20200101000000", "20491231235959");
  if (code == 0) code = mbedtls_x509write_crt_set_basic_constraints(&certificate, 0, -1);
  if (code == 0) code = mbedtls_x509write_crt_set_subject_alternative_name(&certificate, names.list());
  if (code == 0) {
    code = mbedtls_x509write_crt_pem(&certificate, reinterpret_cast<unsigned char*>(into.certificate),
                                     sizeof into.certificate, tls::random, nullptr);
  }
  mbedtls_x509write_crt_free(&certificate);
  return code;
}

int make_key(mbedtls_pk_context& key) noexcept {
  if (const int code = mbedtls_pk_setup(&key, mbedtls_pk_info_from_type(MBEDTLS_PK_ECKEY)); code != 0) return code;
  return mbedtls_ecp_gen_key(MBEDTLS_ECP_DP_SECP256R1, mbedtls_pk_ec(key), tls::random, nullptr);
}

int read_key(std::string_view pem, mbedtls_pk_context& key) noexcept {
  // The NUL behind it counts with PEM.
  return mbedtls_pk_parse_key(&key, reinterpret_cast<const unsigned char*>(pem.data()), pem.size() + 1, nullptr, 0,
                              tls::random, nullptr);
}

// issue writes the key that `get` gives, and a certificate for it.
template <class Get>
int issue(Get get, const AlternativeNames& names, SelfSigned& into) noexcept {
  mbedtls_pk_context key;
  mbedtls_pk_init(&key);
  int code = get(key);
  if (code == 0) code = mbedtls_pk_write_key_pem(&key, reinterpret_cast<unsigned char*>(into.key), sizeof into.key);
  if (code == 0) code = write_certificate(key, names, into);
  mbedtls_pk_free(&key);
  return code;
}

template <class Get>
std::expected<void, Error> issue_for(Get get, std::span<const std::string_view> names, SelfSigned& into) noexcept {
  if (auto started = tls::start_library(); !started) return started;
  const int code = on_worker_stack([&]() noexcept -> int {
    AlternativeNames alternatives;
    for (const std::string_view name : names) {
      if (!alternatives.add(name)) return MBEDTLS_ERR_X509_BAD_INPUT_DATA;
    }
    return names.empty() ? MBEDTLS_ERR_X509_BAD_INPUT_DATA : issue(get, alternatives, into);
  });
  if (code == 0) return {};
  mbedtls_platform_zeroize(&into, sizeof into);
  const Error error = tls::error_of(code);
  return std::unexpected(error == ErrorCode::no_memory ? error : Error{ErrorCode::invalid});
}

// examine calls `look` with the first certificate of `pem`, on the worker's stack, and returns mbedTLS's error or
// `look`'s result.
template <class Look>
int examine(std::string_view pem, Look look) noexcept {
  return on_worker_stack([&]() noexcept -> int {
    mbedtls_x509_crt certificate;
    mbedtls_x509_crt_init(&certificate);
    int outcome =
        mbedtls_x509_crt_parse(&certificate, reinterpret_cast<const unsigned char*>(pem.data()), pem.size() + 1);
    if (certificate.raw.len != 0) outcome = look(certificate);
    mbedtls_x509_crt_free(&certificate);
    return outcome;
  });
}

// has_name tells whether a certificate has `entry` among its names. Host names are compared without case.
bool has_name(const mbedtls_x509_crt& certificate, const mbedtls_x509_subject_alternative_name& wanted) noexcept {
  const auto& bytes = wanted.san.unstructured_name;
  for (const mbedtls_x509_sequence* each = &certificate.subject_alt_names; each != nullptr; each = each->next) {
    if ((each->buf.tag & MBEDTLS_ASN1_TAG_VALUE_MASK) != wanted.type || each->buf.len != bytes.len) continue;
    if (wanted.type == MBEDTLS_X509_SAN_DNS_NAME ? strncasecmp(reinterpret_cast<const char*>(each->buf.p),
                                                               reinterpret_cast<const char*>(bytes.p), bytes.len) == 0
                                                 : memcmp(each->buf.p, bytes.p, bytes.len) == 0) {
      return true;
    }
  }
  return false;
}

bool has_names(const mbedtls_x509_crt& certificate, std::span<const std::string_view> names) noexcept {
  for (const std::string_view name : names) {
    AlternativeNames one;
    if (!one.add(name) || !has_name(certificate, one.list()->node)) return false;
  }
  return true;
}

template <class Pick>
std::expected<void, Error> digest(std::string_view pem, char (&into)[kFingerprintBytes], Pick pick) noexcept {
  if (auto started = tls::start_library(); !started) return started;
  unsigned char bytes[32];
  const int code = examine(pem, [&](const mbedtls_x509_crt& certificate) noexcept -> int {
    const mbedtls_x509_buf& part = pick(certificate);
    return mbedtls_sha256(part.p, part.len, bytes, 0);
  });
  if (code != 0) return std::unexpected(Error{ErrorCode::invalid});
  constexpr char kDigits[] = "0123456789ABCDEF";
  for (std::size_t i = 0; i < sizeof bytes; ++i) {
    into[3 * i] = kDigits[bytes[i] >> 4];
    into[3 * i + 1] = kDigits[bytes[i] & 15];
    into[3 * i + 2] = i + 1 < sizeof bytes ? ':' : '\0';
  }
  return {};
}

}  // namespace

std::expected<void, Error> make_self_signed(std::span<const std::string_view> names, SelfSigned& into) noexcept {
  return issue_for(make_key, names, into);
}

std::expected<void, Error> reissue_self_signed(std::string_view pem, std::span<const std::string_view> names,
                                               SelfSigned& into) noexcept {
  return issue_for([pem](mbedtls_pk_context& key) noexcept { return read_key(pem, key); }, names, into);
}

std::expected<bool, Error> is_issued_for(std::string_view pem, std::span<const std::string_view> names) noexcept {
  if (auto started = tls::start_library(); !started) return std::unexpected(started.error());
  bool all = false;
  const int code = examine(pem, [&](const mbedtls_x509_crt& certificate) noexcept -> int {
    all = has_names(certificate, names);
    return 0;
  });
  if (code == 0) return all;
  const Error error = tls::error_of(code);
  return std::unexpected(error == ErrorCode::no_memory ? error : Error{ErrorCode::invalid});
}

std::expected<void, Error> fingerprint(std::string_view pem, char (&into)[kFingerprintBytes]) noexcept {
  return digest(pem, into, [](const mbedtls_x509_crt& certificate) -> auto& { return certificate.raw; });
}

std::expected<void, Error> key_fingerprint(std::string_view pem, char (&into)[kFingerprintBytes]) noexcept {
  return digest(pem, into, [](const mbedtls_x509_crt& certificate) -> auto& { return certificate.pk_raw; });
}

}  // namespace coir
