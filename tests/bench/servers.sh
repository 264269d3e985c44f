# shellcheck shell=bash
# Sourced by http.sh and ledger.sh: starting, asking about and ending the servers that are compared.

server_cpu=0 client_cpu=1
[ "$(nproc)" -gt 1 ] || client_cpu=0
connections=16384 files=20000
ulimit -n "$(ulimit -Hn)"
[ "$(ulimit -n)" = unlimited ] || [ "$(ulimit -n)" -ge 6000 ] ||
  die "5,000 connections need 6,000 open files; run: ulimit -n 20000"
[ "$(ulimit -n)" = unlimited ] || [ "$(ulimit -n)" -ge $files ] || files=$(ulimit -n)

# The text file that everybody serves; the folder is readable for a server that gives up its privileges.
chmod 755 "$scratch"
mkdir "$scratch/www"
printf '%099d\n' 0 >"$scratch/www/small.txt"
# Old enough for a strong entity tag: a server may tag a file as weak, with a longer answer, while it is new.
touch -d '2024-01-01 12:00 UTC' "$scratch/www/small.txt"
target=/small.txt

answer_bytes=250
started=()
pinned=yes
trap 'stop "${started[@]}"; rm -rf "$scratch"' EXIT
trap 'exit 130' INT
trap '' PIPE
trap 'exit 143' TERM

# stop PID ... ends processes that this script started: asks, waits two seconds, insists.
stop() {
  local pid tries=0
  for pid; do kill -TERM "$pid" 2>/dev/null || true; done
  for pid; do
    while kill -0 "$pid" 2>/dev/null && [ $tries -lt 40 ]; do
      sleep 0.05
      tries=$((tries + 1))
    done
    kill -KILL "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
  done
}

# free_port prints a port on which nothing listens, below the range that clients are given theirs from.
free_port() {
  local port
  while :; do
    port=$((20000 + RANDOM % 12000))
    (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || break
  done
  echo $port
}

# command_of NAME PORT FOLDER leaves the server's command line in the array `command`, its configuration in FOLDER.
command_of() {
  local name=$1 port=$2 folder=$3 program
  case $name in
    coird | unledgered)
      program=$coird
      [ "$name" = coird ] || program=$unledgered
      command=("$program" --listen "127.0.0.1:$port" --root "$scratch/www" --max-connections $connections --idle-timeout 600s)
      ;;
    floor) command=("$programs/epoll_floor" "$port" "$answer_bytes") ;;
    nginx) command=("$(command -v nginx || echo /usr/sbin/nginx)" -p "$folder" -c "$folder/nginx.conf") ;;
    lighttpd) command=("$(command -v lighttpd || echo /usr/sbin/lighttpd)" -D -f "$folder/lighttpd.conf") ;;
    h2o) command=(h2o -c "$folder/h2o.conf") ;;
  esac
  [ ! -e "$here/peers/$name.conf" ] ||
    sed -e "s|@PORT@|$port|; s|@DIR@/www|$scratch/www|; s|@DIR@|$folder|; s|@USER@|$(id -un)|" \
      -e "s|@FILES@|$files|; s|@CONNECTIONS@|$connections|" "$here/peers/$name.conf" >"$folder/$name.conf"
}

# start NAME [WRAPPER ...] starts a server, under a wrapper (valgrind) or not, and waits until it takes connections. Leaves
# its process in `pid`, its port in `port` and its folder in `folder`.
start() {
  local name=$1 command tries=0
  shift
  folder=$(mktemp -d "$scratch/$name.XXXXXX")
  chmod 755 "$folder"
  port=$(free_port)
  command_of "$name" "$port" "$folder"
  # valgrind makes memory executable.
  case $name/${1:-} in coird/valgrind | unledgered/valgrind) command+=(--no-sandbox) ;; esac
  # The kernel ends the server should this script be killed outright.
  COIR_WORKERS=1 setpriv --pdeathsig TERM ${pinned:+taskset -c $server_cpu} "${@//@DIR@/$folder}" "${command[@]}" \
    >"$folder/log" 2>&1 </dev/null &
  pid=$!
  started+=("$pid")
  until (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do
    tries=$((tries + 1))
    if [ $tries -gt 200 ] || ! kill -0 "$pid" 2>/dev/null; then
      tail -n 5 "$folder"/*log >&2
      die "$name does not start; its command: ${command[*]}"
    fi
    sleep 0.05
  done
}

# resident_bytes PID reads what is resident of a process, exactly: VmRSS is summed up lazily and can be off by 64 pages.
resident_bytes() {
  awk '/^Rss:/ { printf "%.0f\n", $2 * 1024 }' "/proc/$1/smaps_rollup"
}

# cpu_ns PID prints the processor time of all its threads, user and kernel, in nanoseconds.
cpu_ns() {
  cat "/proc/$1/task"/*/schedstat | awk '{ sum += $1 } END { printf "%.0f\n", sum }'
}

# client PORT starts idle_clients as a coprocess; ask COMMAND ... sends it one command and leaves the words of its answer in
# the array `answer`. Failing that, it says what went wrong and returns 1.
client() {
  client_port=$1
  coproc CLIENT { exec timeout 120 taskset -c $client_cpu "$programs/idle_clients" "$1" "$target" 2>"$scratch/client.$1.log"; }
}
ask() {
  { echo "$*" >&"${CLIENT[1]}"; } 2>/dev/null
  read -r -t 60 -a answer <&"${CLIENT[0]}" && return 0
  say "$(cat "$scratch/client.$client_port.log")"
  return 1
}
client_end() {
  local input=${CLIENT[1]:-} child=${CLIENT_PID:-}
  [ -z "$input" ] || eval "exec $input>&-"
  [ -z "$child" ] || wait "$child" 2>/dev/null || true
}

# prefix NAME is what stands before a server's figures: nothing before ours.
prefix() {
  [ "$1" = coird ] || echo "$1."
}

# measure_rate NAME CONNECTIONS [LABEL WRK_OPTION ...] is one run of wrk for `seconds`: rate, latency, and what a request
# cost the server in processor time. The figures end with LABEL, or else with the number of connections.
measure_rate() {
  local name=$1 held=$2 label=${3:-$2} out=$scratch/wrk before after
  shift $(($# < 3 ? $# : 3))
  before=$(cpu_ns "${pids[$name]}")
  timeout $((seconds + 20)) taskset -c $client_cpu wrk -t1 -c"$held" -d"${seconds}s" --latency "$@" \
    "http://127.0.0.1:${ports[$name]}$target" >"$out" || die "wrk fails against $name: $(tail -n 1 "$out")"
  after=$(cpu_ns "${pids[$name]}")
  if grep -q '^ *Non-2xx\|Socket errors' "$out"; then
    say "$name at $held connections: $(grep '^ *Non-2xx\|Socket errors' "$out")"
  fi
  # wrk writes a time with its unit: us, ms or s.
  awk -v name="$(prefix "$name")" -v held="$label" -v ns=$((after - before)) '
    $1 == "99%" { t = $2 + 0; if ($2 ~ /us$/) t /= 1000; else if ($2 !~ /ms$/) t *= 1000; p99 = t }
    $2 == "requests" && $3 == "in" { requests = $1 }
    $1 == "Requests/sec:" { rate = $2 }
    END {
      if (requests == 0) exit 1
      printf "%srps_%s: %.0f /s\n", name, held, rate
      printf "%sp99_ms_%s: %.3f ms\n", name, held, p99
      printf "%scpu_us_per_request_%s: %.3f us\n", name, held, ns / 1000 / requests
    }' "$out" >>"$samples" || die "$name answered nothing to wrk"
}
