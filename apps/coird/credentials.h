#pragma once

#include <coir/config.h>

#include "options/options.h"

#if COIR_TLS
#include <coir/tls.h>

// load_credentials makes the server's context of the files that the options name; where they name none, of coird's own
// (own_certificate.h). Null: one line on standard error, "coird: FILE: what is wrong (CURE)", has said
// why. From a fiber or before the run.
coir::TlsContext load_credentials(const Options& options, bool at_start, const char* cure) noexcept;
#endif
