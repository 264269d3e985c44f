#pragma once

// The one vocabulary of failures.
//
//   std::expected<int, Error> parsed = std::unexpected(Error(ErrorCode::invalid));
//   if (!parsed && parsed.error() == ErrorCode::invalid) complain(describe(parsed.error()));
//   if (::fsync(fd) != 0) return complain(Error::from_errno(errno));

#include <cstdint>
#include <expected>

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
  no_memory,      // memory or address space is exhausted, or a ceiling refuses it
  invalid,        // an argument or an input is malformed; of a TLS context, sys holds what is wrong
  not_found,      // the name given leads to nothing
  temporary,      // it failed for now, and may succeed later
  deadlock,       // no event can wake the parked fibers any more; or the wait would be for the caller itself
  unsupported,    // the kernel or the build lacks it, or the caller's context cannot wait
  truncated,      // the peer ended without announcing it: data may be missing
  untrusted,      // the peer's certificate is not accepted: sys holds the reason
  alert,          // the peer ended it with an alert: sys holds its number
  protocol,       // the peer violates the protocol, or supports nothing that this side does
  system,         // the kernel refused: sys holds its errno
};

// Error is a code and, if the kernel reported one, an errno: a value of eight bytes that owns nothing. value() of an
// expected that holds an error ends the process with one line that names the error and the fiber. `must` of coir/must.h
// also names the place of the call.
struct Error {
  ErrorCode code{};
  // If `code` is timed_out or cancelled, scope is the cancel scope that ended the wait, as CancelScope::id names it. 0:
  // the deadline was the call's own, or the fiber itself was cancelled.
  std::uint16_t scope = 0;
  int sys = 0;

  constexpr Error() noexcept = default;
  constexpr Error(ErrorCode what, int number = 0) noexcept : code(what), sys(number) {}

  // from_errno maps an errno that has a code of its own (ETIMEDOUT, ECANCELED, ENOENT, EMFILE, ENOMEM, EPIPE ...) to
  // it, any other to `system`, and keeps the number.
  static Error from_errno(int number) noexcept;

  // ends_waits tells whether every later wait of the caller ends in the same way: its fiber or a scope around it is
  // cancelled, or a scope's deadline has passed. A loop that goes on when its own deadline passes returns such an error.
  constexpr bool ends_waits() const noexcept {
    return code == ErrorCode::cancelled || (code == ErrorCode::timed_out && scope != 0);
  }

  // is_late tells whether the call's own deadline has passed, and no scope's: the caller may go on.
  constexpr bool is_late() const noexcept { return code == ErrorCode::timed_out && scope == 0; }

  // is_disk_full tells whether the disk, the user's quota of it or the largest size of a file is reached.
  constexpr bool is_disk_full() const noexcept { return sys == ENOSPC || sys == EDQUOT || sys == EFBIG; }

  friend constexpr bool operator==(Error a, Error b) noexcept { return a.code == b.code; }
  friend constexpr bool operator==(Error a, ErrorCode b) noexcept { return a.code == b; }
};

// describe returns a static phrase for logs ("timed out"); the errno's text when the code is `system`. If `sys` holds more,
// the phrase tells it: which alert the peer has sent, why its certificate is not accepted, which phase of a request has
// timed out. Any context.
const char* describe(Error error) noexcept;

namespace detail {

// A Phrase returns what describe says of an error, or null if it knows no more than the code.
using Phrase = const char* (*)(Error error) noexcept;

// add_phrase has describe ask `of` as well; once is enough. A part of net adds its own before its first error. At most 4.
void add_phrase(Phrase of) noexcept;

}  // namespace detail

}  // namespace coir

// value() of a std::expected that holds a coir::Error ends the process with a line that names the error. Without exceptions
// libc++ drops the error and only reports that value() failed. The function that it would throw from is a template, which is
// specialised here for Error. Another library's value() still drops the error.

#if defined(_LIBCPP_VERSION) && !defined(__cpp_exceptions)
namespace coir::detail {

// end_by_value ends the process by fatal's line with the error and the caller's address; verbose_abort.cpp has it.
[[noreturn, gnu::noinline]] void end_by_value(const Error& error) noexcept;

}  // namespace coir::detail

_LIBCPP_BEGIN_NAMESPACE_STD

template <>
inline void __throw_bad_expected_access<coir::Error, const coir::Error&>(const coir::Error& error) {
  coir::detail::end_by_value(error);
}

template <>
inline void __throw_bad_expected_access<coir::Error, coir::Error>(coir::Error&& error) {
  coir::detail::end_by_value(error);
}

template <>
inline void __throw_bad_expected_access<coir::Error, const coir::Error>(const coir::Error&& error) {
  coir::detail::end_by_value(error);
}

_LIBCPP_END_NAMESPACE_STD
#endif
