#!/bin/sh
# Takes what reads compressed data out of zlib's source, compiled by each build tree with its own flags.
#
#   SOURCE=zlib.tar.gz OUT=dir zlib.sh
set -eu
tar -xf "$SOURCE" -C "$OUT" --strip-components=1 --wildcards '*/inflate.[ch]' '*/inffast.[ch]' '*/inftrees.[ch]' '*/inffixed.h' \
  '*/zutil.[ch]' '*/crc32.[ch]' '*/adler32.c' '*/zlib.h' '*/zconf.h' '*/gzguts.h' '*/LICENSE'
