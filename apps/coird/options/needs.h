#pragma once

#include "settings.h"

// check_needs looks for an option that says nothing without another one. False: one line on standard error has named
// both.
[[nodiscard]] bool check_needs(const Settings& settings) noexcept;
