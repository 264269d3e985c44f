#include <coir/sum.h>

#include <coir/format.h>

namespace coir {

std::string_view sum_line(std::span<const char> bytes, std::span<char, kSumLineBytes> room) noexcept {
  return sum_line(sum_of(bytes), room);
}

std::string_view sum_line(std::uint32_t sum, std::span<char, kSumLineBytes> room) noexcept {
  return format(room, "# sum: ", hex(sum, 8), "\n");
}

std::optional<std::string_view> whole_text(std::string_view text) noexcept {
  if (text.size() < kSumLineBytes) return std::nullopt;
  const std::string_view before = text.substr(0, text.size() - kSumLineBytes);
  char right[kSumLineBytes];
  if (text.substr(before.size()) != sum_line(before, right)) return std::nullopt;
  return before;
}

}  // namespace coir
