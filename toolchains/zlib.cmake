# coir_zlib: the reader of gzip, compiled here so that it gets this tree's flags, sanitizers included. The 1 KB table of crc32 is
# enough (Z_TESTW=0): the other tables, 16 KB, would be faster than any board's network.
coir_cached(coir_zlib_dir zlib zlib COIR_ZLIB_DIR)
set(coir_zlib_parts inflate.c inffast.c inftrees.c zutil.c crc32.c adler32.c)
list(TRANSFORM coir_zlib_parts PREPEND "${coir_zlib_dir}/")
add_library(coir_zlib STATIC ${coir_zlib_parts})
set_target_properties(coir_zlib PROPERTIES EXPORT_NAME zlib)
target_include_directories(coir_zlib SYSTEM PUBLIC $<BUILD_INTERFACE:${coir_zlib_dir}>)
target_compile_definitions(coir_zlib PUBLIC Z_PREFIX ZLIB_CONST PRIVATE Z_TESTW=0 Z_SOLO)
target_compile_options(coir_zlib PRIVATE -ffunction-sections -fdata-sections -w $<$<CONFIG:Release>:-Os>)
