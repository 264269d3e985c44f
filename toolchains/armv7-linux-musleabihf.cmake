# Static armv7 with doubles in registers, as a Cortex-A7 runs it, in Thumb state: a third less code than in ARM state.
set(COIR_TARGET armv7-linux-musleabihf)
set(COIR_TARGET_CPU armv7)
set(COIR_TARGET_EMULATOR qemu-arm)
set(COIR_TARGET_DEBIAN armhf)
set(COIR_TARGET_FLAGS "-mcpu=cortex-a7 -mfpu=neon-vfpv4 -mfloat-abi=hard -mthumb")
include("${CMAKE_CURRENT_LIST_DIR}/linux-musl.cmake")
