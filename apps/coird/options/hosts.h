#pragma once

#include "options.h"

// --allow-host: by which names clients may call this machine besides its own.

// take_host takes a name, or an address, without a port.
[[nodiscard]] bool take_host(const Setting& setting, Options& options) noexcept;

// allow_hosts copies the names, and the name of --mdns, to the server's options, once all options are read.
void allow_hosts(Options& options) noexcept;
