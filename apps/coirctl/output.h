#pragma once

#include <coir/format.h>

#include <string_view>

// write_text writes to standard output. Once that has failed, nothing more is written and all_written returns false.
void write_text(std::string_view text) noexcept;
bool all_written() noexcept;

// add_visible adds a text for a terminal: control bytes are escaped, line breaks too unless the text has several lines.
void add_visible(coir::Formatter& out, std::string_view text, bool lines = false) noexcept;
