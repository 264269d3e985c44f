#pragma once

#include <coir/deadline.h>
#include <coir/net/stream.h>

#include "http/message/response_parser.h"

// How long a connection rests between two requests, and whether it can carry the next. resting.cpp
namespace coir::http {

// rest_time is how long a connection may rest: at most `longest`, and a second less than the server keeps it by the
// response's Keep-Alive ("timeout=5, max=100"). Zero and less: it may not.
std::chrono::milliseconds rest_time(const ParsedResponse& response, std::chrono::milliseconds longest) noexcept;

// is_quiet looks at a connection that has rested: it has not ended, and nothing has come that nobody asked for. Costs a
// system call.
bool is_quiet(Stream& stream) noexcept;

}  // namespace coir::http
