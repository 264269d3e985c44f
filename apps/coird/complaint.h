#pragma once

// complain writes one line, "coird: WHAT (CURE)", to standard error and returns false.
[[gnu::format(printf, 2, 3)]] bool complain(const char* cure, const char* what, ...) noexcept;
