#!/usr/bin/env bash
# scripts/bench echo: see tests/bench/README.md for what each figure means.
set -eu
. "$(dirname "$0")/bench.sh"
. "$here/swarm.sh"

rounds=5 echoes=100
if [ "${1:-}" = --quick ]; then
  rounds=1 echoes=20
fi
"$root/scripts/setup" --for build
preset=x86_64-linux-musl-single
build_coir $preset echo_server
build_host epoll_echo.cpp
build_host swarm.cpp

for ((round = 1; round <= rounds; ++round)); do
  say "10,000 streams, round $round of $rounds"
  for name in fibers floor; do
    program=$root/build/$preset/tests/bench/echo_server prefix=''
    [ $name = fibers ] || program=$programs/epoll_echo prefix=floor.
    start_server "$program"
    swarm_at echo $echoes
    sample "${prefix}echoes_per_s" "$(awk -v answers="$(said answers)" -v wall="$(said wall_s)" 'BEGIN { print answers / wall }')" 1/s
    sample "${prefix}wall_s" "$(said wall_s)" s
    sample "${prefix}p99_ms" "$(said p99_ms)" ms
    sample "${prefix}rss_kb" "$(said rss_kb)" KB
    end_server
  done
done
print_figures floor
