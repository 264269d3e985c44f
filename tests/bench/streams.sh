#!/usr/bin/env bash
# scripts/bench streams: see tests/bench/README.md for what each figure means.
set -eu
. "$(dirname "$0")/bench.sh"
. "$here/servers.sh"

rounds=5 times=200 followers=4000 idle=5000 secure=400
if [ "${1:-}" = --quick ]; then
  rounds=1 times=60 secure=200
fi

build_host stream_clients.cpp
build_coir x86_64-linux-musl-single streams_server
build_coir x86_64-linux-musl-single websocket_bench
server=$root/build/x86_64-linux-musl-single/tests/bench/streams_server

# serve starts a server of streams. Leaves its process in `pid` and its ports in `port` and `tls_port`.
serve() {
  local tries=0 log=$scratch/streams_server.log
  : >"$log"
  COIR_WORKERS=1 setpriv --pdeathsig TERM taskset -c $server_cpu "$server" 0 0 2>"$log" </dev/null &
  pid=$!
  started+=("$pid")
  until grep -q ^listening "$log"; do
    [ $((tries += 1)) -le 200 ] && kill -0 "$pid" 2>/dev/null || die "the server does not start: $(tail -n 1 "$log")"
    sleep 0.05
  done
  read -r _ port tls_port <"$log"
}

# followers starts the clients as a coprocess; ask and client_end of servers.sh speak to it.
followers() {
  client_port=$port
  coproc CLIENT { exec timeout 300 taskset -c $client_cpu "$programs/stream_clients" 127.0.0.1 "$port" 2>"$scratch/client.$port.log"; }
}

# per_client NAME COUNT BEFORE keeps what each of so many clients has added to the server's resident memory.
per_client() {
  sample "$1" "$(awk -v grown=$(($(resident_bytes "$pid") - $3)) -v held="$2" 'BEGIN { printf "%.1f", grown / held }')" bytes
}

# measure_idle FIGURE PATH COUNT: a hundred are open before, so that what the first ones cost is no cost of the others.
measure_idle() {
  local before
  serve
  followers
  ask open 100 "$2" && ask publish 5 || die "nobody can follow $2"
  before=$(resident_bytes "$pid")
  ask open "$3" "$2" && [ "${answer[1]}" -eq $(($3 + 100)) ] || die "$2 does not hold $3"
  per_client "$1" "$3" "$before"
  client_end
  stop "$pid"
}

# measure_publish COUNT FIGURE [TALK_FIGURE]
measure_publish() {
  serve
  followers
  ask open "$1" /feed && ask publish 10 && ask publish "$times" || die "an event does not reach $1 followers"
  if [ -n "$2" ]; then
    sample "${2}_ms" "${answer[1]}" ms
    sample "${2}_p99_ms" "${answer[2]}" ms
    sample sse_sends_per_s "${answer[5]}" /s
  fi
  if [ -n "${3:-}" ]; then
    sample "${3}_ms" "${answer[3]}" ms
    sample "${3}_p99_ms" "${answer[4]}" ms
  fi
  client_end
  stop "$pid"
}

# measure_sockets MODE [SED_SCRIPT] has websocket_bench measure: a server, and its clients in a process beside it.
measure_sockets() {
  timeout 120 "$root/build/x86_64-linux-musl-single/tests/bench/websocket_bench" "$1" >"$scratch/sockets" ||
    die "websocket_bench $1 fails"
  sed "${2:-}" "$scratch/sockets" >>"$samples"
}

# measure_polling has the members of a chat look once a second, on a fiber each.
measure_polling() {
  serve
  followers
  ask open 1000 /polling && ask publish 3 || die "nobody polls"
  sample polling.chat_ms "${answer[3]}" ms
  client_end
  stop "$pid"
}

say 'idle followers'
measure_idle sse_idle_bytes /feed "$idle"
plain=$(awk '$1 == "sse_idle_bytes:" { print $2 }' "$samples")
say 'followers on fibers'
# A fiber that streams asks a client nothing and publishes nothing.
serve
followers
ask open 100 /fiber || die 'nobody can follow on a fiber'
before=$(resident_bytes "$pid")
ask open $idle /fiber || die 'fibers cannot be had'
per_client sse_fiber_bytes $idle "$before"
client_end
stop "$pid"

say 'idle followers over TLS'
serve
python3 "$here/tls_sessions.py" "$tls_port" "$pid" $secure 1.3 '' /feed sse_tls >"$scratch/tls" || die 'nobody can follow over TLS'
awk -v plain="$plain" '$1 == "sse_tls:" { printf "sse_tls_bytes: %.0f bytes\n", $2 - plain }' "$scratch/tls" >>"$samples"
stop "$pid"

say 'resting sockets, and sockets on fibers'
measure_sockets idle
measure_sockets subscribed 's/^ws_idle_bytes/ws_subscribed_bytes/'
measure_sockets fiber

for ((round = 1; round <= rounds; ++round)); do
  say "an event to $followers followers, a message to 1,000: round $round of $rounds"
  measure_publish $followers sse_publish_last
  measure_sockets publish
  measure_sockets echo
  measure_publish 1000 '' chat
done
say 'a chat that polls'
measure_polling

print_figures polling
