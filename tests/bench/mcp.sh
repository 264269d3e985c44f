#!/usr/bin/env bash
# scripts/bench mcp: see tests/bench/README.md for what each figure means.
set -eu
. "$(dirname "$0")/bench.sh"
. "$here/servers.sh"

rounds=7 seconds=3 clients=1000 fans=50 crowd=1000
if [ "${1:-}" = --quick ]; then
  rounds=3 seconds=1 clients=500 fans=20 crowd=250
fi
target=/mcp
mcp_server=${COIR_MCP_SERVER:-}
if [ -z "$mcp_server" ]; then
  build_coir x86_64-linux-musl-single mcp_server mcp_front
  mcp_server=$root/build/x86_64-linux-musl-single/tests/bench/mcp_server
fi
llvm-strip-19 -o "$scratch/mcp_server" "$mcp_server"
mcp_front=$(dirname "$mcp_server")/mcp_front
mkdir -p "$programs/peers"
build_host peers/mcp_server.go
build_host epoll_floor.cpp

# The TypeScript SDK is where somebody has installed it: COIR_MCP_SDK names the folder of node_modules, with or without a node.
sdk=${COIR_MCP_SDK:-}
[ -n "$sdk" ] || sdk=$("$root/tests/peers/install" mcp 2>/dev/null) || sdk=
node=$(command -v node || true)
[ ! -x "$sdk/node_modules/node/bin/node" ] || node=$sdk/node_modules/node/bin/node
absent=
[ -d "$sdk/node_modules/@modelcontextprotocol/sdk" ] || absent='no @modelcontextprotocol/sdk; COIR_MCP_SDK names the folder that it was installed in'
[ -n "$node" ] || absent='no node'

servers=(coird floor go)
[ -n "$absent" ] || servers+=(node)
declare -A pids ports

# Our answer to each call.
five='{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete",'
five+='"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"bench","version":"0.1.0"}},"content":[{"type":"text","text":"5"}]}}'

command_of() {
  local port=$2
  case $1 in
    coird) command=("$scratch/mcp_server" "$port") ;;
    floor) command=("$programs/epoll_floor" "$port" 290 127.0.0.1 "$five") ;;
    front) command=("$mcp_front" "$port" "http://127.0.0.1:$upstream/mcp") ;;
    go) command=(env GOMAXPROCS=1 "$programs/peers/mcp_server" "$port") ;;
    node) command=(env -C "$sdk" "$node" "$here/peers/mcp_server.mjs" "$port") ;;
  esac
}
for name in "${servers[@]}"; do
  start "$name"
  pids[$name]=$pid ports[$name]=$port
done

# calls NAME [SECONDS] is one run of wrk: calls, each answered by the sum, from 50 clients. Its --timeout is for Node, whose first
# calls take seconds on a slow machine.
calls() {
  local name=$1 seconds=${2:-$seconds} out=$scratch/wrk version=2026-07-28 before after
  [ "$name" != node ] || version=2025-11-25
  before=$(cpu_ns "${pids[$name]}")
  MCP_VERSION=$version timeout $((seconds + 20)) taskset -c $client_cpu wrk -t1 -c50 -d"${seconds}s" --timeout 15s --latency \
    -s "$here/peers/mcp_call.lua" "http://127.0.0.1:${ports[$name]}/mcp" >"$out" || die "wrk fails against $name: $(tail -n 1 "$out")"
  after=$(cpu_ns "${pids[$name]}")
  ! grep '^wrong:\|Non-2xx\|Socket errors' "$out" >&2 || die "$name answers by something else than the sum"
  awk -v name="$(prefix "$name")" -v ns=$((after - before)) '
    $1 == "99%" { t = $2 + 0; if ($2 ~ /us$/) t /= 1000; else if ($2 !~ /ms$/) t *= 1000; p99 = t }
    $2 == "requests" && $3 == "in" { requests = $1 }
    $1 == "Requests/sec:" { rate = $2 }
    END {
      if (requests == 0) exit 1
      printf "%scalls_per_s: %.0f /s\n", name, rate
      printf "%scall_p99_ms: %.3f ms\n", name, p99
      printf "%scpu_us_per_call: %.2f us\n", name, ns / 1000 / requests
    }' "$out" >>"$samples" || die "$name has answered nothing"
}

say "calls of 50 clients ..."
# A server's first calls, which it does but once, are in none of the figures.
for name in "${servers[@]}"; do calls "$name" 2; done
: >"$samples"
for _ in $(seq $rounds); do
  for name in "${servers[@]}"; do calls "$name"; done
done
for name in "${servers[@]}"; do
  sample "$(prefix "$name")rss_kb" $(($(resident_bytes "${pids[$name]}") / 1024)) kB
done

# Clients that only are there, of a server of their own.
say "$clients clients that rest ..."
start coird
coproc THERE { exec python3 "$here/mcp_clients.py" "$port"; }
# there COMMAND N prints what each of N clients more has added to the server's memory. The first hundred warm up what stays.
there() {
  local before after held
  echo "$1 100" >&"${THERE[1]}"
  read -r -t 120 _ held <&"${THERE[0]}" && [ "$held" -eq 100 ] || die "the server does not hold 100 of: $1"
  before=$(resident_bytes "$pid")
  echo "$1 $2" >&"${THERE[1]}"
  read -r -t 300 _ held <&"${THERE[0]}" && [ "$held" -eq $((100 + $2)) ] || die "the server does not hold $2 of: $1"
  after=$(resident_bytes "$pid")
  echo $(((after - before) / $2))
}
sample legacy_client_bytes "$(there legacy $((clients * 4)))" bytes
sample listen_idle_bytes "$(there listen "$clients")" bytes
eval "exec ${THERE[1]}>&-"
stop "$pid"

# One server in front of another, on one core as both are: calls that spread, and calls that are passed on.
say "calls that spread over other servers ..."
start coird
upstream=$port upstream_pid=$pid
start front
# caller PORT COMMAND ... prints the line by which mcp_callers.py answers.
caller() {
  local port=$1
  shift
  echo "$@" | timeout 300 taskset -c $client_cpu python3 "$here/mcp_callers.py" "$port"
}
# took NAME PLACE PORT COMMAND ... keeps a time of calls that have all been answered.
took() {
  local name=$1 place=$2 line
  shift 2
  line=$(caller "$@")
  set -- "$@" "$line"
  [ "$(echo "$line" | cut -d ' ' -f 3)" = "$fans" ] || die "not all calls of $name are answered: $line"
  sample "$name" "$(echo "$line" | cut -d ' ' -f "$place")" ms
}
took fan_out_alone_ms 1 "$port" one spread '{"count":1,"wait_ms":100}' $fans
took fan_out_ms 1 "$port" one spread '{"count":8,"wait_ms":100}' $fans
took fan_out_p95_ms 2 "$port" one spread '{"count":8,"wait_ms":50,"hang":1,"within_ms":300}' $fans
for _ in $(seq $rounds); do
  direct=$(caller "$upstream" one add '{"a":1,"b":2}' 500)
  passed=$(caller "$port" one up_add '{"a":1,"b":2}' 500)
  sample gateway_added_ms "$(echo "$direct $passed" | awk '{ printf "%.4f", $4 - $1 }')" ms
done

# p99 of a small file, in milliseconds, asked for by four clients with a pause, as somebody at the page would.
small_p99() {
  timeout 30 taskset -c $client_cpu wrk -t1 -c4 -d3s --latency -s "$here/peers/calm.lua" "http://127.0.0.1:$port/small.txt" |
    awk '$1 == "99%" { t = $2 + 0; if ($2 ~ /us$/) t /= 1000; else if ($2 !~ /ms$/) t *= 1000; printf "%.3f", t }'
}
say "$crowd calls, each of which waits on four others for 5 s ..."
sample small_p99_idle_ms "$(small_p99)" ms
before=$(resident_bytes "$pid")
caller "$port" crowd spread '{"count":4,"wait_ms":5000}' $crowd >"$scratch/crowd" &
crowding=$!
sleep 1.5
sample small_p99_ms "$(small_p99)" ms
sample crowd_call_bytes "$((($(resident_bytes "$pid") - before) / crowd))" bytes
wait $crowding
read -r wall answered refused <"$scratch/crowd"
sample crowd_s "$wall" s
sample crowd_unanswered "$((crowd - answered - refused))" calls
sample crowd_refused "$refused" calls
stop "$pid" "$upstream_pid"
print_figures "${servers[@]:1}"
[ -z "$absent" ] || for figure in calls_per_s rss_kb; do echo "node.$figure: absent ($absent)"; done
