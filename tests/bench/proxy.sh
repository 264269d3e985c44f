#!/usr/bin/env bash
# scripts/bench proxy: see tests/bench/README.md for what each figure means.
set -eu
. "$(dirname "$0")/bench.sh"
. "$here/servers.sh"
need_packages proxies fastcgi

rounds=7 seconds=2 idle=1000 megabytes=1000 most=5000
if [ "${1:-}" = --quick ]; then
  rounds=3 seconds=1 megabytes=300
fi
# Clients and upstreams share the other processors.
upstream_cpu=$client_cpu bulk_cpu=$client_cpu
php_cpus=$client_cpu
if [ "$(nproc)" -ge 3 ]; then
  bulk_cpu=2 php_cpus=2-$(($(nproc) - 1))
fi

build_host epoll_floor.cpp
build_host stream_clients.cpp
build_host resting_clients.cpp
build_coir x86_64-linux-musl-single coird streams_server
single=$root/build/x86_64-linux-musl-single
coird=${COIRD:-}
if [ -z "$coird" ]; then
  strip -g -o "$scratch/coird" "$single/apps/coird/coird" || die "not a program: $single/apps/coird/coird"
  coird=$scratch/coird
fi

proxies=(coird floor nginx haproxy)
# The protocol to the upstream: proxy (HTTP) or fastcgi.
speaks=proxy
declare -A pids ports

# command_of NAME PORT FOLDER is start's of servers.sh: here a proxy before the port or socket `to`, or files, or what is asked at least.
command_of() {
  local name=$1 port=$2 folder=$3
  case $name in
    coird)
      local asks=(--proxy "/=http://127.0.0.1:$to")
      [ $speaks = proxy ] || asks=(--root "$scratch/www" --fastcgi ".php=unix:$to")
      command=("$coird" --listen "127.0.0.1:$port" "${asks[@]}" --max-connections $connections --idle-timeout 600s)
      ;;
    nginx) command=("$(command -v nginx || echo /usr/sbin/nginx)" -p "$folder" -c "$folder/nginx.conf") ;;
    haproxy) command=("$(command -v haproxy || echo /usr/sbin/haproxy)" -db -q -f "$folder/haproxy.conf") ;;
    files) command=("$coird" --listen "127.0.0.1:$port" --root "$scratch/www") ;;
    origin) command=("$programs/epoll_floor" "$port" 250) ;;
    floor) command=("$programs/epoll_floor" "$port" --to "$to") ;;
    streams) command=("$single/tests/bench/streams_server" "$port" 0) ;;
  esac
  # nginx counts the upstream's, too; haproxy wants a descriptor for each of two.
  local most_connections=8192
  [ "$name" != nginx ] || most_connections=16384
  [ ! -e "$here/peers/${speaks}_$name.conf" ] ||
    sed -e "s|@PORT@|$port|; s|@TO@|$to|; s|@DIR@/www|$scratch/www|; s|@DIR@|$folder|; s|@FILES@|$files|; s|@CONNECTIONS@|$most_connections|" \
      "$here/peers/${speaks}_$name.conf" >"$folder/$name.conf"
}

# upstream NAME starts what is behind the proxies; leaves its port in `to` and its process in `upstream_pid`.
upstream() {
  local own=$server_cpu
  server_cpu=$upstream_cpu to=0
  start "$1"
  server_cpu=$own to=$port upstream_pid=$pid
}

# php starts PHP's processes on a socket; leaves that in `to` and the process in `upstream_pid`.
php() {
  local folder tries=0 program
  program=$(find /usr/sbin -name 'php-fpm[0-9]*' | sort -V | tail -n 1)
  [ -n "$program" ] || die "php-fpm is not installed; run: scripts/setup --for fastcgi"
  folder=$(mktemp -d "$scratch/php.XXXXXX") to=$folder/socket
  chmod 755 "$folder"
  sed -e "s|@DIR@|$folder|" "$here/peers/php.conf" >"$folder/php.conf"
  # PHP's own files of settings are left out (-n).
  [ "$(id -u)" -ne 0 ] || printf 'user = nobody\ngroup = nogroup\n' >>"$folder/php.conf"
  setpriv --pdeathsig TERM taskset -c $php_cpus "$program" -n -F -y "$folder/php.conf" >"$folder/out" 2>&1 </dev/null &
  upstream_pid=$!
  started+=("$upstream_pid")
  until grep -qs 'ready to handle connections' "$folder/log"; do
    tries=$((tries + 1))
    if [ $tries -gt 200 ] || ! kill -0 "$upstream_pid" 2>/dev/null; then
      tail -n 5 "$folder/out" "$folder/log" >&2
      die "php-fpm does not start; its command: $program -n -F -y $folder/php.conf"
    fi
    sleep 0.05
  done
}

# start_all starts a proxy of each kind before the upstream.
start_all() {
  local name
  for name in "${proxies[@]}"; do
    start "$name"
    pids[$name]=$pid ports[$name]=$port
  done
}

# visitors PROGRAM PORT starts clients as a coprocess; ask and client_end of servers.sh speak to it.
visitors() {
  client_port=$2
  coproc CLIENT { exec timeout 300 taskset -c $client_cpu "$programs/$1" 127.0.0.1 "$2" 2>"$scratch/client.$2.log"; }
}

# measure_idle FIGURE PROGRAM PATH [SAY ...]: what each adds from `idle` of them on, up to `most`. Stacks and
# buffers, which come and go with a few, are then no part of the cost. The first `idle` are asked what SAY says.
measure_idle() {
  local figure=$1 program=$2 path=$3 name before
  shift 3
  for name in "${proxies[@]}"; do
    start "$name"
    visitors "$program" "$port"
    ask open "$idle" "$path" || die "$name: nobody can open $path"
    [ $# -eq 0 ] || ask "$@" || die "$name: $path does not answer"
    before=$(resident_bytes "$pid")
    ask open $((most - idle)) "$path" && [ "${answer[1]}" -eq "$most" ] || die "$name does not hold $most of $path"
    sample "$(prefix "$name")$figure" \
      "$(awk -v grown=$(($(resident_bytes "$pid") - before)) -v held=$((most - idle)) 'BEGIN { printf "%.1f", grown / held }')" bytes
    [ "$name" != coird ] || sample "${figure%_idle_bytes}_held" "${answer[1]}" streams
    client_end
    stop "$pid"
  done
}

# measure_bulk NAME fetches one long file: by the clock, and by the processor time of the proxy.
measure_bulk() {
  local name=$1 before took
  before=$(cpu_ns "${pids[$name]}")
  took=$(taskset -c $bulk_cpu curl -sS -o /dev/null --max-time 120 -w '%{time_total} %{size_download}' \
    "http://127.0.0.1:${ports[$name]}/bulk") || die "$name does not pass a long file on"
  # shellcheck disable=SC2086 # two words
  set -- $took
  [ "$2" -eq $((megabytes * 1000000)) ] || die "$name: $2 bytes of a long file came"
  awk -v name="$(prefix "$name")" -v megabytes=$megabytes -v s="$1" -v ns=$(($(cpu_ns "${pids[$name]}") - before)) 'BEGIN {
    printf "%sbulk_mb_per_s: %.1f MB/s\n", name, megabytes / s
    printf "%sbulk_mb_per_cpu_s: %.1f MB/s\n", name, megabytes * 1e9 / ns
  }' >>"$samples"
}

say 'requests through the proxies'
upstream origin
start_all
target=/small
for ((round = 1; round <= rounds; ++round)); do
  for name in "${proxies[@]}"; do measure_rate "$name" 64; done
done
stop "${pids[@]}" "$upstream_pid"
sed -i 's/cpu_us_per_request_64:/cpu_us_per_request:/' "$samples"
proxies=(coird nginx haproxy)

say 'idle event streams'
upstream streams
measure_idle sse_idle_bytes stream_clients /feed publish 5
say 'idle tunnels'
measure_idle tunnel_idle_bytes resting_clients /socket ask
stop "$upstream_pid"

say 'a long file'
truncate -s ${megabytes}000000 "$scratch/www/bulk"
upstream files
start_all
for ((round = 1; round <= rounds; ++round)); do
  for name in "${proxies[@]}"; do measure_bulk "$name"; done
done
stop "${pids[@]}" "$upstream_pid"

say 'FastCGI'
printf '<?php echo "hello\n";\n' >"$scratch/www/hello.php"
chmod 644 "$scratch/www/hello.php"
proxies=(coird nginx) speaks=fastcgi target=/hello.php
php
start_all
for name in "${proxies[@]}"; do
  got=$(curl -sS --max-time 20 "http://127.0.0.1:${ports[$name]}$target") && [ "$got" = hello ] ||
    die "$name does not answer by PHP: ${got:-nothing}"
done
for ((round = 1; round <= rounds; ++round)); do
  for name in "${proxies[@]}"; do measure_rate "$name" 64 fastcgi; done
done
stop "${pids[coird]}" "${pids[nginx]}" "$upstream_pid"
sed -i 's/rps_fastcgi:/fastcgi_per_s:/; s/p99_ms_fastcgi:/fastcgi_p99_ms:/; s/cpu_us_per_request_fastcgi:/fastcgi_cpu_us_per_request:/' "$samples"

"$here/mqtt.sh" "$@" | grep -v '^ratio' >>"$samples"

print_figures floor nginx haproxy mosquitto
