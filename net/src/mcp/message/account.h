#pragma once

#include <coir/ledger.h>

namespace coir::account {
extern Account mcp;  // defined in text.cpp; coir/mcp.h declares it for servers
}  // namespace coir::account
