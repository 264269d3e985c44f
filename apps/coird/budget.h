#pragma once

#include "options/options.h"

// Budget is what the daemon may use of the machine's memory, and what that buys. Sizes are in bytes.
struct Budget {
  std::size_t ceiling = 0;     // of the ledger's total, at the start
  std::size_t spare = 0;       // what the machine can spare; SIZE_MAX where it does not say
  std::size_t reserve = 0;     // of that, what is left alone
  std::size_t process = 0;     // resident before anything is served
  std::size_t connection = 0;  // the record of one, and what the kernel holds for it
  std::size_t fiber = 0;       // the stack of one
  std::size_t request = 0;     // buffers and stack of one being served
  std::size_t session = 0;     // of TLS, at rest; 0 where nothing listens for TLS
  std::size_t handshake = 0;   // one under way, with record buffers, and served while it computes

  std::size_t room() const noexcept { return ceiling > process ? ceiling - process : 0; }
};

// plan_budget sets the ceilings that the options ask for, and the numbers of connections and requests that they leave
// open. False: they cannot be kept; one line on standard error has named the figure that breaks them.
[[nodiscard]] bool plan_budget(Options& options, Budget& budget) noexcept;

// print_budget writes the plan to standard output, one "name: value unit" a line. False: a line has said what is wrong
// with a file of the options.
[[nodiscard]] bool print_budget(const Options& options, const Budget& budget) noexcept;

// fit_descriptors raises the limit of open descriptors as far as it goes, and lowers the numbers of requests and of
// connections to what it allows: where files are served each request may need one for its file, up to a quarter of all.
void fit_descriptors(Options& options) noexcept;
