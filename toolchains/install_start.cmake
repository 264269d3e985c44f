# The files that a new program or board starts from, installed below share/coir as in this tree: new-app, new-board, flash,
# whose command line the page of a new program has, and the emulated board.
set(coir_start ${CMAKE_INSTALL_DATADIR}/coir)
install(PROGRAMS scripts/new-app scripts/new-board scripts/flash DESTINATION ${coir_start}/scripts)
install(FILES scripts/say.sh scripts/boards.sh scripts/cache.sh DESTINATION ${coir_start}/scripts)
install(DIRECTORY scripts/flash.d DESTINATION ${coir_start}/scripts FILES_MATCHING PATTERN "*.py")
install(DIRECTORY qemu DESTINATION ${coir_start} USE_SOURCE_PERMISSIONS)
install(DIRECTORY port/boards port/init DESTINATION ${coir_start}/port USE_SOURCE_PERMISSIONS)
install(DIRECTORY apps/template DESTINATION ${coir_start}/apps USE_SOURCE_PERMISSIONS)
file(GLOB coir_recipes "${PROJECT_SOURCE_DIR}/toolchains/recipes/busybox*.sh")
install(FILES ${coir_recipes} DESTINATION ${coir_start}/toolchains/recipes)
