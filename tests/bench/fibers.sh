#!/usr/bin/env bash
# scripts/bench fibers: see tests/bench/README.md for what each figure means.
set -eu
. "$(dirname "$0")/bench.sh"
trap 'rm -rf "$scratch"' EXIT

rounds=9 switches=10000000 yields=1000000 spawns=1000000 messages=1000000 readings=500 jobs=300000 beats=1000 sections=1600000 wakes=500
[ "${1:-}" != --quick ] || rounds=3 readings=200 wakes=200 jobs=100000 beats=300

"$root/scripts/setup" --for build
build_coir x86_64-linux-musl-single fibers_bench jobs_bench
build_coir x86_64-linux-musl fibers_bench jobs_bench
build_host boost_fibers_bench.cpp -lboost_fiber -lboost_context
build_host go_fibers_bench.go
build_host feed_listener.cpp

# measure PREFIX SUFFIX PROGRAM ARGUMENT ... runs a figure program and keeps what it prints.
measure() {
  local prefix=$1 suffix=$2 name value unit
  shift 2
  timeout 120 "$@" >"$scratch/out" || die "failed: $*"
  while read -r name value unit; do
    # Only the larger run tells how many can be held.
    [[ -z $suffix || $name = *bytes: ]] || continue
    sample "$prefix${name%:}$suffix" "$value" "$unit"
  done <"$scratch/out"
}

ours=$root/build/x86_64-linux-musl-single/tests/bench/fibers_bench
mn=$root/build/x86_64-linux-musl/tests/bench/fibers_bench
jobs_ours=$(dirname "$ours")/jobs_bench
jobs_mn=$(dirname "$mn")/jobs_bench
boost=$programs/boost_fibers_bench
go=$programs/go_fibers_bench
listener=$programs/feed_listener
export GOMAXPROCS=1 COIR_WORKERS=1

for ((round = 1; round <= rounds; ++round)); do
  say "round $round of $rounds"
  measure '' '' "$ours" switch $switches
  measure mn. '' "$mn" switch $switches
  measure boost. '' "$boost" switch $switches
  measure '' '' "$ours" yield $yields
  measure mn. '' "$mn" yield $yields
  measure boost. '' "$boost" yield $yields
  measure go. '' "$go" yield $yields
  measure '' '' "$ours" spawn $spawns
  measure mn. '' "$mn" spawn $spawns
  measure boost. '' "$boost" spawn $spawns
  measure go. '' "$go" spawn $spawns
  for what in rendezvous buffered select mutex timer_1k timer_100k million; do
    measure '' '' "$ours" $what $messages
    measure mn. '' "$mn" $what $messages
    measure go. '' "$go" $what $messages
  done
  measure '' '' "$ours" batched $messages
  measure mn. '' "$mn" batched $messages
  for what in rendezvous buffered mutex million; do
    measure boost. '' "$boost" $what $messages
  done
  measure pthread. '' "$boost" pthread_mutex $messages
  measure musl_pthread. '' "$mn" pthread_mutex $messages
  for what in task group pool with_timeout; do
    measure '' '' "$jobs_ours" $what $jobs
    measure mn. '' "$jobs_mn" $what $jobs
    measure go. '' "$go" $what $jobs
  done
  measure '' '' "$jobs_ours" every $beats
  measure mn. '' "$jobs_mn" every $beats
  measure go. '' "$go" every $beats
  COIR_WORKERS=2 measure '' '' "$mn" mutex_contended $sections
  measure pthread. '' "$boost" pthread_mutex_contended $sections
  COIR_WORKERS=2 measure '' '' "$mn" wake_idle $wakes
  measure pthread. '' "$boost" pthread_wake_idle $wakes
  COIR_WORKERS=2 measure '' '' "$mn" rendezvous_2workers $messages
  GOMAXPROCS=2 measure go. '' "$go" rendezvous_2workers $messages
  measure '' '' "$listener" "$ours" feed $readings
  measure mn. '' "$listener" "$mn" feed $readings
  measure go. '' "$listener" "$go" feed $readings
done

say 'parked fibers'
measure '' _10k "$ours" suspended 10000
measure '' '' "$ours" suspended 100000
measure mn. _10k "$mn" suspended 10000
measure mn. '' "$mn" suspended 100000
measure boost. _10k "$boost" suspended 10000
measure boost. '' "$boost" suspended 100000
measure boost. '' "$boost" guarded 100000
measure go. _10k "$go" suspended 10000
measure go. '' "$go" suspended 100000

print_figures boost go pthread musl_pthread
