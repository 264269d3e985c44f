#!/bin/sh
# Takes the part of CppUTest that the tests use (no mocks), compiled by each build tree with its own flags.
#
#   SOURCE=cpputest.tar.gz OUT=dir cpputest.sh
set -eu
tar -xf "$SOURCE" -C "$OUT" --strip-components=1 --wildcards '*/include/CppUTest' '*/src/CppUTest' \
  '*/src/Platforms/Gcc' '*/COPYING'
