// The hashes of secrets, by the vectors of their standards.

#include <CppUTest/TestHarness.h>
#include <coir/net/detail/secret_hash.h>
#include <stdio.h>

#include <string_view>

namespace secret_hash_test {

using namespace coir;
using namespace std::string_view_literals;

namespace {

const char* hex(const Digest& digest) {
  static char text[2 * kDigestBytes + 1];
  for (std::size_t i = 0; i < kDigestBytes; ++i) snprintf(text + 2 * i, 3, "%02x", digest[i]);
  return text;
}

}  // namespace

TEST_GROUP(SecretHash) {};

TEST(SecretHash, sha_256) {
  STRCMP_EQUAL("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", hex(plain_digest({})));
  STRCMP_EQUAL("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", hex(plain_digest({"a", "", "bc"})));
}

// RFC 4231, test cases 2 and 6.
TEST(SecretHash, hmac) {
  STRCMP_EQUAL("5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
               hex(keyed_digest("Jefe", {"what do ya want ", "for nothing?"})));
  char key[131];
  for (char& c : key) c = static_cast<char>(0xaa);
  STRCMP_EQUAL("60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
               hex(keyed_digest({key, sizeof key}, {"Test Using Larger Than Block-Size Key - Hash Key First"})));
}

// The vectors of RFC 6070 by SHA-256, as RFC 7914, 11 and others print them.
TEST(SecretHash, pbkdf2) {
  STRCMP_EQUAL("120fb6cffcf8b32c43e7225256c4f837a86548c92ccc35480805987cb70be17b",
               hex(derive_digest("password", "salt", 1)));
  STRCMP_EQUAL("ae4d0c95af6b46d32d0adff928f06dd02a303f8ef3c251dfd6e2d85a95474c43",
               hex(derive_digest("password", "salt", 2)));
  STRCMP_EQUAL("c5e478d59288c841aa530db6845c4c8d962893a001ce4e11a4963873aa98134a",
               hex(derive_digest("password", "salt", 4096)));
  STRCMP_EQUAL("55ac046e56e3089fec1691c22544b605f94185216dde0465e68b9d57c20dacbc",
               hex(derive_digest("passwd", "salt", 1)));
}

}  // namespace secret_hash_test
