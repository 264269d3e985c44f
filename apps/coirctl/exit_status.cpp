#include "exit_status.h"

using coir::ErrorCode;

// A fault that the client itself has found has a number above every errno: limit is then the response's, and not_found
// means the authorities.
Status status_of(coir::Error error) noexcept {
  constexpr int kMostErrno = 4095;
  const bool found_fault = error.sys > kMostErrno;
  switch (error.code) {
    case ErrorCode::invalid:
    case ErrorCode::unsupported:
      return kAddress;
    case ErrorCode::not_found:
      return found_fault ? kTls : kHost;
    case ErrorCode::temporary:
      return kHost;
    case ErrorCode::timed_out:
    case ErrorCode::cancelled:
      return kTime;
    case ErrorCode::untrusted:
    case ErrorCode::alert:
      return kTls;
    case ErrorCode::protocol:
    case ErrorCode::truncated:
      return kResponse;
    case ErrorCode::limit:
      return found_fault ? kResponse : kMachine;
    case ErrorCode::no_memory:
      return kMachine;
    default:
      return kConnection;
  }
}
