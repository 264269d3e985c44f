#pragma once

#include <coir/config.h>

#include "options/options.h"

#if COIR_TLS
#include <coir/tls.h>

// kProtocols is what coird speaks over TLS.
inline constexpr const char* kProtocols[] = {"http/1.1"};

// use_own_certificate makes the server's context of the key and certificate that lie in --state since the first start:
// self-signed.pem, readable for its owner only, and the certificate by itself in self-signed.crt, for clients.
//
// The certificate is issued again for the same key when it lacks a name or an address that the machine has now. At the
// start (`at_start`) a file that is not there, empty or damaged is made anew, and the key's fingerprint goes to
// standard error. A certificate that cannot be stored is served from memory, until a SIGHUP finds room for it. One line
// tells of each.
//
// Null: one line on standard error, "coird: FILE: what is wrong (CURE)", has said why. From a fiber of 16 KB, or before
// the run; one call at a time.
coir::TlsContext use_own_certificate(const Options& options, bool at_start, const char* cure) noexcept;
#endif
