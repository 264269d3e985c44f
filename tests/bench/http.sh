#!/usr/bin/env bash
# scripts/bench http: see tests/bench/README.md for what each figure means.
set -eu
. "$(dirname "$0")/bench.sh"
. "$here/servers.sh"

rounds=7 seconds=2 traced=20000
if [ "${1:-}" = --quick ]; then
  rounds=2 seconds=1 traced=5000
fi

build_host epoll_floor.cpp
build_host idle_clients.cpp
coird=${COIRD:-}
if [ -z "$coird" ]; then
  "$root/scripts/setup" --for build
  build_coir x86_64-linux-musl-single coird
  coird=$root/build/x86_64-linux-musl-single/apps/coird/coird
fi

servers=(coird floor nginx lighttpd h2o)
declare -A pids ports

# Without its debugging information, which valgrind's reader gives up on.
strip -g -o "$scratch/coird" "$coird" || die "not a program: $coird"
coird=$scratch/coird

# measure_idle NAME starts a server and has it hold 1,000 and then 5,000 connections, each of which has made one request. A
# hundred have been busy at once before: what a server keeps for requests in progress is no cost of idle connections.
measure_idle() {
  local name=$1 before held
  start "$name"
  pids[$name]=$pid ports[$name]=$port
  sample "$(prefix "$name")idle_rss_kb" $(($(resident_bytes "$pid") / 1024)) kB
  client "$port"
  ask open 100 || die "$name does not answer $target"
  [ "$name" != coird ] || answer_bytes=${answer[2]}
  ask go 5000 || die "$name does not answer 100 connections at once"
  before=$(resident_bytes "$pid")
  sample "$(prefix "$name")warm_rss_kb" $((before / 1024)) kB
  answer=(open 100)
  for held in 1000 5000; do
    ask open $((held + 100 - answer[1])) || break
    sample "$(prefix "$name")idle_conn_bytes_$held" \
      "$(awk -v grown=$(($(resident_bytes "$pid") - before)) -v held=$held 'BEGIN { printf "%.1f", grown / held }')" bytes
  done
  client_end
}

# measure_calls NAME counts every system call that the server makes while 64 connections keep it busy.
measure_calls() {
  local name=$1 out=$scratch/strace tracer tries=0
  client "${ports[$name]}"
  ask open 64 || return 0
  timeout -s INT 60 strace -f -c -U name,calls -o "$out.$name" -p "${pids[$name]}" 2>"$out.log" &
  tracer=$!
  started+=("$tracer")
  until grep -q attached "$out.log" || [ $((tries += 1)) -gt 100 ]; do sleep 0.05; done
  ask go $traced || true
  kill -INT "$tracer" 2>/dev/null || true
  wait "$tracer" 2>/dev/null || true
  client_end
  [ "${answer[0]}" = done ] || return 0
  awk -v name="$(prefix "$name")" -v requests="${answer[1]}" '
    $1 == "total" { printf "%ssyscalls_per_request: %.3f calls\n", name, $2 / requests }' "$out.$name" >>"$samples"
}

# measure_instructions NAME counts user instructions: with the processor's counters where they may be read, else by running
# a second instance of the server on valgrind's synthetic processor, which counts the same ones.
measure_instructions() {
  local name=$1 count=
  if [ "$counters" = yes ]; then
    client "${ports[$name]}"
    ask open 64 || return 0
    perf stat -x, -e instructions:u -o "$scratch/perf.$name" -p "${pids[$name]}" sleep 60 &
    local meter=$!
    started+=("$meter")
    sleep 0.3
    ask go $traced || true
    kill -INT "$meter"
    wait "$meter" 2>/dev/null || true
    count=$(awk -F, '/instructions/ { print $1 }' "$scratch/perf.$name")
  else
    start "$name" valgrind -q --tool=callgrind --instr-atstart=no --callgrind-out-file=@DIR@/callgrind
    client "$port"
    ask open 64 && ask go 500 || return 0
    callgrind_control -i on "$pid" >/dev/null 2>&1
    ask go 4000 || true
    callgrind_control -i off "$pid" >/dev/null 2>&1
    callgrind_control -d "$pid" >/dev/null 2>&1
    count=$(awk '/^(totals|summary):/ { sum = $2 } END { print sum }' "$folder"/callgrind.* 2>/dev/null || true)
    stop "$pid"
  fi
  client_end
  if [ -z "$count" ] || [ "${answer[0]}" != "done" ]; then
    say "$name: instructions could not be counted"
  else
    awk -v name="$(prefix "$name")" -v count="$count" -v requests="${answer[1]}" \
      'BEGIN { printf "%sinstructions_per_request: %.0f instructions\n", name, count / requests }' >>"$samples"
  fi
}

counters=no
if perf stat -x, -e instructions:u true 2>&1 | grep -q '^[0-9]'; then counters=yes; fi

say 'idle connections'
for name in "${servers[@]}"; do measure_idle "$name"; done

for ((round = 1; round <= rounds; ++round)); do
  say "requests per second, round $round of $rounds"
  for held in 64 1000; do
    for name in "${servers[@]}"; do measure_rate "$name" "$held"; done
  done
done

say 'system calls'
for name in "${servers[@]}"; do measure_calls "$name"; done

say 'instructions'
# Counting does not mind company: valgrind's instances run all at once, each in a shell of its own that ends its own server.
for name in "${servers[@]}"; do
  (
    trap 'stop "${started[@]}"' EXIT
    trap 'exit 143' TERM
    started=() pinned='' samples=$scratch/instructions.$name
    measure_instructions "$name"
  ) &
  started+=("$!")
  [ "$counters" = no ] || wait "$!"
done
wait "${started[@]: -${#servers[@]}}" || true
for name in "${servers[@]}"; do cat "$scratch/instructions.$name" >>"$samples" 2>/dev/null || true; done

print_figures floor nginx lighttpd h2o
