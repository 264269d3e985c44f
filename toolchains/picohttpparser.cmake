# coir_picohttpparser: the HTTP/1 parser from h2o's source, compiled here so that it gets this tree's flags.
coir_cached(coir_pico picohttpparser h2o COIR_PICOHTTPPARSER_DIR)
add_library(coir_picohttpparser STATIC "${coir_pico}/picohttpparser.c")
set_target_properties(coir_picohttpparser PROPERTIES EXPORT_NAME picohttpparser)
target_include_directories(coir_picohttpparser SYSTEM PUBLIC $<BUILD_INTERFACE:${coir_pico}>)
target_compile_options(coir_picohttpparser PRIVATE -ffunction-sections -fdata-sections -w)
