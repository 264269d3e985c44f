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
set_target_properties(coir_cpputest PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)

add_library(coir_test_support STATIC
  support/child.cpp support/name_server.cpp support/cxx_runtime.cpp support/test_main.cpp support/time_limit.cpp)
if(NOT COIR_NO_ASYNC)
  target_sources(coir_test_support PRIVATE support/mixed.cpp)
endif()
target_link_libraries(coir_test_support PUBLIC coir_cpputest PRIVATE coir_core coir_build)

# Unit tests are not measured, and no debugger reads them: they are compiled without optimisation, unless they are marked
# OPTIMISED, and without debug information, except under sanitizers, whose reports name lines. The code under test is
# optimised as it is in that tree's library.
add_library(coir_test_build INTERFACE)
target_include_directories(coir_test_build INTERFACE "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/core/src"
  "${PROJECT_SOURCE_DIR}/net/src")
target_link_libraries(coir_test_build INTERFACE coir_test_support coir_build)
# A painted stack is resident: tests of what an idle one holds leave themselves out.
target_compile_definitions(coir_test_build INTERFACE $<$<BOOL:${COIR_PAINT}>:COIR_PAINT>)
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  target_compile_options(coir_test_build INTERFACE $<$<COMPILE_LANGUAGE:C,CXX>:-O0>)
  if(NOT COIR_SANITIZE)
    target_compile_options(coir_test_build INTERFACE $<$<COMPILE_LANGUAGE:C,CXX>:-g0>)
    target_link_options(coir_test_build INTERFACE -Wl,--strip-debug)
  endif()
endif()

# cpu_tests are the unit tests that a tree of a foreign CPU builds and runs, unless scripts/test runs everything.
add_custom_target(cpu_tests)
# locks_tests are those that the gate builds and runs under the thread sanitizer: all of core's rooms, and tests with LOCKS.
add_custom_target(locks_tests)
set(coir_rooms_with_locks base blocking fiber inspect isolate memory process run schedule scope sync wait)

# coir_test(ROOM/NAME [CPU] [VM] [LOCKS] [OPTIMISED] [PROGRAM NAME] [SOURCES FILE ...] [LIBS TARGET ...] [WRAP FUNCTION ...])
#
# One CTest entry, NAME, with the tests of ROOM/NAME_test.cpp of the calling folder. The tests of a room are one program,
# ROOM_tests, or that of PROGRAM; NAME_test is a link to it, by which it runs those of NAME alone (support/test_main.cpp).
# Links coir_core unless LIBS names others. CPU marks a test that can differ by CPU; trees of a foreign CPU have those in
# programs of their own. LOCKS marks a test of net of what several workers share. OPTIMISED marks a test that measures
# stacks, fills one, or computes for long: it is no part of a batch. VM marks one that starts programs while it has other
# threads: QEMU's user mode forks there, where a kernel has vfork, and the child hangs now and then by a lock that another
# thread held. On a foreign CPU it is no CTest entry: tests/system/vm_serves runs it on the board's kernel.
# WRAP has the linker lead calls of the functions to those that the test defines. Tests include private headers from the
# root of the tree: #include "core/src/schedule/timer_wheel.h".
function(coir_test path)
  get_filename_component(name "${path}" NAME)
  cmake_parse_arguments(arg "CPU;VM;LOCKS;OPTIMISED" "PROGRAM" "SOURCES;LIBS;WRAP" ${ARGN})
  if(NOT arg_PROGRAM)
    string(REGEX REPLACE "/.*" "" arg_PROGRAM "${path}")
  endif()
  if(arg_CPU AND NOT COIR_CPU STREQUAL CMAKE_HOST_SYSTEM_PROCESSOR)
    string(APPEND arg_PROGRAM _cpu)
  endif()
  set(program ${arg_PROGRAM}_tests)
  if(NOT TARGET ${program})
    add_executable(${program})
    set_target_properties(${program} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
    target_link_libraries(${program} PRIVATE coir_core)
  endif()
  target_sources(${program} PRIVATE ${path}_test.cpp ${arg_SOURCES})
  target_link_libraries(${program} PRIVATE ${arg_LIBS} coir_test_build)
  list(TRANSFORM arg_WRAP PREPEND "LINKER:--wrap=")
  target_link_options(${program} PRIVATE ${arg_WRAP})
  if(arg_OPTIMISED)
    set_source_files_properties(${path}_test.cpp PROPERTIES COMPILE_OPTIONS -O1)
  endif()
  file(CREATE_LINK ${program} "${CMAKE_CURRENT_BINARY_DIR}/${name}_test" SYMBOLIC)
  add_custom_target(${name}_test DEPENDS ${program})
  if(arg_CPU)
    add_dependencies(cpu_tests ${program})
  endif()
  if(arg_VM AND NOT COIR_NO_ASYNC AND NOT COIR_CPU STREQUAL CMAKE_HOST_SYSTEM_PROCESSOR)
    return()
  endif()
  add_test(NAME ${name} COMMAND ${CMAKE_CROSSCOMPILING_EMULATOR} "${CMAKE_CURRENT_BINARY_DIR}/${name}_test")
  set_tests_properties(${name} PROPERTIES TIMEOUT 595)
  if(arg_CPU)
    set_property(TEST ${name} APPEND PROPERTY LABELS cpu)
  endif()
  get_filename_component(room "${path}" DIRECTORY)
  if(arg_LOCKS OR room IN_LIST coir_rooms_with_locks)
    add_dependencies(locks_tests ${program})
    set_property(TEST ${name} APPEND PROPERTY LABELS locks)
  endif()
  # Nothing goes to the kernel under a spinlock (coir/port/spinning.h).
  set_property(TEST ${name} PROPERTY ENVIRONMENT COIR_SPIN_CHECKS=1)
endfunction()
