#pragma once

#include <cstdint>

#include <coir/errno.h>

namespace coir {

// ErrorCode is the whole vocabulary of failures that coir's own calls return. The same word means the same thing
// everywhere.
enum class ErrorCode : std::uint16_t {
  cancelled = 1,  // the caller's fiber is cancelled, or the operation was
  timed_out,      // the deadline passed first
  closed,         // the object was closed, here or by the peer
  end_of_stream,  // the file, or the peer's side, has ended in good order; nothing more comes
  stale,          // the handle's fiber has ended and was joined, or never was
  busy,           // somebody else already does what may be done once
  queue_full,     // a backlog is full for now
  limit,          // a ceiling, a capacity or a size limit is reached
  no_memory,      // memory or address space could not be had
  invalid,        // an argument or an input is malformed; of a TLS context, sys holds what is wrong
  not_found,      // the name given leads to nothing
  temporary,      // it failed for now, and may succeed later
  deadlock,       // nothing can ever wake what is parked
  unsupported,    // this kernel or this build lacks it, or nothing can be waited for where the caller is
  truncated,      // the peer's side ended without its closing word: what came may not be all
  untrusted,      // the peer's certificate does not hold: sys holds what is wrong with it
  alert,          // the peer ended it with an alert: sys holds its number
  protocol,       // the peer does not keep to the protocol, or cannot be agreed with
  system,         // the kernel refused: sys holds its errno
};

// Error is a code and, where the kernel had a say, its errno. It is a value of eight bytes; nothing is owned. To ask an
// expected for a value that it does not hold ends the process with one line that names the fiber: verbose_abort.cpp.
struct Error {
  ErrorCode code{};
  // Of `timed_out` and `cancelled`: the cancel scope that ended the wait, as CancelScope::id names it. 0: the deadline
  // was the call's own, or the fiber itself was cancelled.
  std::uint16_t scope = 0;
  int sys = 0;

  constexpr Error() noexcept = default;
  constexpr Error(ErrorCode what, int number = 0) noexcept : code(what), sys(number) {}

  // from_errno maps what has a word of its own (ETIMEDOUT, ECANCELED, ENOENT, EMFILE, ENOMEM, EPIPE ...) and keeps the
  // number.
  static Error from_errno(int number) noexcept;

  friend constexpr bool operator==(Error a, Error b) noexcept { return a.code == b.code; }
  friend constexpr bool operator==(Error a, ErrorCode b) noexcept { return a.code == b; }
};

// describe returns a static, lower-case phrase for logs ("timed out"); the errno's text when the code is `system`.
const char* describe(Error error) noexcept;

}  // namespace coir
