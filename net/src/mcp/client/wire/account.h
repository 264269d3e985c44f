#pragma once

#include <coir/ledger.h>

namespace coir::account {
extern Account mcp;
}  // namespace coir::account
