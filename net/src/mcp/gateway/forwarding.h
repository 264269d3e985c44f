#pragma once

#include <coir/json.h>
#include <coir/mcp.h>
#include <coir/mcp/detail/call.h>

#include <string_view>

#include "mcp/gateway/mounted.h"

namespace coir::mcp::detail {

// forward has an upstream answer a call; forward_completion a completion. `own` is the upstream's name of what is called.
void forward(Mounted& to, Call& call, ItemKind kind, JsonView params, std::string_view own) noexcept;
void forward_completion(Mounted& to, Call& call, ItemKind kind, JsonView params, std::string_view own) noexcept;

}  // namespace coir::mcp::detail
