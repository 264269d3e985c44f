#!/bin/sh
# usage: tests/system/tls_off.sh
#
# Built with COIR_TLS=OFF the daemon holds nothing of mbedTLS, and says so when TLS is asked of it.
#
# In the gate, although it builds a tree: without TLS, code that names a type of TLS's no longer compiles. In batches that is a
# minute, and nothing where the compiler's cache has them. Everything builds it file by file.
# limit: 590
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
. "$root/scripts/say.sh"
found=$(mktemp "${TMPDIR:-/tmp}/coir-tls-off.XXXXXX")
trap 'rm -f "$found"' EXIT
status=0

# promise TEXT CONDITION prints whether the command that is the rest of the arguments succeeds.
promise() {
  text=$1
  shift
  if "$@"; then
    echo "ok - $text"
  else
    echo "not ok - $text"
    head -n 20 "$found" | sed 's/^/  /'
    status=1
  fi
}
nothing_found() { [ ! -s "$found" ]; }
says_so() { [ "$answer" -eq 2 ] && [ "$(wc -l <"$found")" -eq 1 ] && grep -q 'this build has no TLS' "$found"; }

tree=build/test/x86_64-linux-musl-no-tls shipped=
[ "${COIR_TEST_TIER:-gate}" = gate ] || tree=build/x86_64-linux-musl-no-tls shipped=--shipped
# shellcheck disable=SC2086 # none or one
"$root/tests/programs" $shipped x86_64-linux-musl+no-tls coird -- -DCOIR_TLS=OFF >/dev/null
coird=$root/$tree/apps/coird/coird
llvm-nm-19 "$coird" | grep -Ei 'mbedtls|psa_|coir_tls|coir3tls' >"$found" || true
promise "without TLS no symbol of mbedTLS is in the daemon" nothing_found
llvm-strings-19 "$coird" | grep -i 'mbedtls' >"$found" || true
promise "nor its name" nothing_found
answer=0
"$coird" --tls-listen 127.0.0.1:0 2>"$found" || answer=$?
promise "--tls-listen is one line and exit status 2 there" says_so
answer=0
"$coird" --auth /dev/null 2>"$found" || answer=$?
promise "so is --auth" says_so
answer=0
"$coird" --hash-password anne </dev/null 2>"$found" || answer=$?
promise "and --hash-password" says_so
exit "$status"
