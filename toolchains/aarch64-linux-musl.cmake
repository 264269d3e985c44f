# Static aarch64. Atomics are inlined: the outlined ones of libgcc ask glibc which instructions the CPU has.
set(COIR_TARGET aarch64-linux-musl)
set(COIR_TARGET_CPU aarch64)
set(COIR_TARGET_DEBIAN arm64)
set(COIR_TARGET_FLAGS "-march=armv8-a -mno-outline-atomics")
include("${CMAKE_CURRENT_LIST_DIR}/linux-musl.cmake")
