# This machine's own CPU and glibc, for sanitizers, fuzzers and coverage; never shipped.
include("${CMAKE_CURRENT_LIST_DIR}/clang.cmake")
coir_keep_own_flags()

# Linking as C leaves out the half of the sanitizers' runtime that wants a C++ runtime library.
set(CMAKE_CXX_COMPILER "${COIR_CLANG}")
