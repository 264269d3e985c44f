#pragma once

// exposed tells why an open file is not this process's user's or root's alone, null if it is.
const char* exposed(int fd) noexcept;
