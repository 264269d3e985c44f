#pragma once

#include <link.h>

// The linker defines this symbol at the start of the program's headers.
extern "C" [[gnu::visibility("hidden")]] const ElfW(Ehdr) __ehdr_start;
