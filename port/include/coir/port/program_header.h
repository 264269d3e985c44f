#pragma once

// The headers of the program's own file, in memory.
//
//   if (__ehdr_start.e_type == ET_DYN) show("its addresses are those of its file, moved");

#include <link.h>

// The linker defines this symbol at the start of the program's headers.
extern "C" [[gnu::visibility("hidden")]] const ElfW(Ehdr) __ehdr_start;
