#pragma once

#include <coir/http/client.h>

namespace coir::http {

// Errors of the client carry in `sys`, above every errno, what describe_client tells.
enum class ClientFault : int {
  bad_head,           // what came is no head of a response
  bad_chunk,          // nor is it a chunk
  too_many_interim,   // responses of 1xx
  unasked_upgrade,    // 101
  insecure_redirect,  // from https to http
  bad_location,       // a redirect without a place that can be gone to
  too_many_redirects,
  cannot_repeat,  // a redirect wants content again that cannot be
  proxy_refused,  // CONNECT
  bad_range,      // a 206 that is not what was asked for
  short_upload,   // an Upload with another size than it said
  head_too_long,
  no_event_stream,   // the content is of another type
  bad_coding,        // the content is not compressed as its head says
  too_long_decoded,  // decompressed it is over ClientOptions::max_decoded
  no_trust,          // the system has no authorities that can be read
  not_admitted,      // by ClientOptions::guard
};

Error client_error(ErrorCode code, ClientFault fault) noexcept;

// status_error is the error of a status that is no success.
Error status_error(int status) noexcept;

// phase_error marks a timed_out of a phase's own deadline. Other errors stay as they are.
Error phase_error(Error error, Phase phase, Deadline total) noexcept;

}  // namespace coir::http
