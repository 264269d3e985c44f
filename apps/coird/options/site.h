#pragma once

#include <coir/config.h>

#include "options.h"

// These take the options of a build with COIR_SITE; a null function is one that the build lacks.
#if COIR_SITE
[[nodiscard]] bool take_cache_rule(const Setting& setting, Options& options) noexcept;
[[nodiscard]] bool take_error_page(const Setting& setting, Options& options) noexcept;
[[nodiscard]] bool take_auth(const Setting& setting, Options& options) noexcept;
[[nodiscard]] bool take_hash_password(const Setting& setting, Options& options) noexcept;
[[nodiscard]] bool take_hash_token(const Setting& setting, Options& options) noexcept;
#else
[[maybe_unused]] inline constexpr Take take_cache_rule = nullptr, take_error_page = nullptr, take_auth = nullptr,
                                       take_hash_password = nullptr, take_hash_token = nullptr;
#endif
