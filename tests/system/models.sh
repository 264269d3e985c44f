#!/bin/sh
# usage: tests/system/models.sh
#
# Checks the models of tests/model with spin: each holds in every state, each of its variants that lacks a step
# (-DMUTATE_...) is refuted. A search that is cut off counts as a failure.
#
# needs: models
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
case ${1:-} in
  -h | --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0" | sed '/^set/d'; exit 0 ;;
esac
if ! command -v spin >/dev/null; then
  echo "ok - the models hold # SKIP no spin"
  exit 0
fi
compiler=$(command -v clang-19 || command -v cc)
scratch=$(mktemp -d "${TMPDIR:-/tmp}/coir-models.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM HUP
cd "$scratch"
failed=0

# check MODEL PROPERTY [-D ...] searches every state: PROPERTY is `safety` (assertions, and nobody stuck), or the name of
# a formula, of runs that are weakly fair. Prints holds, refuted, or what went wrong.
check() {
  model=$1 property=$2
  shift 2
  rm -f pan pan.* ./*.trail
  if ! spin -P"$compiler -E -x c" -a "$@" "$root/tests/model/$model.pml" >log 2>&1; then
    echo "spin failed: $(head -n 3 log)"
    return
  fi
  case $property in
    safety) flags='-DSAFETY -DNOCLAIM' run='-m100000' ;;
    *) flags=-DNFAIR=3 run="-a -f -N $property -m400000" ;;
  esac
  # shellcheck disable=SC2086 # words
  if ! "$compiler" -O1 -w $flags -DMEMLIM=500 -o pan pan.c >>log 2>&1; then
    echo "pan does not compile: $(head -n 3 log)"
    return
  fi
  # shellcheck disable=SC2086
  timeout 120 ./pan $run >log 2>&1 || true
  if grep -q 'errors: [1-9]' log; then
    echo refuted
  elif grep -q 'errors: 0' log && ! grep -Eq 'not completed|max search depth too small|Truncated|reached -DMEMLIM' log; then
    echo holds
  else
    echo "the search did not end: $(grep -E 'pan:|Warning' log | head -n 2 | tr '\n' ' ')"
  fi
}

# expect OUTCOME PROMISE MODEL PROPERTY [-D ...]
expect() {
  wanted=$1 promise=$2
  shift 2
  found=$(check "$@")
  if [ "$found" = "$wanted" ]; then
    echo "ok - $promise"
  else
    echo "not ok - $promise: $found"
    failed=1
  fi
}

# model NAME FORMULA MUTANT ... ; FORMULA may be `-`
model() {
  name=$1 formula=$2
  shift 2
  expect holds "$name: nothing is lost and nobody is stuck" "$name" safety
  [ "$formula" = - ] || expect holds "$name: $formula" "$name" "$formula"
  for mutant; do
    expect refuted "$name is refuted with MUTATE_$mutant" "$name" safety "-DMUTATE_$mutant"
  done
}

model park_unpark_cancel goes_on COMMIT_BLINDLY CLAIM_UNLOCKED NO_SECOND_LOOK ALWAYS_WAKE
model sleep_notify all_run NO_FENCE NO_LAST_LOOK GIVE_UP MOVE_QUIETLY SEARCH_TO_SLEEP NO_HANDOVER
# The ring is full and spills with one thief; with two there is room for less, or the search takes a gigabyte.
model steal - POP_STORES STEAL_STORES READ_LATE FULL_LATE
expect holds "steal: two thieves at once lose nothing" steal safety -DTHIEVES=2 -DSLOTS=2 -DFIBERS=3
exit "$failed"
