#!/usr/bin/env bash
# scripts/bench ledger: see tests/bench/README.md for what each figure means.
set -eu
. "$(dirname "$0")/bench.sh"
. "$here/servers.sh"

rounds=15 seconds=2
if [ "${1:-}" = --quick ]; then
  rounds=4 seconds=1
fi

"$root/scripts/setup" --for build
preset=x86_64-linux-musl-single
build_coir $preset coird
build_coir $preset coird_unledgered
coird=$root/build/$preset/apps/coird/coird
unledgered=$root/build/$preset/tests/bench/coird_unledgered
declare -A pids ports
for name in coird unledgered; do
  start "$name"
  pids[$name]=$pid ports[$name]=$port
done

# wrk ends each connection after its answer when the server says that it will.
for ((round = 1; round <= rounds; ++round)); do
  say "requests per second, round $round of $rounds"
  order='coird unledgered'
  [ $((round % 2)) -eq 1 ] || order='unledgered coird'
  for name in $order; do
    measure_rate "$name" 64
    measure_rate "$name" 64 new_connections -H 'Connection: close'
  done
done

print_figures unledgered | tee "$scratch/figures"
# By processor time, of which the machine's other work takes nothing.
awk '
  $1 ~ /^(unledgered\.)?cpu_us_per_request_/ { cost[$1] = $2 }
  END {
    for (name in cost) {
      if (name ~ /^unledgered/) continue
      label = name
      sub(/^cpu_us_per_request/, "ledger_cost", label)
      printf "%s %.2f %%\n", label, (cost[name] / cost["unledgered." name] - 1) * 100
    }
  }' "$scratch/figures"
