#pragma once

#include <coir/error.h>

namespace coir::http {

// ClientFault is what an error of the client's side of HTTP carries in `sys`, above every errno, for describe.
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

inline constexpr int kFirstClientFault = 0x48000000;

constexpr Error client_error(ErrorCode code, ClientFault fault) noexcept {
  return {code, kFirstClientFault + static_cast<int>(fault)};
}

// is_hang_up tells that the peer has ended the connection, in whichever way.
constexpr bool is_hang_up(Error error) noexcept {
  return error == ErrorCode::end_of_stream || error == ErrorCode::closed || error == ErrorCode::truncated;
}

}  // namespace coir::http
