# coir_soft_float_abi_test(MARCH): the ABI test compiled for riscv64's lp64, without a C library, since none is built
# for that ABI.
function(coir_soft_float_abi_test march)
  set(name context_abi_lp64_${march})
  set(objects ${name}_objects)
  add_library(${objects} OBJECT port/context_abi_freestanding.cpp port/abi_riscv64.S
    "${PROJECT_SOURCE_DIR}/port/arch/riscv64/switch.S")
  target_compile_options(${objects} PRIVATE -march=${march} -mabi=lp64
    $<$<COMPILE_LANGUAGE:CXX>:-ffreestanding -fno-stack-protector>)
  target_compile_definitions(${objects} PRIVATE COIR_ABI_REGISTERS="abi_riscv64.h")
  target_include_directories(${objects} PRIVATE "${PROJECT_SOURCE_DIR}/port/include")
  target_link_libraries(${objects} PRIVATE coir_language)
  add_custom_command(OUTPUT ${name} DEPENDS ${objects} $<TARGET_OBJECTS:${objects}> COMMAND_EXPAND_LISTS VERBATIM
    COMMAND "${CMAKE_LINKER}" -static -o ${name} $<TARGET_OBJECTS:${objects}>)
  add_custom_target(${name}_program ALL DEPENDS ${name})
  add_test(NAME ${name} COMMAND ${CMAKE_CROSSCOMPILING_EMULATOR} "${CMAKE_CURRENT_BINARY_DIR}/${name}")
  set_tests_properties(${name} PROPERTIES TIMEOUT 60)
endfunction()
