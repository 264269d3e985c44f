# Precompiled headers, where this tree builds its tests: half of a unit test's compilation is the parsing of headers that
# all of them include. Programs that use coir, and trees without tests, compile every file from its own includes; so a
# missing include is found there (tests/system/package).
option(COIR_PRECOMPILE "precompile the headers that most files include" ${COIR_BUILD_TESTS})

# coir_precompile(TARGET HEADER ...) precompiles the headers for the C++ files of TARGET.
function(coir_precompile target)
  if(COIR_PRECOMPILE)
    list(TRANSFORM ARGN REPLACE ">$" "$<ANGLE-R>")
    list(TRANSFORM ARGN REPLACE "^(.+)$" "$<$<COMPILE_LANGUAGE:CXX>:\\1>")
    target_precompile_headers(${target} PRIVATE ${ARGN})
    # The time of a header is in the file else, and no two builds of it are alike.
    target_compile_options(${target} PRIVATE "$<$<COMPILE_LANG_AND_ID:CXX,Clang>:SHELL:-Xclang -fno-pch-timestamp>")
  endif()
endfunction()
