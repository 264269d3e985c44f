#pragma once

// Durations, their literals and the monotonic clock of std::chrono, without the calendar and the formatter that
// <chrono> includes: parsing those takes ten times as long as the rest. This file alone knows where each C++ library
// keeps them. The types are the library's own, so a program may include <chrono> as well.
#if __has_include(<__chrono/duration.h>) && __has_include(<__chrono/steady_clock.h>)
#include <__chrono/duration.h>  // libc++
#include <__chrono/steady_clock.h>
#elif __has_include(<bits/chrono.h>)
#include <bits/chrono.h>  // libstdc++
#else
#include <chrono>
#endif
