#include <string>

// The members of std::string that libc++ declares `extern template`, by its own list.

_LIBCPP_BEGIN_NAMESPACE_STD

#define COIR_INSTANTIATE(...) template __VA_ARGS__;
#ifdef _LIBCPP_ABI_STRING_OPTIMIZED_EXTERNAL_INSTANTIATION
_LIBCPP_STRING_UNSTABLE_EXTERN_TEMPLATE_LIST(COIR_INSTANTIATE, char)
#else
_LIBCPP_STRING_V1_EXTERN_TEMPLATE_LIST(COIR_INSTANTIATE, char)
#endif
#undef COIR_INSTANTIATE

template string operator+ <char, char_traits<char>, allocator<char>>(const char*, const string&);

_LIBCPP_END_NAMESPACE_STD
