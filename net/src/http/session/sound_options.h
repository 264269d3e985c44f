#pragma once

#include <coir/http/server.h>

#include <expected>

namespace coir::http {

// sound_options returns the options as an engine takes them. Error: invalid.
std::expected<ServerOptions, Error> sound_options(const ServerOptions& options) noexcept;

}  // namespace coir::http
