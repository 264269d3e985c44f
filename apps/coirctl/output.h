#pragma once

#include <string_view>

// write_text writes to standard output. Once that has failed, nothing more is written and all_written returns false.
void write_text(std::string_view text) noexcept;
bool all_written() noexcept;
