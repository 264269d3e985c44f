#pragma once

#include <cstddef>
#include <string_view>

// print_lines prints a text in lines of at most `width` bytes, each but the first behind `margin`, to standard output.
void print_lines(std::string_view text, std::size_t width, std::string_view margin) noexcept;
