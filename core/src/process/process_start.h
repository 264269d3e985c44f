#pragma once

#include <sys/types.h>

#include <expected>

#include <coir/deadline.h>
#include <coir/error.h>
#include <coir/process.h>

namespace coir {

// StartedChild is a running child: its owner waits for it and closes the descriptors.
struct StartedChild {
  pid_t pid = -1;
  int pidfd = -1;  // -1: this kernel has none
  int in = -1;
  int out = -1, err = -1;
};

std::expected<StartedChild, Error> start_process(const Command& command, Deadline deadline) noexcept;

}  // namespace coir
