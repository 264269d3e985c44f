#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace coir::http {

// ContentCoding is a way in which servers compress content: kGzip of coir/http/client.h.
struct ContentCoding {
  enum class Progress : std::uint8_t {
    goes_on,  // all of `from` is taken, or `into` is full
    ended,    // the compressed data has ended; bytes behind it are left in `from`
    no_memory,
    malformed,
  };

  std::string_view name;
  // begin returns what one response's decoding remembers, or null where there is no memory; end frees it.
  void* (*begin)() noexcept;
  void (*end)(void* state) noexcept;
  // decode takes from the front of `from` and puts into the front of `into`, and makes both begin behind that. After `ended`
  // it begins anew.
  Progress (*decode)(void* state, std::span<const char>& from, std::span<char>& into) noexcept;
};

}  // namespace coir::http
