// Self-signed certificates: their names, their key, and what is shown of them.
#include <CppUTest/TestHarness.h>
#include <coir/net/certificates.h>
#include <coir/tls.h>
#include <string.h>

#include <array>
#include <memory>
#include <string_view>

namespace tls_self_signed_test {

using coir::ErrorCode;
using coir::SelfSigned;

namespace {

constexpr std::string_view kNames[] = {"board.test", "localhost", "127.0.0.1", "::1", "192.0.2.1", "2001:db8::7"};

struct Printed {
  char key[coir::kFingerprintBytes];
  char certificate[coir::kFingerprintBytes];
};

Printed printed(const SelfSigned& made) {
  Printed all;
  CHECK_TRUE(coir::key_fingerprint(made.certificate, all.key).has_value());
  CHECK_TRUE(coir::fingerprint(made.certificate, all.certificate).has_value());
  return all;
}

}  // namespace

TEST_GROUP(TlsSelfSigned) {
  const std::unique_ptr<SelfSigned> made = std::make_unique<SelfSigned>(), again = std::make_unique<SelfSigned>();

  void setup() override { CHECK_TRUE(make_self_signed(kNames, *made).has_value()); }
};

TEST(TlsSelfSigned, key_s_fingerprint_stays_when_another_certificate_is_issued) {
  CHECK_TRUE(reissue_self_signed(made->key, std::span(kNames).first(2), *again).has_value());
  const Printed before = printed(*made), after = printed(*again);
  STRCMP_EQUAL(before.key, after.key);
  CHECK_TRUE(strcmp(before.certificate, after.certificate) != 0);
  STRCMP_EQUAL(made->key, again->key);
  const coir::TlsCertificate crossed[] = {{.chain = again->certificate, .key = made->key}};
  CHECK_TRUE(coir::TlsContext::server({.certificates = crossed}).has_value());
}

TEST(TlsSelfSigned, another_key_has_another_fingerprint) {
  CHECK_TRUE(make_self_signed(kNames, *again).has_value());
  CHECK_TRUE(strcmp(printed(*made).key, printed(*again).key) != 0);
}

TEST(TlsSelfSigned, certificate_is_for_the_names_that_it_was_issued_for_and_no_others) {
  CHECK_TRUE(coir::is_issued_for(made->certificate, kNames).value());
  for (const std::string_view name : {"BOARD.test", "localhost", "192.0.2.1", "2001:DB8:0::7"}) {
    CHECK_TRUE(coir::is_issued_for(made->certificate, {&name, 1}).value());
  }
  for (const std::string_view name : {"board", "192.0.2.2", "2001:db8::8", "::", "other.test"}) {
    CHECK_FALSE(coir::is_issued_for(made->certificate, {&name, 1}).value());
  }
}

TEST(TlsSelfSigned, a_text_that_is_no_key_or_no_certificate_is_refused) {
  for (const char* text : {"", "x", "-----BEGIN CERTIFICATE-----\n", static_cast<const char*>(made->certificate)}) {
    const auto outcome = coir::reissue_self_signed(text, kNames, *again);
    CHECK_TRUE(!outcome && outcome.error() == ErrorCode::invalid);
    LONGS_EQUAL(0, again->key[0]);
  }
  char shown[coir::kFingerprintBytes];
  for (const char* text : {"", "x", static_cast<const char*>(made->key)}) {
    CHECK_FALSE(coir::is_issued_for(text, kNames).has_value());
    CHECK_FALSE(coir::key_fingerprint(text, shown).has_value());
  }
}

TEST(TlsSelfSigned, as_many_names_as_there_may_be_fit_and_more_are_refused) {
  constexpr std::string_view kLong = "a-host-name-that-is-as-long-as-any-label-of-a-host-s-name-may-be";
  std::array<std::string_view, SelfSigned::kMaxNames + 1> names;
  names.fill("2001:db8:1111:2222:3333:4444:5555:6666");
  names[0] = kLong.substr(0, 63);
  CHECK_TRUE(make_self_signed(std::span(names).first(SelfSigned::kMaxNames), *again).has_value());
  CHECK_FALSE(make_self_signed(names, *again).has_value());
}

}  // namespace tls_self_signed_test
