#pragma once

#include <coir/error.h>

#include <expected>

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
