#pragma once

#include "options.h"

// The file of --config, in the form of an INI file:
//
//   ; a comment, as is a line that begins with #
//   include = /etc/coird.d/site.conf
//   [listen]
//   listen = :80
//   [route /api]
//   url = http://10.0.0.2:8081,http://10.0.0.3:8081
//   health = /healthz
//
// The keys of a section are the options that --help lists there. A section may stand more than once. A section [route
// PREFIX] has `url` or `fastcgi`, and with url the keys of a line of --routes. A name without a folder in front that
// `include` gives is in the folder of the file that includes it.

// take_config takes --config: only the name, the file is read before the other options.
[[nodiscard]] bool take_config(const Setting& setting, Options& options) noexcept;

// read_config has the settings of a file count. False: for each that is wrong a line "FILE:LINE: KEY: problem; cure" on
// standard error has said so.
[[nodiscard]] bool read_config(const char* path, Options& options) noexcept;

// read_copy does so for a copy, without the files that it includes.
[[nodiscard]] bool read_copy(const ConfigCopy& copy, Options& options) noexcept;
