#!/bin/sh
# usage: tests/system/models.sh
#
# Checks the models of tests/model with spin: each holds in every state, each of its variants that lacks a step
# (-DMUTATE_...) is refuted. A search that is cut off counts as a failure.
#
# needs: models
# everything: spin searches for minutes
# builds: a checker for each model, compiled
# limit: 300
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
  # Most searches are over long before a compiler would have made them faster.
  case $property in
    safety) flags='-O0 -DSAFETY -DNOCLAIM' run='-m100000' ;;
    *) flags='-O1 -DNFAIR=3' run="-a -f -N $property -m400000" ;;
  esac
  # shellcheck disable=SC2086 # words
  if ! "$compiler" -w $flags -DMEMLIM=500 -o pan pan.c >>log 2>&1; then
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
  model_with "$name" "$name" "$formula" "" "$@"
}

# variant NAME FORMULA DEFINED MUTANT ...
variant() {
  name=$1 formula=$2 defined=$3
  shift 3
  model_with "$name with $defined" "$name" "$formula" "-D$defined" "$@"
}

# model_with TITLE NAME FORMULA OPTION MUTANT ... ; OPTION may be empty
model_with() {
  title=$1 name=$2 formula=$3 option=$4
  shift 4
  expect holds "$title: nothing is lost and nobody is stuck" "$name" safety ${option:+"$option"}
  [ "$formula" = - ] || expect holds "$title: $formula" "$name" "$formula" ${option:+"$option"}
  for mutant; do
    expect refuted "$title is refuted with MUTATE_$mutant" "$name" safety ${option:+"$option"} "-DMUTATE_$mutant"
  done
}

model park_unpark_cancel goes_on COMMIT_BLINDLY CLAIM_UNLOCKED NO_SECOND_LOOK ALWAYS_WAKE
model sleep_notify all_run NO_FENCE NO_LAST_LOOK GIVE_UP MOVE_QUIETLY SEARCH_TO_SLEEP NO_HANDOVER
model poller is_seen KEEP_POLLER LET_GO_FIRST PLAIN_CLEAR NO_SECOND_LOOK NO_GUARDS_LOOK TRUST_ANY_GUARD NO_SECOND_READ
variant poller is_seen TIMER NO_PATIENCE KEEP_POLLER NO_SECOND_LOOK
expect refuted "poller with TIMER is refuted with MUTATE_OWN_TIMERS" poller is_seen -DTIMER -DMUTATE_OWN_TIMERS
variant poller is_seen WOKEN NO_OFFER PLAIN_WOKEN NO_LAST_LOOK
# The ring is full and spills with one thief; with two there is room for less, or the search takes a gigabyte.
model steal - POP_STORES STEAL_STORES READ_LATE FULL_LATE
expect holds "steal: two thieves at once lose nothing" steal safety -DTHIEVES=2 -DSLOTS=2 -DFIBERS=3
exit "$failed"
