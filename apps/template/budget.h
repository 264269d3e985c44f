#pragma once

#include <coir/http/server.h>

#include <cstddef>

#include "options.h"

// Budget is what the program may take, in bytes, and what fits into it.
struct Budget {
  std::size_t process;     // resident before it serves
  std::size_t kept_free;   // left to the rest of the machine
  std::size_t ceiling;     // the most that the program takes, itself included
  std::size_t connection;  // one of them, with what the kernel holds for it
};

// plan_budget sets the budget from the machine's memory, or from --memory where that is less, and fits `server` into it.
// False: not even one request fits; one line has said so.
[[nodiscard]] bool plan_budget(const Options& options, coir::http::ServerOptions& server, Budget& budget) noexcept;

// print_budget writes one figure a line to standard output.
void print_budget(const Budget& budget, const coir::http::ServerOptions& server) noexcept;
