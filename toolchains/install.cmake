# `cmake --install` and find_package(coir): static libraries, public headers and coir::port, coir::core, coir::net.
include(CMakePackageConfigHelpers)

install(TARGETS coir_language coir_build coir_picohttpparser coir_port coir_core coir_net EXPORT coir
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(COIR_TLS)
  install(TARGETS coir_mbedtls EXPORT coir ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
if(COIR_CXX)
  install(TARGETS coir_cxx EXPORT coir ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
foreach(layer port core net)
  if(IS_DIRECTORY "${PROJECT_SOURCE_DIR}/${layer}/include")
    install(DIRECTORY "${layer}/include/" DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  endif()
endforeach()

set(coir_package ${CMAKE_INSTALL_LIBDIR}/cmake/coir)
install(EXPORT coir NAMESPACE coir:: FILE coirConfig.cmake DESTINATION ${coir_package})
write_basic_package_version_file("${PROJECT_BINARY_DIR}/coirConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/coirConfigVersion.cmake" DESTINATION ${coir_package})
