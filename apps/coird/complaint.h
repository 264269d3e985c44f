#pragma once

// complain writes one line, "coird: WHAT (CURE)", to standard error and returns false. Cut at 700 bytes.
[[gnu::format(printf, 2, 3)]] bool complain(const char* cure, const char* what, ...) noexcept;

// complain_of is complain of a file or an option, from a fiber too, whose stack printf may not have.
bool complain_of(const char* path, const char* what, const char* cure) noexcept;

// complain_without_waiting is called once, before anything is served: from then on a complaint that nobody reads is
// dropped (coir/net/log_line.h).
void complain_without_waiting() noexcept;
