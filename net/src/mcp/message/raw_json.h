#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

// Pieces of a JSON text as they stand in it, so that a part of a message can be passed on without being written anew. The
// text was parsed before: here nothing is checked, and of a text that is no JSON some piece is returned, never a byte
// outside of it.
namespace coir::mcp::detail {

// raw_member returns the value of an object's first member of that name, or an absent view. A name that the text writes
// with escapes is not found.
std::string_view raw_member(std::string_view object, std::string_view name) noexcept;

// raw_inside returns what stands between the brackets of an object or an array, without white space around it.
std::string_view raw_inside(std::string_view value) noexcept;

// blank_ends_of_lines makes spaces of them, which JSON has as white space only: the text is one line then.
void blank_ends_of_lines(std::span<char> json) noexcept;

// RawMembers walks the members of an object, RawElements the elements of an array.
class RawMembers {
 public:
  struct Member {
    std::string_view name;  // as it is written, without its quotes
    std::string_view value;
  };
  explicit RawMembers(std::string_view object) noexcept : left_(raw_inside(object)) {}
  std::optional<Member> next() noexcept;

 private:
  std::string_view left_;
};

class RawElements {
 public:
  explicit RawElements(std::string_view array) noexcept : left_(raw_inside(array)) {}
  std::optional<std::string_view> next() noexcept;

 private:
  std::string_view left_;
};

}  // namespace coir::mcp::detail
