#!/bin/sh
# Takes the reader out of inih's source: two files, compiled by each build tree with its own flags.
#
#   SOURCE=libinih.tar.gz OUT=dir libinih.sh
set -eu
tar -xf "$SOURCE" -C "$OUT" --strip-components=1 --wildcards '*/ini.[ch]' '*/LICENSE.txt'
