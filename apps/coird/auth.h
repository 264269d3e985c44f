#pragma once

#include <coir/config.h>

#include "options/options.h"
#include "private_file.h"

#if COIR_TLS && COIR_SITE
#include <coir/http/authorization.h>

// read_auth reads a file of credentials, that of --auth or of a route, which counts from the store's apply on. False: one line
// on standard error, "coird: FILE: what is wrong (CURE)", has said why. Before the run or from a fiber of 16 KB.
bool read_auth(const NamedFile& named, coir::http::CredentialStore& store, const char* cure) noexcept;

// is_admitted tells whether the request brings credentials of the store. False: it has been answered, 401 or 503.
bool is_admitted(coir::http::Exchange& exchange, coir::http::CredentialStore& store,
                 coir::http::FileTree* files) noexcept;

// print_credential reads a password or a token, the first line of standard input, and prints the line for --auth.
// Returns the exit status.
int print_credential(const Options& options) noexcept;
#endif
