#pragma once

#include <coir/config.h>

#include "options/options.h"

#if COIR_TLS
#include <coir/tls.h>

// load_upstream_trust reads whom servers behind https have to be certified by, and what coird shows to those that ask:
// --proxy-ca, --proxy-cert and --proxy-key. Empty: one line has said what is wrong.
coir::TlsContext load_upstream_trust(const Options& options) noexcept;
#endif
