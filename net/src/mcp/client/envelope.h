#pragma once

#include <coir/error.h>

#include <cstdint>
#include <expected>

#include "mcp/client/client_state.h"
#include "mcp/client/wire/growing_text.h"

namespace coir::mcp::detail {

// write_request writes a request as the session's revision wants it. Errors: no_memory, limit.
std::expected<void, Error> write_request(GrowingText& into, const McpClientState& state, const Agreement& session,
                                         const Ask& ask) noexcept;

// offered is what any server may ask of us, unless a request says otherwise. write_capabilities writes it as an object.
CapabilitySet offered(const McpClientOptions& options) noexcept;
void write_capabilities(JsonWriter& out, CapabilitySet capabilities) noexcept;

// write_named writes params of a name, or a URI, with arguments.
std::expected<void, Error> write_named(GrowingText& into, std::string_view key, std::string_view name,
                                       std::string_view arguments) noexcept;

}  // namespace coir::mcp::detail
