#include <coir/net/detail/secret_hash.h>
#include <mbedtls/sha256.h>
#include <string.h>

#include <algorithm>

namespace coir {
namespace {

const unsigned char* bytes(std::string_view text) noexcept {
  return reinterpret_cast<const unsigned char*>(text.data());
}

// Sha is a hash under way. With what mbedTLS is compiled with here its calls cannot fail.
class Sha {
 public:
  Sha() noexcept {
    mbedtls_sha256_init(&context_);
    static_cast<void>(mbedtls_sha256_starts(&context_, 0));
  }
  Sha(const Sha& other) noexcept {
    mbedtls_sha256_init(&context_);
    mbedtls_sha256_clone(&context_, &other.context_);
  }
  Sha& operator=(const Sha&) = delete;
  ~Sha() { mbedtls_sha256_free(&context_); }

  Sha& add(std::string_view text) noexcept {
    static_cast<void>(mbedtls_sha256_update(&context_, bytes(text), text.size()));
    return *this;
  }
  Digest end() noexcept {
    Digest out;
    static_cast<void>(mbedtls_sha256_finish(&context_, out.data()));
    return out;
  }

 private:
  mbedtls_sha256_context context_;
};

// Hmac keeps the two hashes that have taken the key in.
class Hmac {
 public:
  explicit Hmac(std::string_view key) noexcept {
    constexpr std::size_t kBlock = 64;
    char block[kBlock] = {};
    if (key.size() > kBlock) {
      const Digest shorter = plain_digest({key});
      memcpy(block, shorter.data(), shorter.size());
    } else if (!key.empty()) {
      memcpy(block, key.data(), key.size());
    }
    for (char& c : block) c = static_cast<char>(c ^ 0x36);
    inner_.add({block, kBlock});
    for (char& c : block) c = static_cast<char>(c ^ 0x36 ^ 0x5c);
    outer_.add({block, kBlock});
    explicit_bzero(block, sizeof block);
  }
  Sha begin() const noexcept { return inner_; }
  Digest end(Sha& inner) const noexcept {
    Sha outer = outer_;
    return outer.add(view(inner.end())).end();
  }

 private:
  Sha inner_;
  Sha outer_;
};

}  // namespace

Digest plain_digest(std::initializer_list<std::string_view> parts) noexcept {
  Sha sha;
  for (const std::string_view part : parts) sha.add(part);
  return sha.end();
}

Digest keyed_digest(std::string_view key, std::initializer_list<std::string_view> parts) noexcept {
  const Hmac hmac(key);
  Sha sha = hmac.begin();
  for (const std::string_view part : parts) sha.add(part);
  return hmac.end(sha);
}

Digest derive_digest(std::string_view password, std::string_view salt, std::uint32_t iterations) noexcept {
  const Hmac hmac(password);
  Sha first = hmac.begin();
  // The number of the block: one is as long as what is asked for.
  Digest round = hmac.end(first.add(salt).add({"\0\0\0\1", 4}));
  Digest out = round;
  for (std::uint32_t i = 1; i < iterations; ++i) {
    Sha sha = hmac.begin();
    round = hmac.end(sha.add(view(round)));
    for (std::size_t at = 0; at < out.size(); ++at) out[at] = static_cast<unsigned char>(out[at] ^ round[at]);
  }
  return out;
}

}  // namespace coir
