#pragma once

#include <coir/config.h>

#include "options/options.h"

#if COIR_TLS
#include <coir/tls.h>

#include "private_file.h"

// CredentialFiles is the contents of the files that the options name. From a fiber or before the run.
class CredentialFiles {
 public:
  // read reads them. False: one line on standard error, "coird: FILE: what is wrong (CURE)", has said why not.
  [[nodiscard]] bool read(const Options& options, const char* cure) noexcept;

  // make makes the server's context of them; where the options name none, of coird's own (own_certificate.h). It needs the
  // kernel's random numbers. Null: one line has said why.
  coir::TlsContext make(const Options& options, bool at_start, const char* cure) const noexcept;

 private:
  // A certificate and its key may be one file.
  SecretBytes chains_[Options::kMaxCertificates], keys_[Options::kMaxCertificates];
  coir::FileBytes authorities_;
};

// load_credentials does both.
coir::TlsContext load_credentials(const Options& options, bool at_start, const char* cure) noexcept;
#endif
