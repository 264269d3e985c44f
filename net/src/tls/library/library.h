#pragma once

#include <coir/error.h>

#include <cstddef>
#include <expected>

namespace coir::tls {

// start_library initialises mbedTLS, once in the process; later calls cost one load.
[[nodiscard]] std::expected<void, Error> start_library() noexcept;

// random fills `into` from getrandom(2); it is mbedTLS's source of randomness. 0, or mbedTLS's error.
int random(void* unused, unsigned char* into, std::size_t bytes) noexcept;

// phrase_of (describe.cpp) is what describe says of errors of TLS.
const char* phrase_of(Error error) noexcept;

// error_of maps mbedTLS's results to coir's errors. A code without an ErrorCode of its own becomes `protocol`, which
// keeps the number.
Error error_of(int code) noexcept;

// is_unreadable tells the errors of reading a certificate. In the lowest 7 bits ASN.1 adds its own, of which one is that
// there is no memory.
constexpr bool is_unreadable(int code) noexcept {
  return code <= -0x2080 && code > -0x2a80 && (-code & 0x7f) != 0x6a;
}

}  // namespace coir::tls
