#pragma once

#include <coir/net/log_line.h>

namespace coir {

// remember keeps a line of the log, if keep_log_lines has asked for that: the oldest make room.
void remember(std::string_view line) noexcept;

}  // namespace coir
