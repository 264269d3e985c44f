# Static x86_64: the target that is measured against its peers and the quickest to test.
set(COIR_TARGET x86_64-linux-musl)
set(COIR_TARGET_CPU x86_64)
set(COIR_TARGET_DEBIAN amd64)
set(COIR_TARGET_FLAGS "-march=x86-64")
include("${CMAKE_CURRENT_LIST_DIR}/linux-musl.cmake")
