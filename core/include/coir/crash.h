#pragma once

// The signal that ends the process, described to the program in its handler.
//
//   coir::on_crash([](const coir::Crash& crash) noexcept {
//     char line[120];
//     const auto text = coir::format(line, "signal ", crash.signal, " in ", crash.name, "\n");
//     static_cast<void>(!write(2, text.data(), text.size()));
//   });

#include <coir/error.h>
#include <coir/format.h>

#include <cstddef>
#include <cstdint>
#include <source_location>
#include <span>

namespace coir {

// Crash is what is known of a signal that ends the process. The views are valid during the call alone.
struct Crash {
  int signal = 0;                    // SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT or SIGSYS
  int sender = 0;                    // the process that sent it; 0: an instruction of this program raised it
  std::uintptr_t address = 0;        // that the instruction failed at; of SIGSYS, the number of the system call
  std::uint64_t fiber = 0;           // the fiber that ran; 0: none did
  const char* name = nullptr;        // its name
  std::source_location where;        // of its spawn
  std::size_t overflowed_bytes = 0;  // the size of the stack that overflowed; 0: none did
  // Return addresses as the program's file has them, the innermost first, and at the front the failing instruction's.
  std::span<const std::uintptr_t> calls;
};

// on_crash has `told` called, once and on a signal stack, by the thread that gets the first of these signals; other threads
// that get one meanwhile wait for the end. It may call async-signal-safe functions only. Afterwards the signal takes its
// former effect, so that the exit status and a core file are as without it. An overflow of a fiber's stack is reported on
// standard error as ever, and then here. Call it before the run, on the thread that becomes its first worker. A null
// `told` puts back what was before. Error: no_memory (for the calling thread's signal stack).
std::expected<void, Error> on_crash(void (*told)(const Crash& crash) noexcept) noexcept;

// build_id, in build_id.cpp, is what the linker has written into the program to tell its builds apart; empty if it has
// written nothing.
std::span<const unsigned char> build_id() noexcept;

}  // namespace coir
