# Reads port/boards/<board>/board.conf, and the board.cmake beside it if there is one: sets coir_board, coir_board_cores,
# coir_board_ram (in MB) and coir_has_one_core. A board is chosen by COIR_BOARD, its name or the path of a folder elsewhere;
# without one it is host.
set(coir_board "${COIR_BOARD}")
if(NOT coir_board)
  set(coir_board host)
endif()
set(coir_board_folder "${PROJECT_SOURCE_DIR}/port/boards/${coir_board}")
if(coir_board MATCHES "/")
  get_filename_component(coir_board_folder "${coir_board}" ABSOLUTE BASE_DIR "${CMAKE_BINARY_DIR}")
  get_filename_component(coir_board "${coir_board_folder}" NAME)
endif()
if(NOT EXISTS "${coir_board_folder}/board.conf")
  message(FATAL_ERROR "COIR_BOARD=${COIR_BOARD}: there is no ${coir_board_folder}/board.conf")
endif()
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${coir_board_folder}/board.conf")

# coir_board_fact NAME PATTERN sets coir_board_NAME, which must match the pattern as a whole.
function(coir_board_fact name pattern)
  file(STRINGS "${coir_board_folder}/board.conf" line REGEX "^${name}=")
  if(NOT line MATCHES "^${name}=(${pattern})$")
    message(FATAL_ERROR "${coir_board_folder}/board.conf: '${line}' is no line ${name}=${pattern}")
  endif()
  set(coir_board_${name} "${CMAKE_MATCH_1}" PARENT_SCOPE)
endfunction()
coir_board_fact(cores "[0-9]+")
coir_board_fact(ram "[0-9]+M|0")
string(REPLACE "M" "" coir_board_ram "${coir_board_ram}")

set(coir_has_one_core OFF)
if(coir_board_cores EQUAL 1)
  set(coir_has_one_core ON)
endif()
include("${coir_board_folder}/board.cmake" OPTIONAL)
