#pragma once

// std::addressof, construct_at and destroy_at, without the rest of <memory>, which takes four times as long to parse.
// This file alone knows where each C++ library keeps them.
#if __has_include(<__memory/construct_at.h>) && __has_include(<__memory/addressof.h>)
#include <__memory/addressof.h>  // libc++
#include <__memory/construct_at.h>
#elif __has_include(<bits/stl_construct.h>)
#include <bits/stl_construct.h>  // libstdc++
#else
#include <memory>
#endif
