#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace coir::http {

struct Connection;

// HalfHead is what a client has sent of a head whose rest it owes, while its connection rests: its text is behind it, in
// memory that is charged to account::buffers.
struct HalfHead {
  std::int64_t began_ns;  // when its first bytes came
  std::uint32_t bytes;

  // keep has `connection` keep `text`; false: there is no memory. take copies the text back into `into` and returns how
  // much that is, 0 where there is none; the connection is as it was before. drop forgets it.
  [[nodiscard]] static bool keep(Connection& connection, std::string_view text) noexcept;
  static std::size_t take(Connection& connection, std::span<char> into) noexcept;
  static void drop(Connection& connection) noexcept;
};

}  // namespace coir::http
