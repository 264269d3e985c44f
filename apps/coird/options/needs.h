#pragma once

#include "settings.h"

// check_needs looks for options that have no effect without another one. False: a line on standard error has named each
// of a file, or the first of the command line.
[[nodiscard]] bool check_needs(const Settings& settings) noexcept;
