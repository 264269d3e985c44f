#!/usr/bin/env bash
# scripts/bench modes: see tests/bench/README.md for what each figure means.
set -eu
. "$(dirname "$0")/bench.sh"
. "$here/swarm.sh"

rounds=3 seconds=10
if [ "${1:-}" = --quick ]; then
  rounds=1 seconds=8
fi
"$root/scripts/setup" --for build
preset=x86_64-linux-musl
build_coir $preset modes_server
build_host swarm.cpp
modes=$root/build/$preset/tests/bench/modes_server

for ((round = 1; round <= rounds; ++round)); do
  say "10,000 clients, round $round of $rounds"
  for name in pool fibers; do
    arguments=fibers
    [ $name = fibers ] || arguments='threads 64'
    # shellcheck disable=SC2086 # words
    start_server env COIR_WORKERS=1 "$modes" $arguments
    # It serves before it is flooded.
    curl -sf -m 10 -o /dev/null "http://127.0.0.1:$port/" || die "$name: the server does not answer"
    swarm_at http $seconds
    [ "$(said answers)" -gt 0 ] || die "$name: nobody was answered"
    sample $name.rps "$(awk -v answers="$(said answers)" -v wall="$(said wall_s)" 'BEGIN { print answers / wall }')" 1/s
    sample $name.p99_ms "$(said p99_ms)" ms
    sample $name.unserved "$(said unserved)" clients
    sample $name.rss_kb "$(said rss_kb)" KB
    end_server
  done
done
print_figures
