#!/bin/sh
# Takes the library out of yyjson's source: two files, compiled by each build tree with its own flags.
#
#   SOURCE=yyjson.tar.xz OUT=dir yyjson.sh
set -eu
tar -xf "$SOURCE" -C "$OUT" --strip-components=2 --wildcards '*/src/yyjson.[ch]'
tar -xf "$SOURCE" -C "$OUT" --strip-components=1 --wildcards '*/LICENSE'
