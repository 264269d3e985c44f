#!/usr/bin/env bash
# scripts/bench mcp: see tests/bench/README.md for what each figure means.
set -eu
. "$(dirname "$0")/bench.sh"
. "$here/servers.sh"

rounds=7 seconds=3 clients=1000
if [ "${1:-}" = --quick ]; then
  rounds=3 seconds=1 clients=500
fi
target=/mcp
mcp_server=${COIR_MCP_SERVER:-}
if [ -z "$mcp_server" ]; then
  build_coir x86_64-linux-musl-single mcp_server
  mcp_server=$root/build/x86_64-linux-musl-single/tests/bench/mcp_server
fi
llvm-strip-19 -o "$scratch/mcp_server" "$mcp_server"
mkdir -p "$programs/peers"
build_host peers/mcp_server.go

# The TypeScript SDK is where somebody has installed it: COIR_MCP_SDK names the folder of node_modules, with or without a node.
sdk=${COIR_MCP_SDK:-}
[ -n "$sdk" ] || sdk=$("$root/tests/peers/install" mcp 2>/dev/null) || sdk=
node=$(command -v node || true)
[ ! -x "$sdk/node_modules/node/bin/node" ] || node=$sdk/node_modules/node/bin/node
absent=
[ -d "$sdk/node_modules/@modelcontextprotocol/sdk" ] || absent='no @modelcontextprotocol/sdk; COIR_MCP_SDK names the folder that it was installed in'
[ -n "$node" ] || absent='no node'

servers=(coird go)
[ -n "$absent" ] || servers+=(node)
declare -A pids ports

command_of() {
  local port=$2
  case $1 in
    coird) command=("$scratch/mcp_server" "$port") ;;
    go) command=(env GOMAXPROCS=1 "$programs/peers/mcp_server" "$port") ;;
    node) command=(env -C "$sdk" "$node" "$here/peers/mcp_server.mjs" "$port") ;;
  esac
}
for name in "${servers[@]}"; do
  start "$name"
  pids[$name]=$pid ports[$name]=$port
done

# calls NAME is one run of wrk: calls, each answered by the sum, from 50 clients.
calls() {
  local name=$1 out=$scratch/wrk version=2026-07-28 before after
  [ "$name" != node ] || version=2025-11-25
  before=$(cpu_ns "${pids[$name]}")
  MCP_VERSION=$version timeout $((seconds + 20)) taskset -c $client_cpu wrk -t1 -c50 -d"${seconds}s" --latency \
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
print_figures "${servers[@]:1}"
[ -z "$absent" ] || for figure in calls_per_s rss_kb; do echo "node.$figure: absent ($absent)"; done
