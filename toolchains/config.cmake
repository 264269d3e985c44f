# coir/config.h: the switches of the build, each 0 or 1, from port/config.h.in. It lies in COIR_CONFIG_DIR.
#
# By itself this file writes one for checks that compile headers without a tree:
#
#   cmake -DCOIR_CONFIG_DIR=DIR -DCOIR_TLS=ON -P toolchains/config.cmake
function(coir_write_config)
  if(CMAKE_BUILD_TYPE STREQUAL "Debug")
    set(COIR_WATCHDOG ON)
  endif()
  if(COIR_WATCHDOG OR COIR_SANITIZE)
    set(COIR_SPIN_CHECKS ON)
    set(COIR_CLOSE_CHECKS ON)
  endif()
  configure_file("${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../port/config.h.in" "${COIR_CONFIG_DIR}/coir/config.h")
endfunction()

if(NOT CMAKE_SCRIPT_MODE_FILE)
  set(COIR_CONFIG_DIR "${PROJECT_BINARY_DIR}/include")
endif()
coir_write_config()
