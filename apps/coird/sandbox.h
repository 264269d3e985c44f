#pragma once

#include "options/options.h"

// These leave coird what it needs to serve, where the kernel can, before other threads start. They do nothing with
// --no-sandbox, nor with a program in --mcp-mount, which would inherit it.

// keep_writes: files are opened for writing and made below --state, the folder of --allow-put, /tmp, /dev, /sys and --sysfs
// alone. Called with the rights by which --root was opened.
void keep_writes(const Options& options) noexcept;

// keep_calls: the system calls of a service are left, once coird has its user. Another one is named on standard error, and
// ends coird by SIGSYS.
void keep_calls(const Options& options) noexcept;
