#!/usr/bin/env bash
# scripts/bench client: see tests/bench/README.md for what each figure means.
set -eu
. "$(dirname "$0")/bench.sh"
. "$here/servers.sh"

rounds=5 seconds=3 held=2000
[ "${1:-}" != --quick ] || rounds=3 seconds=2

"$root/scripts/setup" --for build
build_coir x86_64-linux-musl-single coird
build_coir x86_64-linux-musl-single client_bench
coird=$root/build/x86_64-linux-musl-single/apps/coird/coird
ours=$root/build/x86_64-linux-musl-single/tests/bench/client_bench
curl=$programs/curl_bench
if [ ! -e "$curl" ] || [ "$here/curl_bench.cpp" -nt "$curl" ]; then
  quietly "$programs/build.log" g++ -std=c++20 -O2 -DNDEBUG "$here/curl_bench.cpp" -o "$curl" -ldl
fi

# keep PREFIX PROGRAM ARGUMENT ... runs a figure program on the clients' core and keeps what it prints.
keep() {
  local prefix=$1 name value unit
  shift
  timeout 120 taskset -c "$client_cpu" "$@" >"$scratch/out" || die "failed: $*"
  while read -r name value unit; do sample "$prefix${name%:}" "$value" "$unit"; done <"$scratch/out"
}

start coird
for ((round = 1; round <= rounds; ++round)); do
  say "round $round of $rounds"
  keep '' "$ours" rps "http://127.0.0.1:$port$target" "$seconds"
  keep curl. "$curl" "http://127.0.0.1:$port$target" "$seconds"
done
say 'memory'
keep '' "$ours" transfers "$held"
keep '' "$ours" pooled "$held"
print_figures curl
