# The common part of the musl targets: static programs against the sysroot that set-up built. The file that includes
# this one sets COIR_TARGET, COIR_TARGET_CPU and COIR_TARGET_FLAGS, and COIR_TARGET_EMULATOR where QEMU's user mode for
# the CPU is not called qemu-<cpu>. Its COIR_TARGET_DEBIAN is what Debian calls the architecture, for scripts/package.
#
# COIR_MUSL_ROOT names a sysroot of your own instead: usr/include with kernel headers, usr/lib with libc.a, crt1.o,
# crti.o, crtn.o and libgcc.a.

include("${CMAKE_CURRENT_LIST_DIR}/cache.cmake")
coir_cached(COIR_SYSROOT "musl-${COIR_TARGET}" musl COIR_MUSL_ROOT)
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES COIR_MUSL_ROOT COIR_LIBCXX_INCLUDE)

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR "${COIR_TARGET_CPU}")
set(CMAKE_SYSROOT "${COIR_SYSROOT}")
set(CMAKE_C_COMPILER_TARGET "${COIR_TARGET}")
set(CMAKE_CXX_COMPILER_TARGET "${COIR_TARGET}")
set(CMAKE_ASM_COMPILER_TARGET "${COIR_TARGET}")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE BOTH)

include("${CMAKE_CURRENT_LIST_DIR}/clang.cmake")

set(CMAKE_C_FLAGS_INIT "${COIR_TARGET_FLAGS} -fno-pie")
set(CMAKE_ASM_FLAGS_INIT "${COIR_TARGET_FLAGS}")
# musl has no __dso_handle of its own; destructors of static objects go through atexit.
string(APPEND CMAKE_CXX_FLAGS_INIT " ${COIR_TARGET_FLAGS} -fno-pie -D_LIBCPP_HAS_MUSL_LIBC -fno-use-cxa-atexit")
coir_keep_own_flags()

# Start files and libraries are named one by one: the compiler's own choice would ask for gcc's.
set(coir_lib "${COIR_SYSROOT}/usr/lib")
foreach(language C CXX)
  set(CMAKE_${language}_LINK_EXECUTABLE "<CMAKE_${language}_COMPILER> <FLAGS> <CMAKE_${language}_LINK_FLAGS> <LINK_FLAGS> \
-static -nostdlib ${coir_lib}/crt1.o ${coir_lib}/crti.o <OBJECTS> -o <TARGET> <LINK_LIBRARIES> \
-Wl,--start-group -lc -lgcc -Wl,--end-group ${coir_lib}/crtn.o")
endforeach()

# A foreign CPU's programs, tests above all, run under QEMU's user mode.
if(NOT COIR_TARGET_CPU STREQUAL CMAKE_HOST_SYSTEM_PROCESSOR)
  if(NOT COIR_TARGET_EMULATOR)
    set(COIR_TARGET_EMULATOR qemu-${COIR_TARGET_CPU})
  endif()
  find_program(COIR_EMULATOR ${COIR_TARGET_EMULATOR} ${COIR_TARGET_EMULATOR}-static)
  if(COIR_EMULATOR)
    set(CMAKE_CROSSCOMPILING_EMULATOR "${COIR_EMULATOR}")
  endif()
endif()
