#pragma once

#include <coir/ledger.h>

namespace coir::account {
extern Account mcp;  // calls, sessions and listeners; what clients hold
}  // namespace coir::account
