#!/bin/sh
# scripts/bench capacity: see tests/bench/README.md for what each figure means.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
. "$root/tests/system/vm.sh"
. "$root/tests/system/vm_client_load.sh"
. "$root/tests/system/vm_stream_clients.sh"

most=20000 flood_seconds=90 settle_seconds=75 userland='' tls='' async='' sysctls='' quick='' port=80 wanted=20000 streams='' promise=''
# Nothing but memory is the limit. If an option is given twice, the last one counts.
args='--idle-timeout 3600s'
while [ $# -gt 0 ]; do
  case $1 in
    --quick) quick=yes most=4000 flood_seconds=10 settle_seconds=5 ;;
    --userland | --args | --sysctl | --board) [ $# -ge 2 ] || die "$1 wants a value" ;;
    --tls) tls=yes ;;
    --sse | --ws | --proxy | --mcp) [ -z "$streams" ] || die "--sse, --ws, --proxy or --mcp, one at a time"; streams=${1#--} ;;
    --no-async) async=-no-async ;;
    *) die "unknown option '$1'; see scripts/bench --help" ;;
  esac
  case $1 in
    --userland) userland=${2%M}; shift ;;
    --args) args="$args $2"; shift ;;
    --board) want_board "$2"; vm_board=$2 promise=yes; shift ;;
    --sysctl) sysctls="$sysctls $2"; shift ;;
  esac
  shift
done
case $userland in *[!0-9]*) die "--userland takes megabytes: 14M" ;; esac
if [ -n "$tls" ]; then
  # A handshake takes the emulated processor 15 to 50 ms: fewer clients come, and each is a greater load.
  most=4000 port=443 wanted=6000
  [ -z "$quick" ] || most=500 wanted=1250
  # On a busy machine a hundred of them take longer than the ten seconds that a client waits at most.
  args="$args --tls-listen 0.0.0.0:443 --handshake-timeout 60s --header-timeout 60s"
fi
[ "$(id -u)" -eq 0 ] && [ -c /dev/net/tun ] || die "a tap network needs root and /dev/net/tun"
[ -z "$async" ] || grep -q COIR_NO_ASYNC "$root/CMakeLists.txt" || die "--no-async: there is no build without fibers yet"

[ -z "$streams" ] || [ -z "$tls$async" ] || die "--$streams goes with neither --tls nor --no-async"

[ "$(board_kilobytes "$vm_board" memtotal)" -gt 0 ] || die "--board $vm_board: it has no memory of its own to emulate"

"$root/scripts/setup" --for vm,test
coird=${COIRD:-}
if [ -z "$coird" ]; then
  coird=$root/build/$vm_board$async/apps/coird/coird
  "$root/scripts/build" --board "$vm_board" ${async:+--no-async} --no-tests >/dev/null
fi
export COIR_VM_COIRD="$coird"
vm_build
load_build
case $streams in
  sse) streams_build feed ;;
  ws) streams_build sockets ;;
  proxy) upstream_build ;;
esac

figure() { printf '%s: %s %s\n' "$1" "$2" "$3"; }

listening() { vm_exec 'wget -q -O /dev/null http://127.0.0.1/healthz 2>/dev/null'; }

# boot starts the machine, with the hog in it and the kernel's settings as asked for.
boot() {
  say "booting the board for $1"
  vm_start --net tap --data "$load_data" --overlay "$load_overlay" --args "$args" || die "the board does not boot"
  for setting in $sysctls; do
    vm_exec "sysctl -w $setting" >&2
  done
  # Some settings are read when a socket starts to listen.
  [ -z "$sysctls" ] || vm_exec '/etc/init.d/S90coird stop; /etc/init.d/S90coird start' || die "coird does not restart"
  vm_await 20 listening || die "coird does not listen"
  boots=$(coird_starts)
}

# settle_in has the hog take its memory, out of reach of the OOM killer: it stands for many small programs.
settle_in() {
  [ -n "$userland" ] || return 0
  vm_exec "/mnt/data/memory_hog $userland >/run/hog 2>&1 & echo -1000 >/proc/\$!/oom_score_adj
    until grep -q holding /run/hog; do sleep 0.1; done" || die "the board has no $userland MB to take"
}

# told says what a command of the clients came to.
told() {
  say "$1: $open open, $again answered again, $refused refused, $closed closed, $lost lost, $declined declined," \
    "$reset reset, $unanswered unanswered, $unconnected unconnected"
}

# A program that keeps nothing per connection. The memory of a connection is read off between 500 and 2,500 of them.
measure_floor() {
  boot 'the bound'
  vm_exec '/etc/init.d/S90coird stop; ulimit -n 65536
    /mnt/data/epoll_floor 81 250 0.0.0.0 >/run/floor.log 2>&1 &
    until wget -q -O /dev/null http://127.0.0.1:81/; do sleep 0.1; done' || die "the bound does not start"
  settle_in
  load_start 81 20000
  low=500 high=2500
  [ -z "$userland" ] || low=200 high=800
  load_ask hold $low
  at_low=$(guest_memory) free_low=$(guest_free)
  load_ask hold $high
  if [ "$open" -eq $high ]; then
    figure kernel_bytes_per_connection $(((free_low - $(guest_free)) * 1024 / (high - low))) bytes
    figure kernel_available_bytes_per_connection $(((at_low - $(guest_memory)) * 1024 / (high - low))) bytes
  fi
  load_ask hold 20000
  told 'held by the bound'
  # The connections that were answered before the machine stopped answering.
  floor_held=$((open + closed + lost))
  figure floor.held "$floor_held" connections
  figure floor.oom_kills "$(oom_kills)" kills
  load_stop
  vm_stop
}

# recovered succeeds once MemAvailable is within 3 % of its first value: connections that coird ended first take a minute.
recovered() { after=$(guest_memory) && [ $((after * 100)) -ge $((before * 97)) ]; }
# shrunk succeeds once what coird holds for clients that have left is given back.
shrunk() { rss=$(guest_resident) && [ $((rss * 100)) -le $((resident * 103)) ]; }

# dead is the end of a run whose board did not live to see the flood.
dead() {
  figure oom_kills "$(oom_kills)" kills
  die "the board died of the connections it held; there is nothing left to flood"
}

measure_coird() {
  boot coird
  settle_in
  # shellcheck disable=SC2086 # a command of several words
  $vm_enter curl -sS -o /dev/null --max-time 10 "$vm_url/100.txt" || die "coird does not answer"
  before=$(guest_memory)
  idle=$(guest_resident)
  figure idle_rss_kb "$idle" kB
  figure idle_mem_available_kb "$before" kB

  if [ -n "$promise" ]; then
    promised=$(vm_exec '. /etc/default/coird; coird $COIRD_ARGS --print-budget' | sed -n 's/^max_connections: \([0-9]*\) .*/\1/p')
    figure promised "$promised" connections
    # One address of clients has no more ports.
    wanted=$((promised < 64000 ? promised : 64000))
    [ -z "$quick" ] || [ "$wanted" -le 3000 ] || wanted=3000
  fi
  load_start $port $((wanted > most ? wanted : most))
  load_ask hold $wanted
  told 'held'
  opened=$((open + closed + lost))
  load_ask again
  told 'asked again'
  figure held "$again" connections
  figure held_opened "$opened" connections
  figure held_oom_kills "$(oom_kills)" kills
  [ "$again" -eq 0 ] || figure resident_bytes_per_connection $((($(guest_resident) - idle) * 1024 / again)) bytes
  [ "$floor_held" -eq 0 ] || awk -v ours="$again" -v floor="$floor_held" \
    'BEGIN { printf "ratio.floor.held: %.3f x\n", ours / floor }'
  load_ask close
  vm_await 15 recovered || true
  # Some seconds for coird to give back what it held for them.
  sleep 5
  before=$(guest_memory) && resident=$(guest_resident) || dead

  starts=$(coird_starts)
  say "$most clients at once"
  load_ask flood $most $flood_seconds
  told 'flooded'
  figure flood_clients $most clients
  figure flood_answered $((open + closed + lost)) clients
  load_ask again
  told 'asked again'
  # The kernel ends a killed daemon's connections as cleanly as a policy would.
  if [ "$(coird_starts)" -ne "$starts" ]; then lost=$((lost + closed)) closed=0; fi
  figure flood_lost_established "$lost" connections
  figure flood_declined "$declined" connections
  figure flood_closed_idle "$closed" connections
  figure flood_refused "$refused" clients
  figure flood_reset "$reset" clients
  figure flood_unanswered $((unanswered + unconnected)) clients
  load_ask close
  load_stop

  vm_await $settle_seconds recovered || true
  vm_await 15 shrunk || true
  figure oom_kills "$(oom_kills)" kills
  figure coird_restarts $(($(coird_starts) - boots)) restarts
  after=$(guest_memory) || die "the board is dead; what it cannot tell any more is left out"
  figure rss_before_kb "$resident" kB
  figure rss_after_kb "$(guest_resident)" kB
  figure mem_available_before_kb "$before" kB
  figure mem_available_after_kb "$after" kB
  vm_stop
}

# begin_streams KIND COUNT PATH WHAT boots the board with the server of streams and has so many clients of that kind come. Sets
# held, how many there are.
begin_streams() {
  boot 'a server of streams'
  streams_serve || die "the server does not start"
  settle_in
  before=$(guest_memory)
  streams_start "$1"
  streams_ask "$1" open "$2" "$3"
  held=${answer#open }
  figure held "$held" "$4"
  [ "$held" -gt 0 ] || die "the server takes none"
  figure "available_bytes_per_${4%s}" $(((before - $(guest_memory)) * 1024 / held)) bytes
}

end_streams() {
  figure rss_after_kb "$(streams_resident)" kB
  figure oom_kills "$(oom_kills)" kills
  streams_stop "$1"
  vm_stop
}

# Followers of a feed, each of which gets an event a second for a minute, or every five seconds where the emulated
# processor does not send as many.
measure_sse() {
  followers=4300 seconds=60
  [ -z "$quick" ] || followers=1000 seconds=10
  begin_streams feed $followers /feed followers
  streams_ask feed publish 3
  sends=${answer##* }
  figure sends_per_s "$sends" /s
  every=1000
  # A fifth is left for whoever else runs there.
  [ "$sends" -gt $((held * 5 / 4)) ] || every=5000
  say "$held followers get an event every $every ms for $seconds s"
  streams_ask feed follow $seconds $every
  # shellcheck disable=SC2086 # several words
  set -- $answer
  figure event_every_ms $every ms
  figure events "$2" events
  figure events_received "$3" events
  figure lost "$4" followers
  figure gone "$5" followers
  end_streams feed
}

# WebSockets that rest, each of which answers a ping and a message, then again after all have rested once more.
measure_ws() {
  sockets=4300
  [ -z "$quick" ] || sockets=1000
  begin_streams sockets $sockets /socket sockets
  for round in first second; do
    streams_ask sockets ask
    # shellcheck disable=SC2086 # several words
    set -- $answer
    figure "${round}_answered" "$2" sockets
    figure "${round}_lost" "$3" sockets
    figure "${round}_answers_per_s" "$4" /s
  done
  end_streams sockets
}

# Followers of a feed on this machine, through coird: two sockets of the board each. All that are held get an event three times.
measure_proxy() {
  followers=2120
  [ -z "$quick" ] || followers=500
  # The kernel takes 3.6 KB and up for an idle socket there; the least that is kept free, and no more places than are used.
  args="--max-connections 2200 --connection-cost 3600 --keep-free 3M --proxy /=http://$upstream_address:$upstream_port $args"
  boot 'coird before an upstream on this machine'
  upstream_serve
  settle_in
  before=$(guest_memory) idle=$(guest_resident)
  streams_port=80
  streams_start feed
  streams_ask feed open $followers /feed
  opened=${answer#open }
  figure held_opened "$opened" streams
  streams_ask feed follow 12 4000
  # shellcheck disable=SC2086 # several words
  set -- $answer
  figure held $((opened - $4)) streams
  figure events "$2" events
  figure events_received "$3" events
  [ "$opened" -gt 0 ] || die "coird passes none on"
  figure resident_bytes_per_stream $((($(guest_resident) - idle) * 1024 / opened)) bytes
  figure available_bytes_per_stream $(((before - $(guest_memory)) * 1024 / opened)) bytes
  figure rss_after_kb "$(guest_resident)" kB
  figure oom_kills "$(oom_kills)" kills
  figure coird_restarts $(($(coird_starts) - boots)) restarts
  streams_stop feed
  upstream_stop
  vm_stop
}

# Streams of MCP that listen, and calls beside them. The clients end with the last word that this shell has for them.
measure_mcp() {
  listeners=4300 seconds=20
  [ -z "$quick" ] || listeners=1000 seconds=5
  args="$args --mcp /mcp --mcp-tool time"
  boot 'coird for agents'
  settle_in
  before=$(guest_memory)
  mkfifo "$vm_dir/mcp.in" "$vm_dir/mcp.out"
  address=${vm_url#http://}
  # shellcheck disable=SC2086 # a command of several words
  setpriv --pdeathsig TERM timeout 900 $vm_enter python3 "$root/tests/bench/mcp_clients.py" 80 "${address%%:*}" \
    <"$vm_dir/mcp.in" >"$vm_dir/mcp.out" &
  clients=$!
  exec 8>"$vm_dir/mcp.in" 9<"$vm_dir/mcp.out"
  # mcp_ask COMMAND ... leaves the number of its answer in `number`.
  mcp_ask() {
    echo "$*" >&8
    read -r _ number <&9 || die "the clients have ended; they say why above"
  }
  mcp_ask calls time $seconds
  figure calls_per_s "$number" /s
  mcp_ask listen $listeners
  held=$number
  figure held "$held" listeners
  [ "$held" -gt 0 ] || die "coird takes none"
  figure available_bytes_per_listener $(((before - $(guest_memory)) * 1024 / held)) bytes
  mcp_ask calls time $seconds
  figure calls_per_s_beside "$number" /s
  mcp_ask still
  figure lost $((held - number)) listeners
  figure rss_after_kb "$(guest_resident)" kB
  figure oom_kills "$(oom_kills)" kills
  exec 8>&- 9<&-
  wait "$clients" || true
  vm_stop
}

if [ -n "$streams" ]; then
  "measure_$streams"
  exit
fi

floor_held=0
# The bound is the same with TLS, and takes a third of the time that a quick run has.
[ -n "$tls" ] && [ -n "$quick" ] || [ -n "$promise" ] || measure_floor
measure_coird
