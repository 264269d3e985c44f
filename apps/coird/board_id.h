#pragma once

#include <span>
#include <string_view>

// board_id writes eight digits that tell this board from others with the same image and host name, into `room`: a sum of the
// chip's number below `sysfs`, else of the machine's id, else of the first MAC. Empty: it has none of these.
std::string_view board_id(const char* sysfs, std::span<char> room) noexcept;
