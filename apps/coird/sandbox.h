#pragma once

#include "options/options.h"

// enter_sandbox leaves coird what it needs to serve: the system calls of a service, and changes of files below --state, the
// folder of --allow-put, /tmp, /dev, /sys and --sysfs, where the kernel can. A call that is refused is named on standard error,
// and ends coird by SIGSYS. Call it before other threads start. It does nothing with --no-sandbox, nor with a program in
// --mcp-mount, which would inherit it.
void enter_sandbox(const Options& options) noexcept;
