#!/bin/sh
# scripts/bench gate: see tests/bench/README.md for what each figure means.
#
#   COIR_GATE    the gate's command (default: .ci/run)
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
. "$root/scripts/say.sh"
. "$root/scripts/steps.sh"
figures='coir_speed_ms tree_cpu_s run_from_nothing_s gate_cold_s gate_warm_s'
wanted=''
while [ $# -gt 0 ]; do
  case $1 in
    --quick) wanted=coir_speed_ms ;;
    --only)
      case " $figures " in *" ${2:-?} "*) ;; *) die "--only takes one of: $figures" ;; esac
      wanted="$wanted $2"
      shift
      ;;
    *) die "unknown option '$1'; see scripts/bench --help" ;;
  esac
  shift
done

scratch=$(mktemp -d "${TMPDIR:-/tmp}/coir-gate.XXXXXX")
child=''
finish() {
  trap '' INT TERM HUP
  if [ -n "$child" ]; then
    kill -TERM "$child" 2>/dev/null || true
    wait "$child" 2>/dev/null || true
  fi
  rm -rf "$scratch"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# fresh NAME enters a fresh clone of HEAD, beside which NAME is its cache directory: empty, or as an earlier clone left it.
fresh() {
  cd "$scratch"
  rm -rf clone
  quietly "$scratch/clone.log" git clone -q --no-hardlinks "$root" clone
  mkdir -p "$1"
  export XDG_CACHE_HOME="$scratch/$1"
  cd clone
}

# since NS prints the seconds since then.
since() { awk -v ns=$(($(date +%s%N) - $1)) 'BEGIN { printf "%.1f", ns / 1e9 }'; }

# measure_speed also sets limits of tests, which are of no interest here.
coir_speed_ms() {
  cd "$root"
  tier=gate
  measure_speed
  echo "coir_speed_ms: $COIR_SPEED ms"
}

tree_cpu_s() {
  fresh tree
  quietly "$scratch/log" scripts/setup --for build:x86_64-linux-musl,unit
  ms=$(
    {
      quietly "$scratch/log" tests/programs x86_64-linux-musl all
      times
    } | tail -n 1 | processor_ms
  )
  echo "tree_cpu_s: $((ms / 1000)) s"
  rm -rf "$scratch/tree"
}

# The time ends when the page is here; then the board is ended.
run_from_nothing_s() {
  fresh run
  mkfifo "$scratch/said"
  began=$(date +%s%N)
  scripts/run >"$scratch/said" 2>"$scratch/log" &
  child=$!
  # Kept open until the end: what it says later must find a reader.
  exec 4<"$scratch/said"
  url=''
  while [ -z "$url" ] && read -r name value <&4; do
    [ "$name" != url: ] || url=$value
  done
  if [ -n "$url" ] && curl -sS --retry 10 --retry-all-errors --max-time 60 -o "$scratch/page" "$url/" && [ -s "$scratch/page" ]; then
    echo "run_from_nothing_s: $(since "$began") s"
  else
    tail -n 5 "$scratch/log" >&2
    die "scripts/run served no page"
  fi
  kill -TERM "$child" 2>/dev/null || true
  wait "$child" || true
  child=''
  exec 4<&-
  rm -rf "$scratch/run" "$scratch/said"
}

# gate FIGURE runs the gate in a fresh clone, in the background so that a signal ends it at once.
gate() {
  fresh gate
  began=$(date +%s%N)
  # shellcheck disable=SC2086 # a command of several words
  ${COIR_GATE:-.ci/run} >"$scratch/gate.log" 2>&1 </dev/null &
  child=$!
  status=0
  wait "$child" || status=$?
  child=''
  if [ "$status" -ne 0 ]; then
    tail -n 20 "$scratch/gate.log" >&2
    die "the gate failed after $(since "$began") s"
  fi
  echo "$1: $(since "$began") s"
}

gate_cold_s() {
  rm -rf "$scratch/gate"
  gate gate_cold_s
}

# Alone, it first fills the cache.
gate_warm_s() {
  [ -d "$scratch/gate" ] || gate gate_cold_s >/dev/null
  gate gate_warm_s
}

"$root/scripts/setup" --for build:host
for figure in $figures; do
  case " ${wanted:-$figures} " in
    *" $figure "*)
      say "$figure ..."
      $figure
      ;;
    *) [ "$wanted" != coir_speed_ms ] || echo "$figure: absent (it takes minutes: not with --quick)" ;;
  esac
done
