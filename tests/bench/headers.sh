#!/usr/bin/env bash
# scripts/bench headers: see tests/bench/README.md for what each figure means.
set -eu
. "$(dirname "$0")/bench.sh"
. "$root/scripts/cache.sh"

rounds=9
[ "${1:-}" != --quick ] || rounds=3

"$root/scripts/setup" --for build
target=$(uname -m)-linux-musl
cmake -DCOIR_CONFIG_DIR="$scratch" -DCOIR_TLS=ON -DCOIR_CLIENT=ON -DCOIR_STREAMS=ON -DCOIR_PROXY=ON -DCOIR_SITE=ON -P "$root/toolchains/config.cmake"
sysroot=$(cached "musl-$target" musl)
libcxx=$(dirname "$(dirname "$(realpath "$(command -v clang-19)")")")/include/c++/v1
compile=(clang++-19 -fsyntax-only "--target=$target" "--sysroot=$sysroot" -std=c++23 -fno-exceptions -fno-rtti -nostdinc++
  -isystem "$libcxx" -D_LIBCPP_HAS_MUSL_LIBC "-I$scratch" "-I$root/port/include" "-I$root/core/include"
  "-I$root/net/include" -Wno-pragma-once-outside-header -x c++)

# cpu_ms FILE prints the processor time of one compilation in thousandths of a second: other work does not add to it.
cpu_ms() {
  local TIMEFORMAT='%3U %3S'
  { time quietly "$scratch/said" "${compile[@]}" "$1"; } 2>&1 | awk '{ printf "%d\n", ($1 + $2) * 1000 }'
}

: >"$scratch/empty.h"
headers=$(cd "$root" && find port/include core/include net/include -name '*.h' ! -path '*/arch/*' | sort)
for ((round = 1; round <= rounds; ++round)); do
  say "every header, round $round of $rounds"
  nothing=$(cpu_ms "$scratch/empty.h")
  for header in $headers; do
    sample "${header#*/include/}.parse_ms" $(($(cpu_ms "$root/$header") - nothing)) ms
  done
done
print_figures
