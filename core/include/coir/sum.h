#pragma once

// A sum tells text that is whole from text that a loss of power or a bad disk has changed.
//
//   char line[kSumLineBytes];
//   auto next = FileReplacement::begin("/data/settings", 0600);
//   if (!next || !next->write(text) || !next->write(sum_line(text, line)) || !next->commit()) return complain();
//
// and later
//
//   const auto read = slurp("/data/settings", buffer);
//   if (!read || !whole_text(*read)) return complain("the settings are damaged");
//
// It protects against no author: who changes the text can change its sum.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace coir {

// kEmptySum is the sum of no bytes.
inline constexpr std::uint32_t kEmptySum = 2166136261;

// sum_of is the FNV-1a sum (Fowler, Noll, Vo) of bytes, behind those whose sum is `before`. From any context.
constexpr std::uint32_t sum_of(std::span<const char> bytes, std::uint32_t before = kEmptySum) noexcept {
  for (const char each : bytes) before = (before ^ static_cast<unsigned char>(each)) * 16777619;
  return before;
}

// kSumLineBytes is the length of the line of a sum, "# sum: 0011aabb\n". Most formats take it for a comment.
inline constexpr std::size_t kSumLineBytes = 16;

// sum_line writes the line that goes behind `bytes`. Async-signal-safe.
std::string_view sum_line(std::span<const char> bytes, std::span<char, kSumLineBytes> room) noexcept;
// The same for bytes whose sum is `sum`.
std::string_view sum_line(std::uint32_t sum, std::span<char, kSumLineBytes> room) noexcept;

// whole_text is `text` without the line of its sum at its end. Nothing: it has none, or another text's.
std::optional<std::string_view> whole_text(std::string_view text) noexcept;

}  // namespace coir
