#pragma once

#include "options.h"

// These take limits that say more than one member of Options.
[[nodiscard]] bool take_memory(const Setting& setting, Options& options) noexcept;
[[nodiscard]] bool take_keep_free(const Setting& setting, Options& options) noexcept;
[[nodiscard]] bool take_max_connections(const Setting& setting, Options& options) noexcept;
[[nodiscard]] bool take_max_active(const Setting& setting, Options& options) noexcept;

// take_trace takes the file for the state changes of fibers.
[[nodiscard]] bool take_trace(const Setting& setting, Options& options) noexcept;
