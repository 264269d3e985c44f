#pragma once

#include "options.h"

// The options that say how files are served, and to whom. Each function returns false after one line on standard error
// that names what is wrong.

// apply_site takes an option of a build with COIR_SITE (option_table.h), and refuses it in a build without.
[[nodiscard]] bool apply_site(int chosen, const char* text, Options& options) noexcept;
