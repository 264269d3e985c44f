# The part that all toolchain files of this folder share: clang-19, the headers of libc++, and no C++ runtime library.

find_program(COIR_CLANG clang-19 REQUIRED)
find_program(COIR_CLANGXX clang++-19 REQUIRED)
file(REAL_PATH "${COIR_CLANG}" coir_clang_real)
cmake_path(GET coir_clang_real PARENT_PATH coir_llvm_bin)
cmake_path(GET coir_llvm_bin PARENT_PATH coir_llvm)

set(CMAKE_C_COMPILER "${COIR_CLANG}")
set(CMAKE_CXX_COMPILER "${COIR_CLANGXX}")
set(CMAKE_ASM_COMPILER "${COIR_CLANG}")
set(CMAKE_AR "${coir_llvm_bin}/llvm-ar" CACHE FILEPATH "")
set(CMAKE_RANLIB "${coir_llvm_bin}/llvm-ranlib" CACHE FILEPATH "")
set(CMAKE_NM "${coir_llvm_bin}/llvm-nm" CACHE FILEPATH "")
set(CMAKE_OBJCOPY "${coir_llvm_bin}/llvm-objcopy" CACHE FILEPATH "")
set(CMAKE_STRIP "${coir_llvm_bin}/llvm-strip" CACHE FILEPATH "")

# COIR_LIBCXX_INCLUDE names the header-only part of the C++ library; nothing of libc++ is linked.
set(COIR_LIBCXX_INCLUDE "${coir_llvm}/include/c++/v1" CACHE PATH "headers of libc++")
if(NOT EXISTS "${COIR_LIBCXX_INCLUDE}/expected")
  message(FATAL_ERROR "${COIR_LIBCXX_INCLUDE} holds no libc++: run scripts/setup, or set COIR_LIBCXX_INCLUDE")
endif()

set(CMAKE_CXX_FLAGS_INIT "-nostdinc++ -isystem ${COIR_LIBCXX_INCLUDE}")
set(CMAKE_EXE_LINKER_FLAGS_INIT "--ld-path=${coir_llvm_bin}/ld.lld")

# The build tree's binaries keep their line tables; shipped ones are stripped.
foreach(language C CXX)
  set(CMAKE_${language}_FLAGS_RELEASE "-O2 -g1 -DNDEBUG" CACHE STRING "")
  set(CMAKE_${language}_FLAGS_DEBUG "-Og -g" CACHE STRING "")
endforeach()
set(CMAKE_ASM_FLAGS_RELEASE "-g1" CACHE STRING "")
set(CMAKE_ASM_FLAGS_DEBUG "-g" CACHE STRING "")

# keep_own_flags lets flags of the user's, -DCMAKE_CXX_FLAGS=..., come behind the toolchain's own instead of in their place.
macro(coir_keep_own_flags)
  foreach(language C CXX ASM)
    if(DEFINED CACHE{CMAKE_${language}_FLAGS})
      string(FIND "${CMAKE_${language}_FLAGS}" "${CMAKE_${language}_FLAGS_INIT}" coir_at)
      if(coir_at EQUAL -1)
        set(CMAKE_${language}_FLAGS "${CMAKE_${language}_FLAGS_INIT} ${CMAKE_${language}_FLAGS}" CACHE STRING "" FORCE)
      endif()
    endif()
  endforeach()
endmacro()
