#!/usr/bin/env bash
# scripts/bench mqtt: see tests/bench/README.md for what each figure means. A part of scripts/bench proxy, too.
set -eu
. "$(dirname "$0")/bench.sh"
. "$here/servers.sh"
need_packages brokers mqtt

rounds=7 messages=200000 acknowledged=40000
if [ "${1:-}" = --quick ]; then
  rounds=3 messages=100000 acknowledged=20000
fi

build_coir x86_64-linux-musl-single mqtt_bench
ours=$root/build/x86_64-linux-musl-single/tests/bench/mqtt_bench
theirs=$programs/mosquitto_bench
if [ ! -e "$theirs" ] || [ "$here/mosquitto_bench.c" -nt "$theirs" ]; then
  say 'building mosquitto_bench.c ...'
  quietly "$programs/build.log" gcc -O2 -Wall -o "$theirs" "$here/mosquitto_bench.c" -lmosquitto -lpthread
fi

command_of() {
  printf 'listener %s 127.0.0.1\nallow_anonymous true\nmax_queued_messages 0\nlog_type none\n' "$2" >"$3/broker.conf"
  [ "$(id -u)" -ne 0 ] || echo 'user root' >>"$3/broker.conf"
  command=("$(command -v mosquitto || echo /usr/sbin/mosquitto)" -c "$3/broker.conf")
}

# measure FIGURE PROGRAM COUNT QOS is one run.
measure() {
  local said
  said=$(COIR_WORKERS=1 timeout 120 taskset -c $client_cpu "$2" "$port" "$3" "$4") || die "$2 does not publish at QoS $4"
  sample "$1" "$(awk -v count="$3" -v us="${said#sent }" 'BEGIN { printf "%.0f", count * 1e6 / us }')" /s
}

say 'messages to mosquitto'
start broker
for ((round = 1; round <= rounds; ++round)); do
  measure mqtt_per_s "$ours" $messages 0
  measure mosquitto.mqtt_per_s "$theirs" $messages 0
  measure mqtt_qos1_per_s "$ours" $acknowledged 1
  measure mosquitto.mqtt_qos1_per_s "$theirs" $acknowledged 1
done
stop "$pid"
print_figures mosquitto
