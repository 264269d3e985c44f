#include <mbedtls/oid.h>
#include <mbedtls/sha256.h>
#include <stdlib.h>
#include <string.h>

#include <new>

#include <coir/config.h>
#include <coir/worker_stack.h>

#include "tls/config.h"
#include "tls/library/flaw.h"
#include "tls/library/library.h"
#include "tls/library/mbedtls_internals.h"
#include "tls/library/session_allocator.h"
#include "tls/library/trusted_time.h"
#include "tls/session.h"

namespace coir {

namespace tls {
namespace {

using Made = std::expected<void, Error>;

constexpr std::unexpected<Error> kNoMemory{ErrorCode::no_memory};

// flaw refuses an input.
std::unexpected<Error> flaw(Flaw what) noexcept {
  return std::unexpected(flawed(what));
}

constexpr std::uint32_t kTicketSeconds = 24 * 60 * 60;

// The best first. A server takes a client's key share for any of these before it asks for another.
constexpr std::uint16_t kGroups[] = {
#if defined(MBEDTLS_ECP_DP_CURVE25519_ENABLED)
    MBEDTLS_SSL_IANA_TLS_GROUP_X25519,
#endif
    MBEDTLS_SSL_IANA_TLS_GROUP_SECP256R1, MBEDTLS_SSL_IANA_TLS_GROUP_NONE};

// Text is a copy that ends in a NUL, which mbedTLS wants of PEM.
class Text {
 public:
  explicit Text(std::string_view text) noexcept
      : bytes_(text.size() + 1), copy_(static_cast<unsigned char*>(coir_tls_calloc(1, bytes_))) {
    if (copy_ != nullptr && !text.empty()) memcpy(copy_, text.data(), text.size());
  }
  Text(const Text&) = delete;
  Text& operator=(const Text&) = delete;
  ~Text() {
    if (copy_ == nullptr) return;
    mbedtls_platform_zeroize(copy_, bytes_);
    coir_tls_free(copy_);
  }
  const unsigned char* data() const noexcept { return copy_; }
  // The first byte of DER is a SEQUENCE; DER is parsed without the NUL.
  std::size_t size() const noexcept { return copy_[0] == 0x30 ? bytes_ - 1 : bytes_; }

 private:
  std::size_t bytes_;
  unsigned char* copy_;
};

// choose_identity runs during a handshake whose client names the server.
int choose_identity(void* opaque, mbedtls_ssl_context* ssl, const unsigned char* host, size_t length) {
  auto& config = *static_cast<Config*>(opaque);
  static_cast<Session*>(coir_tls_bio(ssl))->ask_for({reinterpret_cast<const char*>(host), length});
  for (std::size_t i = 0; i < config.identity_count; ++i) {
    Identity& identity = config.identities[i];
    if (!names(identity.chain, reinterpret_cast<const char*>(host), length)) continue;
    if (const int code = mbedtls_ssl_set_hs_own_cert(ssl, &identity.chain, &identity.key); code != 0) return code;
  }
  return 0;
}

Made add_identity(Config& config, const TlsCertificate& given) noexcept {
  if (config.identity_count == TlsContext::kMaxCertificates) return flaw(Flaw::most_certificates);
  Identity& identity = config.identities[config.identity_count++];
  mbedtls_x509_crt_init(&identity.chain);
  mbedtls_pk_init(&identity.key);
  {
    const Text text(given.chain);
    if (text.data() == nullptr) return kNoMemory;
    const int code = mbedtls_x509_crt_parse(&identity.chain, text.data(), text.size());
    if (error_of(code) == ErrorCode::no_memory) return kNoMemory;
    if (code > 0) return flaw(Flaw::chain_unread);
    if (code != 0) return flaw(Flaw::no_chain);
  }
  {
    const Text text(given.key);
    if (text.data() == nullptr) return kNoMemory;
    const int code = mbedtls_pk_parse_key(&identity.key, text.data(), text.size(), nullptr, 0, random, nullptr);
    if (error_of(code) == ErrorCode::no_memory) return kNoMemory;
    if (code == MBEDTLS_ERR_PK_PASSWORD_REQUIRED) return flaw(Flaw::key_encrypted);
    if (code != 0) return flaw(Flaw::no_key);
  }
  if (mbedtls_pk_check_pair(&identity.chain.pk, &identity.key, random, nullptr) != 0) {
    return flaw(Flaw::key_of_another);
  }
  for (const mbedtls_x509_crt* each = &identity.chain; each != nullptr; each = each->next) {
    if (mbedtls_x509_time_is_past(&each->valid_to)) {
      return flaw(each == &identity.chain ? Flaw::certificate_expired : Flaw::chain_expired);
    }
  }
  if (time_valid() && mbedtls_x509_time_is_future(&identity.chain.valid_from)) return flaw(Flaw::certificate_early);
  return {};
}

// judge corrects mbedTLS's judgement of one of the peer's certificates, at depth 0 its own. While the clock is not set,
// a certificate that has expired by the floor has certainly expired, but one that begins after it may have begun.
int judge(void* opaque, mbedtls_x509_crt* certificate, int depth, std::uint32_t* flags) noexcept {
  if (!time_valid()) *flags &= ~std::uint32_t{MBEDTLS_X509_BADCERT_FUTURE};
  const auto& config = *static_cast<const Config*>(opaque);
  // mbedTLS takes the subject's common name for the server's where there are no alternative names.
  if (config.trusts_pins_alone) {
    *flags = 0;
  } else if (depth == 0 && mbedtls_ssl_conf_get_endpoint(&config.ssl) == MBEDTLS_SSL_IS_CLIENT &&
             mbedtls_x509_crt_has_ext_type(certificate, MBEDTLS_X509_EXT_SUBJECT_ALT_NAME) == 0) {
    *flags |= MBEDTLS_X509_BADCERT_CN_MISMATCH;
  }
  if (depth != 0 || config.pin_count == 0) return 0;
  TlsKeyPin shown;
  if (const int code = mbedtls_sha256(certificate->pk_raw.p, certificate->pk_raw.len, shown.digest, 0); code != 0) {
    return code;
  }
  for (const TlsKeyPin& pin : std::span(config.pins).first(config.pin_count)) {
    if (memcmp(pin.digest, shown.digest, sizeof pin.digest) == 0) return 0;
  }
  *flags |= MBEDTLS_X509_BADCERT_OTHER;
  return 0;
}

Made add_authorities(Config& config, std::string_view given) noexcept {
  const Text text(given);
  if (text.data() == nullptr) return kNoMemory;
  const int code = mbedtls_x509_crt_parse(&config.authorities, text.data(), text.size());
  if (error_of(code) == ErrorCode::no_memory) return kNoMemory;
  // A general bundle may hold certificates that this build cannot read.
  if (code < 0 || config.authorities.version == 0) return flaw(Flaw::no_authorities);
  mbedtls_ssl_conf_ca_chain(&config.ssl, &config.authorities, nullptr);
  mbedtls_ssl_conf_verify(&config.ssl, judge, &config);
  return {};
}

Made add_protocols(Config& config, std::span<const char* const> given) noexcept {
  if (given.empty()) return {};
  if (given.size() > TlsContext::kMaxProtocols) return flaw(Flaw::most_protocols);
  for (std::size_t i = 0; i < given.size(); ++i) config.protocols[i] = given[i];
  if (mbedtls_ssl_conf_alpn_protocols(&config.ssl, config.protocols) != 0) return flaw(Flaw::bad_protocol);
  return {};
}

Made begin(Config& config, int endpoint) noexcept {
  if (mbedtls_ssl_config_defaults(&config.ssl, endpoint, MBEDTLS_SSL_TRANSPORT_STREAM, MBEDTLS_SSL_PRESET_DEFAULT) !=
      0) {
    return kNoMemory;
  }
  mbedtls_ssl_conf_rng(&config.ssl, random, nullptr);
  mbedtls_ssl_conf_groups(&config.ssl, kGroups);
  return {};
}

Made make_server(Config& config, const TlsContext::Server& options) noexcept {
  if (auto done = begin(config, MBEDTLS_SSL_IS_SERVER); !done) return done;
  if (options.certificates.empty()) return flaw(Flaw::no_certificate);
  for (std::size_t i = 0; i < options.certificates.size(); ++i) {
    if (auto done = add_identity(config, options.certificates[i]); !done) {
      return std::unexpected(of_certificate(done.error(), i));
    }
  }
  // A client that names no server, or an unknown one, gets the first.
  if (mbedtls_ssl_conf_own_cert(&config.ssl, &config.identities[0].chain, &config.identities[0].key) != 0) {
    return kNoMemory;
  }
  mbedtls_ssl_conf_sni(&config.ssl, choose_identity, &config);
  mbedtls_ssl_conf_authmode(&config.ssl, MBEDTLS_SSL_VERIFY_NONE);
  if (options.client_authorities) {
    if (auto done = add_authorities(config, *options.client_authorities); !done) return done;
    mbedtls_ssl_conf_authmode(&config.ssl, MBEDTLS_SSL_VERIFY_REQUIRED);
  }
  config.remembers_peers = options.remember_clients;
  if (options.tickets && !options.remember_clients) {
    constexpr auto cipher = COIR_TLS_SMALL ? MBEDTLS_CIPHER_AES_128_GCM : MBEDTLS_CIPHER_AES_256_GCM;
    if (mbedtls_ssl_ticket_setup(&config.tickets, random, nullptr, cipher, kTicketSeconds) != 0) return kNoMemory;
    mbedtls_ssl_conf_session_tickets_cb(&config.ssl, mbedtls_ssl_ticket_write, mbedtls_ssl_ticket_parse,
                                        &config.tickets);
  }
  return add_protocols(config, options.protocols);
}

Made make_client(Config& config, const TlsContext::Client& options) noexcept {
  if (auto done = begin(config, MBEDTLS_SSL_IS_CLIENT); !done) return done;
  if (options.accept_any_peer_without_verifying_it && options.pins.empty()) {
    mbedtls_ssl_conf_authmode(&config.ssl, MBEDTLS_SSL_VERIFY_NONE);
  } else if (options.accept_any_peer_without_verifying_it) {
    // Without authorities mbedTLS would refuse to judge anybody.
    config.trusts_pins_alone = true;
    mbedtls_ssl_conf_ca_chain(&config.ssl, &config.authorities, nullptr);
    mbedtls_ssl_conf_verify(&config.ssl, judge, &config);
    mbedtls_ssl_conf_authmode(&config.ssl, MBEDTLS_SSL_VERIFY_REQUIRED);
  } else {
    if (auto done = add_authorities(config, options.authorities); !done) return done;
    mbedtls_ssl_conf_authmode(&config.ssl, MBEDTLS_SSL_VERIFY_REQUIRED);
  }
  if (options.pins.size() > TlsContext::kMaxPins) return flaw(Flaw::most_pins);
  for (const TlsKeyPin& pin : options.pins) config.pins[config.pin_count++] = pin;
  if (options.certificate != nullptr) {
    if (auto done = add_identity(config, *options.certificate); !done) return done;
    if (mbedtls_ssl_conf_own_cert(&config.ssl, &config.identities[0].chain, &config.identities[0].key) != 0) {
      return kNoMemory;
    }
  }
  mbedtls_ssl_conf_session_tickets(
      &config.ssl, options.tickets ? MBEDTLS_SSL_SESSION_TICKETS_ENABLED : MBEDTLS_SSL_SESSION_TICKETS_DISABLED);
  mbedtls_ssl_conf_tls13_enable_signal_new_session_tickets(
      &config.ssl, options.tickets ? MBEDTLS_SSL_TLS1_3_SIGNAL_NEW_SESSION_TICKETS_ENABLED
                                   : MBEDTLS_SSL_TLS1_3_SIGNAL_NEW_SESSION_TICKETS_DISABLED);
  return add_protocols(config, options.protocols);
}

// made creates a Config and has `make` complete it.
template <class Make>
std::expected<Config*, Error> made(Make make) noexcept {
  if (!start_library()) return kNoMemory;
  Config* const config = Config::create();
  if (config == nullptr) return kNoMemory;
  const Made done = on_worker_stack([&]() noexcept { return make(*config); });
  if (done) return config;
  Config::release(config);
  return std::unexpected(done.error());
}

}  // namespace

Config* Config::create() noexcept {
  void* const memory = coir_tls_calloc(1, sizeof(Config));
  if (memory == nullptr) return nullptr;
  auto* const config = ::new (memory) Config;
  mbedtls_ssl_config_init(&config->ssl);
  mbedtls_ssl_ticket_init(&config->tickets);
  mbedtls_x509_crt_init(&config->authorities);
  return config;
}

void Config::release(Config* config) noexcept {
  // release and acquire: everything that a holder did happens before the end.
  if (config == nullptr || config->holders.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  mbedtls_ssl_config_free(&config->ssl);
  mbedtls_ssl_ticket_free(&config->tickets);
  mbedtls_x509_crt_free(&config->authorities);
  for (std::size_t i = 0; i < config->identity_count; ++i) {
    mbedtls_x509_crt_free(&config->identities[i].chain);
    mbedtls_pk_free(&config->identities[i].key);
  }
  coir_tls_free(config);
}

}  // namespace tls

std::expected<TlsContext, Error> TlsContext::server(const Server& options) noexcept {
  const auto config = tls::made([&](tls::Config& made) noexcept { return tls::make_server(made, options); });
  if (!config) return std::unexpected(config.error());
  return TlsContext(*config);
}

std::expected<TlsContext, Error> TlsContext::client(const Client& options) noexcept {
  const auto config = tls::made([&](tls::Config& made) noexcept { return tls::make_client(made, options); });
  if (!config) return std::unexpected(config.error());
  return TlsContext(*config);
}

TlsContext::TlsContext(const TlsContext& other) noexcept : config_(other.config_) {
  if (config_ != nullptr) config_->hold();
}

TlsContext::~TlsContext() {
  tls::Config::release(config_);
}

}  // namespace coir
