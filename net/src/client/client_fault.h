#pragma once

#include <coir/http/client.h>

#include "outbound/fault.h"

namespace coir::http {

// status_error is the error of a status that is no success.
Error status_error(int status) noexcept;

// phrase_of_fault is what describe says of errors of a client.
const char* phrase_of_fault(Error error) noexcept;

// phase_error marks a timed_out of a phase's own deadline. Other errors stay as they are.
Error phase_error(Error error, Phase phase, Deadline total) noexcept;

}  // namespace coir::http
