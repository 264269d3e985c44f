#!/bin/sh
# Takes picohttpparser out of h2o's source: two files, compiled by each build tree with its own flags.
#
#   SOURCE=h2o.tar.xz OUT=dir h2o.sh
set -eu
tar -xf "$SOURCE" -C "$OUT" --strip-components=3 --wildcards '*/deps/picohttpparser/picohttpparser.[ch]'
