#pragma once

#include "option_table.h"

// check_needs looks for an option that says nothing without another one. `given` tells of each number of the option
// table whether it was there. False: one line on standard error has named both.
[[nodiscard]] bool check_needs(const bool (&given)[kLast]) noexcept;
