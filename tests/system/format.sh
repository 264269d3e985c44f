#!/bin/sh
# The formatting of the tree: every C and C++ file is as clang-format 19 writes it by .clang-format. Comments are left
# as they are: the formatter breaks drawings and tables in them.
set -eu
cd "$(dirname -- "$0")/../.."
found=$(mktemp "${TMPDIR:-/tmp}/coir-format.XXXXXX")
trap 'rm -f "$found"' EXIT
find port core net apps tests \( -name '*.h' -o -name '*.cpp' -o -name '*.c' \) -print | sort |
  xargs clang-format-19 -n -Werror 2>&1 | grep -E '^[^ ]+:[0-9]+:[0-9]+: ' >"$found" || true
if [ -s "$found" ]; then
  echo "not ok - every source file is formatted (clang-format-19 -i mends it)"
  sed 's/^/  /' "$found"
  exit 1
fi
echo "ok - every source file is formatted"
