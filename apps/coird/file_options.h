#pragma once

#include "options.h"

// The options that say how files are served. Each returns false after one line on standard error that names what is
// wrong.

// add_cache_rule takes "PATTERN=VALUE" of --cache.
[[nodiscard]] bool add_cache_rule(const char* text, Options& options) noexcept;

// add_error_page takes "STATUS=PATH" of --error-page.
[[nodiscard]] bool add_error_page(const char* text, Options& options) noexcept;

// check_files looks at what only the whole command line tells.
[[nodiscard]] bool check_files(const Options& options) noexcept;
