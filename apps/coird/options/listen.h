#pragma once

#include "options.h"

// These take the options that name addresses.
[[nodiscard]] bool take_listen(const Setting& setting, Options& options) noexcept;
[[nodiscard]] bool take_tls_listen(const Setting& setting, Options& options) noexcept;
[[nodiscard]] bool take_metrics_listen(const Setting& setting, Options& options) noexcept;

// These take the files of certificates and of their keys, check_certificates looks at both.
[[nodiscard]] bool take_cert(const Setting& setting, Options& options) noexcept;
[[nodiscard]] bool take_key(const Setting& setting, Options& options) noexcept;
[[nodiscard]] bool check_certificates(const Options& options) noexcept;
