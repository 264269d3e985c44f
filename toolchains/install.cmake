# `cmake --install` and find_package(coir): static libraries, public headers and coir::port, coir::core, coir::net; the
# toolchain files, so that a program outside this tree is compiled as coir was; gdb's view of fibers.
#
# Components: "daemon" is the programs, "development" all else.
include(CMakePackageConfigHelpers)
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME development)

install(TARGETS coir_language coir_build coir_picohttpparser coir_port coir_core coir_net EXPORT coir
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(COIR_TLS)
  install(TARGETS coir_mbedtls EXPORT coir ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
if(COIR_JSON)
  install(TARGETS coir_yyjson EXPORT coir ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
if(COIR_CLIENT AND COIR_GZIP)
  install(TARGETS coir_zlib EXPORT coir ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
if(COIR_CXX)
  install(TARGETS coir_cxx EXPORT coir ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
foreach(layer port core net)
  if(IS_DIRECTORY "${PROJECT_SOURCE_DIR}/${layer}/include")
    install(DIRECTORY "${layer}/include/" DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  endif()
endforeach()
install(FILES "${COIR_CONFIG_DIR}/coir/config.h" DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/coir)

set(coir_package ${CMAKE_INSTALL_LIBDIR}/cmake/coir)
install(EXPORT coir NAMESPACE coir:: FILE coirTargets.cmake DESTINATION ${coir_package})
# The libraries hold code of one CPU for one C library: find_package refuses others.
set(COIR_C_LIBRARY glibc)
if(COIR_TARGET MATCHES "musl")
  set(COIR_C_LIBRARY musl)
endif()
configure_file(toolchains/package.cmake.in "${PROJECT_BINARY_DIR}/coirConfig.cmake" @ONLY)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/coirConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/coirConfig.cmake" "${PROJECT_BINARY_DIR}/coirConfigVersion.cmake"
        DESTINATION ${coir_package})

# The toolchain files find the C library that set-up built by the pin and the recipe that it was built from.
set(coir_toolchains ${CMAKE_INSTALL_DATADIR}/coir/toolchains)
file(GLOB coir_targets "${PROJECT_SOURCE_DIR}/toolchains/*-linux-*.cmake")
install(FILES ${coir_targets} toolchains/linux-musl.cmake toolchains/clang.cmake toolchains/cache.cmake
              toolchains/pins.txt DESTINATION ${coir_toolchains})
install(FILES toolchains/recipes/musl.sh DESTINATION ${coir_toolchains}/recipes)
install(FILES scripts/gdb/coir.py DESTINATION ${CMAKE_INSTALL_DATADIR}/coir/gdb)

# The same libraries for pkg-config, for programs that CMake does not build.
set(coir_libraries -lcoir_net -lcoir_core -lcoir_port -lcoir_picohttpparser)
if(COIR_TLS)
  list(APPEND coir_libraries -lcoir_mbedtls)
endif()
if(COIR_JSON)
  list(APPEND coir_libraries -lcoir_yyjson)
endif()
list(JOIN coir_libraries " " coir_libraries)
configure_file(toolchains/coir.pc.in "${PROJECT_BINARY_DIR}/coir.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/coir.pc" DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
