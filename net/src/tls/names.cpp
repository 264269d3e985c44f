#include <mbedtls/asn1.h>
#include <strings.h>

#include <span>
#include <string_view>

#include "tls/config.h"

namespace coir::tls {
namespace {

bool equal(std::string_view a, std::string_view b) noexcept {
  return a.size() == b.size() && strncasecmp(a.data(), b.data(), a.size()) == 0;
}

// matches follows RFC 6125: "*." stands for exactly one label, the first.
bool matches(std::string_view pattern, std::string_view host) noexcept {
  if (!pattern.starts_with("*.")) return equal(pattern, host);
  const std::size_t dot = host.find('.');
  return dot != host.npos && dot > 0 && equal(pattern.substr(1), host.substr(dot));
}

}  // namespace

bool names(const mbedtls_x509_crt& certificate, const char* host, std::size_t length) noexcept {
  constexpr int kDnsName = MBEDTLS_ASN1_CONTEXT_SPECIFIC | 2;
  for (const mbedtls_x509_sequence* each = &certificate.subject_alt_names; each != nullptr; each = each->next) {
    if (each->buf.tag != kDnsName || each->buf.p == nullptr) continue;
    if (matches({reinterpret_cast<const char*>(each->buf.p), each->buf.len}, {host, length})) return true;
  }
  return false;
}

}  // namespace coir::tls

bool coir::TlsContext::is_for(std::string_view host) const noexcept {
  if (config_ == nullptr) return false;
  for (const tls::Identity& identity : std::span(config_->identities).first(config_->identity_count)) {
    if (tls::names(identity.chain, host.data(), host.size())) return true;
  }
  return false;
}
