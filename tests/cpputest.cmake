# coir_cpputest: the test framework, compiled from source with this tree's flags, so that it needs no C++ runtime
# library and is instrumented where the tests are.
coir_cached(coir_cpputest_dir cpputest cpputest COIR_CPPUTEST_DIR)
file(GLOB coir_cpputest_sources "${coir_cpputest_dir}/src/CppUTest/*.cpp")
add_library(coir_cpputest STATIC ${coir_cpputest_sources} "${coir_cpputest_dir}/src/Platforms/Gcc/UtestPlatform.cpp")
target_include_directories(coir_cpputest SYSTEM PUBLIC "${coir_cpputest_dir}/include")
target_compile_definitions(coir_cpputest PUBLIC
  CPPUTEST_STD_CPP_LIB_DISABLED CPPUTEST_MEM_LEAK_DETECTION_DISABLED CPPUTEST_HAVE_LONG_LONG_INT
  CPPUTEST_HAVE_FORK CPPUTEST_HAVE_WAITPID CPPUTEST_HAVE_KILL CPPUTEST_HAVE_GETTIMEOFDAY
  CPPUTEST_HAVE_PTHREAD_MUTEX_LOCK)
target_compile_options(coir_cpputest PRIVATE -w)
target_link_libraries(coir_cpputest PUBLIC coir_language PRIVATE coir_build)

add_library(coir_test_support STATIC
  support/child.cpp support/name_server.cpp support/cxx_runtime.cpp support/test_main.cpp support/time_limit.cpp)
if(NOT COIR_NO_ASYNC)
  target_sources(coir_test_support PRIVATE support/mixed.cpp)
endif()
target_link_libraries(coir_test_support PUBLIC coir_cpputest PRIVATE coir_core coir_build)

# How unit tests are compiled: nothing of them is measured and no debugger reads them, so without much optimisation and
# without debug information. What they test is compiled as it is shipped. Sanitizers name lines: they keep the tables.
add_library(coir_test_build INTERFACE)
target_include_directories(coir_test_build INTERFACE "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/core/src"
  "${PROJECT_SOURCE_DIR}/net/src")
target_link_libraries(coir_test_build INTERFACE coir_test_support coir_build)
if(NOT COIR_SANITIZE AND CMAKE_BUILD_TYPE STREQUAL "Release")
  target_compile_options(coir_test_build INTERFACE $<$<COMPILE_LANGUAGE:C,CXX>:-O1;-g0>)
  target_link_options(coir_test_build INTERFACE -Wl,--strip-debug)
endif()

# All unit tests share one set of precompiled headers, but those that see mbedTLS, whose macros differ.
if(COIR_PRECOMPILE)
  add_library(coir_test_headers OBJECT support/precompiled.cpp)
  target_link_libraries(coir_test_headers PRIVATE coir_net coir_test_build)
  coir_precompile(coir_test_headers "${CMAKE_CURRENT_SOURCE_DIR}/support/precompiled.h")
endif()

# What a tree of a foreign CPU builds and runs of the unit tests, unless scripts/test is to run everything.
add_custom_target(cpu_tests)

# coir_test(ROOM/NAME [CPU] [VM] [SOURCES FILE ...] [LIBS TARGET ...])
#
# One executable and one CTest entry, NAME, from ROOM/NAME_test.cpp of the calling folder. Links coir_core unless LIBS
# names others. CPU marks a test that can differ by CPU. VM marks one that starts
# programs while it has other threads: QEMU's user mode forks there, where a kernel has vfork, and the child hangs now and
# then by a lock that another thread held. On a foreign CPU it is no CTest entry: tests/system/vm_serves runs it on the
# board's kernel. Tests include private headers from the root of the tree:
# #include "core/src/schedule/timer_wheel.h".
function(coir_test path)
  get_filename_component(name "${path}" NAME)
  cmake_parse_arguments(arg "CPU;VM" "" "SOURCES;LIBS" ${ARGN})
  if(NOT arg_LIBS)
    set(arg_LIBS coir_core)
  endif()
  add_executable(${name}_test ${path}_test.cpp ${arg_SOURCES})
  target_link_libraries(${name}_test PRIVATE ${arg_LIBS} coir_test_build)
  if(COIR_PRECOMPILE AND NOT coir_mbedtls IN_LIST arg_LIBS)
    target_precompile_headers(${name}_test REUSE_FROM coir_test_headers)
  endif()
  if(arg_CPU)
    add_dependencies(cpu_tests ${name}_test)
  endif()
  if(arg_VM AND NOT COIR_NO_ASYNC AND NOT COIR_CPU STREQUAL CMAKE_HOST_SYSTEM_PROCESSOR)
    return()
  endif()
  add_test(NAME ${name} COMMAND ${name}_test)
  set_tests_properties(${name} PROPERTIES TIMEOUT 595)
  if(arg_CPU)
    set_tests_properties(${name} PROPERTIES LABELS cpu)
  endif()
endfunction()
