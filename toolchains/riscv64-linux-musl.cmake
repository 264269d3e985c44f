# The product: static riscv64 with doubles in registers, as the Milk-V Duo's C906 runs it (its vector unit is left alone).
set(COIR_TARGET riscv64-linux-musl)
set(COIR_TARGET_CPU riscv64)
set(COIR_TARGET_DEBIAN riscv64)
set(COIR_TARGET_FLAGS "-march=rv64gc -mabi=lp64d")
include("${CMAKE_CURRENT_LIST_DIR}/linux-musl.cmake")
