#!/bin/sh
# usage: tests/system/stack_frames.sh [FOLDER]
#
# The frames of port, core, net and coird as the compiler lays them out (-fstack-usage): none over 1 KB but those that
# stack_frames.txt lists with a reason, and none whose size is known only at run time. With FOLDER, the .su files below
# it are read instead of the builds'.
#
# limit: 590
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
cd "$root"
work=$(mktemp -d "${TMPDIR:-/tmp}/coir-frames.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP
status=0
tab=$(printf '\t')

# judge TEXT FOLDER ... prints a promise for the .su files below the folders. A line is "FILE:LINE:FUNCTION BYTES KIND".
judge() {
  text=$1
  shift
  find "$@" -name '*.su' -exec cat {} + >"$work/frames"
  awk -F "$tab" -v listed=tests/system/stack_frames.txt '
    BEGIN { while ((getline line <listed) > 0) if (line !~ /^#/) { split(line, part, "\t"); if (part[2] != "") may[part[1]] = 1 } }
    { name = $1; sub(/^.*:/, "", name) }
    $3 ~ /dynamic/ { print $1 ": its frame is " $3; next }
    # What on_worker_stack calls, inlined into the function that it calls on that stack.
    name ~ /^_ZZN4coir15on_worker_stack/ { next }
    $2 > 1024 && !(name in may) { print $1 ": a frame of " $2 " bytes" }
    END { if (NR == 0) print "no .su file" }' "$work/frames" >"$work/found"
  if [ -s "$work/found" ]; then
    echo "not ok - $text"
    status=1
  else
    echo "ok - $text"
  fi
  sed 's/^/  /' "$work/found"
}

if [ $# -gt 0 ]; then
  judge "frames below $1" "$1"
  exit "$status"
fi

for preset in $(cat port/boards/default) x86_64-linux-musl $([ "${COIR_TEST_TIER:-}" = gate ] || echo riscv64-linux-musl); do
  # What ships is compiled file by file; the gate has batches of the same functions.
  tree=build/test/$preset shipped=''
  [ "${COIR_TEST_TIER:-}" = gate ] || { tree=build/$preset shipped=--shipped; }
  if ! tests/programs $shipped "$preset" coird >"$work/log" 2>&1; then
    tail -n 20 "$work/log"
    echo "not ok - $preset: builds"
    status=1
    continue
  fi
  judge "$preset: no frame over 1 KB outside the list, none of unknown size" \
    "$tree/port" "$tree/core" "$tree/net" "$tree/apps/coird"
done

# refused NAME TEXT PROGRAM: the check refuses a program of one line.
refused() {
  mkdir -p "$work/$1"
  echo "$3" >"$work/$1/a.cpp"
  clang++-19 -O2 -fstack-usage -c "$work/$1/a.cpp" -o "$work/$1/a.o" 2>/dev/null || true
  if [ -s "$work/$1/a.su" ] && ! "$0" "$work/$1" >/dev/null; then
    echo "ok - $2 is refused"
  else
    echo "not ok - $2 is refused"
    status=1
  fi
}
refused large "a frame of 2 KB" 'void g(char*); void f() { char b[2048]; g(b); }'
refused dynamic "alloca" 'void g(void*); void f(unsigned long n) { g(__builtin_alloca(n)); }'
refused array "an array of unknown length" 'void g(char*); void f(unsigned long n) { char b[n]; g(b); }'
exit "$status"
