# coir_inih: the reader of coird's file of options, compiled here so that it gets this tree's flags. It allocates nothing, and has
# been kept for fifteen years. Lines stand alone: no value goes on in the next one, and ';' begins a comment at a line's start only.
coir_cached(coir_inih_dir libinih libinih COIR_INIH_DIR)
add_library(coir_inih STATIC "${coir_inih_dir}/ini.c")
target_include_directories(coir_inih SYSTEM PUBLIC $<BUILD_INTERFACE:${coir_inih_dir}>)
target_compile_definitions(coir_inih PUBLIC
  INI_HANDLER_LINENO=1 INI_CALL_HANDLER_ON_NEW_SECTION=1 INI_ALLOW_NO_VALUE=1 INI_ALLOW_MULTILINE=0
  INI_ALLOW_INLINE_COMMENTS=0 INI_USE_STACK=1 INI_MAX_LINE=2048)
target_compile_options(coir_inih PRIVATE -ffunction-sections -fdata-sections -w $<$<CONFIG:Release>:-Os>)
