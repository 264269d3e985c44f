# shellcheck shell=bash
# Sourced by modes.sh and echo.sh: a server that prints its port, on the first processor, and its swarm of clients on the second.

server_cpu=0 client_cpu=1
[ "$(nproc)" -gt 1 ] || client_cpu=0
ulimit -n "$(ulimit -Hn)"
clients=10000
[ "$(ulimit -n)" = unlimited ] || [ "$(ulimit -n)" -ge 10100 ] ||
  die "10,000 connections need 10,100 open files; run: ulimit -n 20000"
server=''
trap 'end_server; rm -rf "$scratch"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

end_server() {
  [ -n "$server" ] || return 0
  kill -KILL "$server" 2>/dev/null || true
  wait "$server" 2>/dev/null || true
  server=''
}

# start_server COMMAND ... leaves its process in `server` and its port in `port`.
start_server() {
  rm -f "$scratch/said"
  mkfifo "$scratch/said"
  taskset -c $server_cpu "$@" >"$scratch/said" &
  server=$!
  read -r _ port <"$scratch/said"
}

# swarm_at KIND AMOUNT runs the clients and leaves what they print in $scratch/swarm.
swarm_at() {
  taskset -c $client_cpu "$programs/swarm" "$1" "$port" $clients "$2" "$server" >"$scratch/swarm" || die "the clients were not all served"
}

# said NAME prints one of the swarm's figures.
said() {
  awk -v name="$1" '$1 == name { print $2 }' "$scratch/swarm"
}
