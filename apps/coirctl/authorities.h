#pragma once

#include <coir/config.h>
#include <coir/http/client.h>

// trust_file has a client trust the authorities of a file instead of the system's. False: one line has said why not, and
// the exit status is that of TLS.
[[nodiscard]] bool trust_file(const char* path, coir::http::ClientOptions& policy) noexcept;
