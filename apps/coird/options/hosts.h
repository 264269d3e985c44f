#pragma once

#include "options.h"

// --allow-host: by which names clients may call this machine besides its own.

// take_host takes a name, or an address, without a port.
[[nodiscard]] bool take_host(const Setting& setting, Options& options) noexcept;

// allow_hosts hands the names on to the server's options, and that of --mdns with them: once all options are read.
void allow_hosts(Options& options) noexcept;
