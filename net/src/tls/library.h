#pragma once

#include <coir/error.h>

#include <cstddef>
#include <expected>

namespace coir::tls {

// start_library makes mbedTLS ready, once in the process; every call after the first costs one look.
[[nodiscard]] std::expected<void, Error> start_library() noexcept;

// random fills `into` from getrandom(2); it is mbedTLS's source of randomness. 0, or mbedTLS's error.
int random(void* unused, unsigned char* into, std::size_t bytes) noexcept;

// error_of maps what mbedTLS answers. Its codes that have no word of their own become `protocol`, which keeps the
// number.
Error error_of(int code) noexcept;

}  // namespace coir::tls
