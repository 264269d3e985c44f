#pragma once

// A header of what needs fibers, or threads, includes this one first: a build without them has nothing behind it. The
// compiler names that header in the line before the message.
//
//   #include <coir/port/needs_fibers.h>

#include <coir/config.h>

#if COIR_NO_ASYNC
#error \
    "the header that includes this one needs fibers, and this build has none (COIR_NO_ASYNC): use coir/wait.h and coir/program.h, or build without --no-async"
#endif
