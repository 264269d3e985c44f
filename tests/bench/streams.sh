#!/usr/bin/env bash
# scripts/bench streams: see tests/bench/README.md for what each figure means.
set -eu
. "$(dirname "$0")/bench.sh"
. "$here/servers.sh"

rounds=5 times=200 followers=4000 idle=5000 secure=400 publishes=101 echo_seconds=2
if [ "${1:-}" = --quick ]; then
  rounds=1 times=60 secure=200 publishes=21 echo_seconds=1
fi

build_host stream_clients.cpp
build_host socket_clients.cpp
build_coir x86_64-linux-musl-single streams_server sockets_server
ours=$root/build/x86_64-linux-musl-single/tests/bench

# The peers that are there. A figure of one that is not is absent, and says so.
peers=()
absent=()
if packages=$("$root/tests/peers/install"); then
  peers+=(ws)
else
  absent+=("ws:npm's ws cannot be installed")
fi
node=${packages:-}/node_modules/node/bin/node
if [ -z "${COIR_UWS:-}" ]; then
  absent+=('uws:COIR_UWS names no tree of uWebSockets')
else
  . "$here/peers/uws.sh"
  build_uws "$COIR_UWS"
  peers+=(uws)
fi

# serve NAME starts a server: streams or sockets, of ours, or a peer. Leaves its process in `pid` and its ports in `port` and
# `tls_port`.
serve() {
  local tries=0 log=$scratch/$1.log command
  case $1 in
    ws) command=("$node" "$here/peers/ws_server.mjs" "$packages") ;;
    uws) command=("$programs/uws_server") ;;
    *) command=("$ours/$1_server" 0 0) ;;
  esac
  : >"$log"
  COIR_WORKERS=1 setpriv --pdeathsig TERM taskset -c $server_cpu "${command[@]}" 2>"$log" </dev/null &
  pid=$!
  started+=("$pid")
  until grep -q ^listening "$log"; do
    [ $((tries += 1)) -le 200 ] && kill -0 "$pid" 2>/dev/null || die "$1 does not start: $(tail -n 1 "$log")"
    sleep 0.05
  done
  read -r _ port tls_port <"$log"
}

# clients PROGRAM [PORT ...] starts the clients of that server, or of those, as a coprocess; ask and client_end of servers.sh
# speak to it. stream_clients follows events, socket_clients opens WebSockets.
clients() {
  local program=$1
  shift
  [ $# -gt 0 ] || set -- "$port"
  [ "$program" = socket_clients ] || set -- 127.0.0.1 "$@"
  client_port=$port
  coproc CLIENT { exec timeout 300 taskset -c $client_cpu "$programs/$program" "$@" 2>"$scratch/client.$client_port.log"; }
}

# per_client NAME COUNT BEFORE keeps what each of so many clients has added to the server's resident memory.
per_client() {
  sample "$1" "$(awk -v grown=$(($(resident_bytes "$pid") - $3)) -v held="$2" 'BEGIN { printf "%.1f", grown / held }')" bytes
}

# measure_idle FIGURE SERVER CLIENTS PATH [FIRST ...]: a hundred are open before, and were asked what FIRST says, so that what
# the first ones cost is no cost of the others.
measure_idle() {
  local figure=$1 clients=$3 path=$4 before
  serve "$2"
  shift 4
  clients "$clients"
  ask open 100 "$path" || die "nobody can open $path"
  [ $# -eq 0 ] || ask "$@" || die "$path does not answer"
  before=$(resident_bytes "$pid")
  ask open "$idle" "$path" && [ "${answer[1]}" -eq $((idle + 100)) ] || die "$path does not hold $idle"
  per_client "$figure" "$idle" "$before"
  client_end
  stop "$pid"
}

# measure_tls FIGURE SERVER PATH PLAIN_FIGURE
measure_tls() {
  local plain
  plain=$(awk -v name="$4:" '$1 == name { print $2 }' "$samples")
  serve "$2"
  python3 "$here/tls_sessions.py" "$tls_port" "$pid" $secure 1.3 '' "$3" tls >"$scratch/tls" || die "nobody can open $3 over TLS"
  awk -v plain="$plain" -v name="$1" '$1 == "tls:" { printf "%s: %.0f bytes\n", name, $2 - plain }' "$scratch/tls" >>"$samples"
  stop "$pid"
}

# measure_events COUNT FIGURE [TALK_FIGURE]
measure_events() {
  serve streams
  clients stream_clients
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

# serve_all starts ours and the peers, which take turns. Leaves their processes in `pids` and their ports in `ports`.
serve_all() {
  local name
  pids=() ports=()
  for name in sockets "${peers[@]}"; do
    serve "$name"
    pids+=("$pid") ports+=("$port")
  done
}

# own NUMBER is what stands before the figures of the server of that number: nothing before ours.
own() {
  [ "$1" -eq 0 ] || echo "${peers[$1 - 1]}."
}

# measure_messages: a message to so many sockets of each server.
measure_messages() {
  local i
  serve_all
  clients socket_clients "${ports[@]}"
  ask open "$followers" /topic && ask publish 3 && ask publish $publishes || die "a message does not reach $followers sockets"
  for i in "${!pids[@]}"; do
    sample "$(own "$i")publish_last_ms" "${answer[1 + 2 * i]}" ms
    sample "$(own "$i")publish_last_p99_ms" "${answer[2 + 2 * i]}" ms
  done
  client_end
  stop "${pids[@]}"
}

# measure_echoes: 64 sockets of each server.
measure_echoes() {
  local i before=()
  serve_all
  clients socket_clients "${ports[@]}"
  ask open 64 /echo && ask echo 1 || die 'a server does not echo'
  for i in "${!pids[@]}"; do before+=("$(cpu_ns "${pids[i]}")"); done
  ask echo $echo_seconds || die 'a server does not echo'
  for i in "${!pids[@]}"; do
    sample "$(own "$i")ws_echo_per_s" "${answer[1 + 2 * i]}" /s
    sample "$(own "$i")ws_echo_cpu_us" \
      "$(awk -v ns=$(($(cpu_ns "${pids[i]}") - before[i])) -v of="${answer[2 + 2 * i]}" 'BEGIN { printf "%.3f", ns / 1e3 / of }')" us
  done
  client_end
  stop "${pids[@]}"
}

# measure_polling has the members of a chat look once a second, on a fiber each.
measure_polling() {
  serve streams
  clients stream_clients
  ask open 1000 /polling && ask publish "$1" || die 'nobody polls'
  sample polling.chat_ms "${answer[3]}" ms
  sample polling.chat_p99_ms "${answer[4]}" ms
  client_end
  stop "$pid"
}

say 'idle followers'
measure_idle sse_idle_bytes streams stream_clients /feed publish 5
# A fiber that streams asks a client nothing and publishes nothing.
measure_idle sse_fiber_bytes streams stream_clients /fiber
say 'idle followers over TLS'
measure_tls sse_tls_bytes streams /feed sse_idle_bytes

say 'resting sockets, and sockets on fibers'
measure_idle ws_idle_bytes sockets socket_clients /echo echo 1
measure_idle ws_subscribed_bytes sockets socket_clients /topic publish 5
measure_idle ws_fiber_bytes sockets socket_clients /fiber echo 1
for peer in "${peers[@]}"; do measure_idle "$peer.ws_idle_bytes" "$peer" socket_clients /echo echo 1; done
say 'resting sockets over TLS'
measure_tls ws_tls_bytes sockets upgrade:/echo ws_idle_bytes

for ((round = 1; round <= rounds; ++round)); do
  say "an event to $followers followers, a message to as many sockets, echoes: round $round of $rounds"
  measure_events $followers sse_publish_last
  measure_messages
  measure_echoes
  measure_events 1000 '' chat
done
say 'a chat that polls'
measure_polling $((rounds > 1 ? 20 : 3))

print_figures "${peers[@]}" polling
for peer in "${absent[@]}"; do
  for figure in ws_idle_bytes publish_last_ms publish_last_p99_ms ws_echo_per_s; do
    echo "${peer%%:*}.$figure: absent (${peer#*:})"
  done
done
