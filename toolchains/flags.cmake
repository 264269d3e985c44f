# How coir's own code is compiled, whichever toolchain compiles it.
#
#   coir_language   what code that uses coir must be compiled with too; travels with coir::port
#   coir_build      what only this tree's own targets want: warnings, and sections that the linker may drop

add_library(coir_language INTERFACE)
target_compile_features(coir_language INTERFACE cxx_std_23)
target_compile_options(coir_language INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions -fno-rtti -fno-threadsafe-statics>)
target_link_options(coir_language INTERFACE -Wl,--gc-sections)
# coir/config.h lies here; installed, beside the other headers.
target_include_directories(coir_language INTERFACE
  $<BUILD_INTERFACE:${COIR_CONFIG_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

if(NOT COIR_NO_ASYNC)
  # Backtraces of fibers go along frame pointers. A leaf has none: one that is interrupted names its caller's caller next.
  target_compile_options(coir_language INTERFACE
    $<$<COMPILE_LANGUAGE:C,CXX>:-fno-omit-frame-pointer>
    $<$<AND:$<COMPILE_LANGUAGE:C,CXX>,$<CONFIG:Release>,$<NOT:$<BOOL:${COIR_SANITIZE}>>>:-momit-leaf-frame-pointer>)
  # A frame larger than a stack's guard could step over it into another fiber's stack. If the compiler can, such a
  # frame touches each of its pages on the way down. If it cannot, guards are wider (kStackGuardBytes in the CPU's
  # header), and the compiler warns of a frame that comes near to one.
  include("${PROJECT_SOURCE_DIR}/port/arch/${COIR_CPU}/cpu.cmake")
  if(COIR_CPU_STACK_CLASH_PROTECTION)
    target_compile_options(coir_language INTERFACE $<$<COMPILE_LANGUAGE:C,CXX>:-fstack-clash-protection>)
  else()
    target_compile_options(coir_language INTERFACE
      $<$<COMPILE_LANGUAGE:C,CXX>:-Wframe-larger-than=15360 -Wno-error=frame-larger-than>)
  endif()
endif()

add_library(coir_build INTERFACE)
# Warnings are clang's: GCC's of the same names mean other things. (Options are structs of which a caller names the fields that
# matter: {.name = "reader"}.)
target_compile_options(coir_build INTERFACE
  $<$<COMPILE_LANGUAGE:C,CXX>:-ffunction-sections -fdata-sections>
  # Where a fiber was spawned is told as a path below this tree: the same bytes wherever the tree lies.
  $<BUILD_INTERFACE:$<$<COMPILE_LANGUAGE:C,CXX>:-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=>>
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-attributes=clang::>
  $<$<COMPILE_LANG_AND_ID:CXX,Clang,AppleClang>:-Wall -Wextra -Wshadow -Wundef -Wconversion -Wno-sign-conversion
    -Wnon-virtual-dtor -Wno-missing-designated-field-initializers>
  $<$<AND:$<BOOL:${COIR_WERROR}>,$<COMPILE_LANG_AND_ID:CXX,Clang,AppleClang>>:-Werror>)

# A device that is too small for fibers is short of flash, too.
if(COIR_NO_ASYNC AND CMAKE_BUILD_TYPE STREQUAL "Release")
  add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:-Os>)
  add_link_options(-Wl,-z,norelro $<$<C_COMPILER_ID:Clang>:-Wl,--icf=safe>)
endif()

# Each object leaves its functions' frames beside it in a .su file; tests/system/stack_frames.sh reads them.
target_compile_options(coir_build INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-fstack-usage>)

# Unwind tables would be loaded with the program; gdb reads .debug_frame, which is not.
if(NOT COIR_SANITIZE)
  add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:-fno-asynchronous-unwind-tables>)
endif()

# A sanitizer must instrument everything in the tree, dependencies included, or it reports false errors.
if(COIR_SANITIZE STREQUAL "asan")
  set(coir_sanitize -fsanitize=address,undefined -fno-sanitize=vptr,function -fno-sanitize-recover=all)
elseif(COIR_SANITIZE STREQUAL "tsan")
  set(coir_sanitize -fsanitize=thread)
elseif(COIR_SANITIZE)
  message(FATAL_ERROR "COIR_SANITIZE=${COIR_SANITIZE}: asan, tsan or nothing")
endif()
if(COIR_SANITIZE)
  # -O1, as both sanitizers' manuals advise: nothing is measured here, and inlined calls hide where a report comes from.
  # A test tree compiles without optimisation, which takes a third of the time; core, which runs millions of steps there,
  # is optimised in every tree.
  set(coir_sanitize_level -O1)
  if(COIR_UNITY)
    set(coir_sanitize_level -O0)
  endif()
  add_compile_options(${coir_sanitize} -fno-omit-frame-pointer $<$<CONFIG:Release>:${coir_sanitize_level}>)
  add_link_options(${coir_sanitize})
endif()
