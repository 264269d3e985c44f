// Certificates, keys and lists of authorities that are no such things are refused with a phrase, and nothing is left of
// them.

#include <coir/net/certificates.h>
#include <coir/tls.h>

#include <string>

#include "require.h"
#include "tests/support/tls_pair.h"

using namespace coir;

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  static const test::Authority authority;
  Source source(data, size);
  const int what = source.byte() % 4;
  const std::string given(source.rest());
  const std::size_t before = account::tls.used();
  const TlsCertificate good = authority.certificate();
  const TlsCertificate certificates[] = {{.chain = what == 0 ? std::string_view(given) : good.chain,
                                          .key = what == 1 ? std::string_view(given) : good.key}};
  if (what < 3) {
    TlsContext::Server wishes{.certificates = certificates};
    if (what == 2) wishes.client_authorities = given;
    const auto context = TlsContext::server(wishes);
    require(context.has_value() || describe(context.error()) != describe(context.error().code) ||
            context.error() == ErrorCode::no_memory);
  } else {
    char shown[kFingerprintBytes];
    static_cast<void>(fingerprint(given, shown));
    static_cast<void>(key_fingerprint(given, shown));
    const std::string_view names[] = {"board.test", "127.0.0.1"};
    static_cast<void>(is_issued_for(given, names));
    SelfSigned again;
    static_cast<void>(reissue_self_signed(given, names, again));
  }
  require(account::tls.used() == before);
  return 0;
}
