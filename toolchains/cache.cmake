# Where set-up keeps what it built of others' sources. scripts/cache.sh computes the same names.

# coir_cached(VARIABLE WHAT PACKAGE OVERRIDE) sets VARIABLE to the folder of the cached result WHAT of the recipe for
# PACKAGE, or to the folder that the user named in the variable OVERRIDE. Stops when there is neither.
function(coir_cached variable what package override)
  if(${override})
    set(folder "${${override}}")
  else()
    set(here "${CMAKE_CURRENT_FUNCTION_LIST_DIR}")
    file(STRINGS "${here}/pins.txt" pin REGEX "^${package} ")
    file(READ "${here}/recipes/${package}.sh" recipe)
    string(SHA256 hash "${pin}\n${recipe}")
    string(SUBSTRING "${hash}" 0 16 hash)
    if("$ENV{XDG_CACHE_HOME}" STREQUAL "")
      set(folder "$ENV{HOME}/.cache/coir/${what}-${hash}")
    else()
      set(folder "$ENV{XDG_CACHE_HOME}/coir/${what}-${hash}")
    endif()
  endif()
  if(NOT IS_DIRECTORY "${folder}")
    message(FATAL_ERROR "${folder} is absent: run scripts/setup, or name your own with -D${override}=...")
  endif()
  set(${variable} "${folder}" PARENT_SCOPE)
endfunction()
