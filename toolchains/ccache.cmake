# If ccache is installed, a file that was compiled once is found again, by other trees and other clones too. Its files are
# in set-up's cache (XDG_CACHE_HOME/coir/ccache); -DCOIR_CCACHE= does without.
find_program(COIR_CCACHE ccache)
if(COIR_CCACHE AND PROJECT_IS_TOP_LEVEL AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  foreach(language C CXX)
    set(CMAKE_${language}_COMPILER_LAUNCHER "${PROJECT_SOURCE_DIR}/toolchains/ccache.sh;${PROJECT_SOURCE_DIR}")
  endforeach()
endif()
