# Sourced by scripts/test: its steps, several of which run at a time.
#
#   build TREE    builds what the tests of a tree are made of; one tree at a time, for the compiler takes every CPU
#   unit TREE     runs the unit tests of that tree once it is built
#   system FILE   runs one of tests/system once every tree is built; of those with a line "# builds: WHY" in their heads, which
#                 compile for minutes on every CPU, one at a time; one with a line "# alone: WHY" last, with nothing beside it
#
# Each leaves in $scratch/NUMBER.* its log, its counts and its times. When it has ended it writes its number into a pipe,
# from which the one loop that starts steps reads.

waiting='' steps_total=0 passed=0 failed=0 broken='' lucky=''

# add_step KIND NAME: a FILE may be followed by arguments.
add_step() {
  steps_total=$((steps_total + 1))
  echo "$1 $2" >"$scratch/$steps_total.step"
  waiting="$waiting $steps_total"
}

# run_steps LANES runs all that were added, so many at a time, and says what became of each.
run_steps() {
  mkfifo "$scratch/ended"
  exec 4<>"$scratch/ended"
  running='' building='' builds_left=0
  for number in $waiting; do
    read -r kind _ <"$scratch/$number.step"
    [ "$kind" != build ] || builds_left=$((builds_left + 1))
  done
  while [ -n "$waiting" ] || [ -n "$running" ]; do
    start_steps "$1"
    [ -n "$running" ] || continue
    read -r number <&4
    end_step "$number"
  done
}

# start_steps LANES starts what may start now. There is always something that may, or something that runs.
start_steps() {
  for number in $waiting; do
    # shellcheck disable=SC2086 # counted word by word
    [ "$(set -- $running; echo $#)" -lt "$1" ] || return 0
    ! one_runs alone || return 0
    read -r kind name arguments <"$scratch/$number.step"
    may_start "$kind" "$name" || continue
    waiting=$(without "$number" "$waiting")
    if kept "$number" "$kind"; then continue; fi
    [ "$kind" != build ] || building=$name
    running="$running $number"
    run_step "$number" "$kind" "$name" "$arguments" 1 >"$scratch/$number.log" 2>&1 </dev/null 4>&- &
    echo $! >"$scratch/$number.pid"
  done
}

# may_start KIND NAME
may_start() {
  case $1 in
    build) [ -z "$building" ] ;;
    unit) [ -e "$scratch/built.$2" ] ;;
    system)
      [ "$builds_left" -eq 0 ] || return 1
      ! is_alone "$2" || { [ -z "$running" ] && all_that_wait_are_alone; } || return 1
      ! is_marked builds "$2" || ! one_runs builds
      ;;
  esac
}

# is_marked MARK FILE: the test has such a line in its head.
is_marked() { grep -q "^# $1: " "$2"; }

# is_alone FILE: the test wants nothing beside it.
is_alone() { is_marked alone "$1"; }

all_that_wait_are_alone() {
  for other in $waiting; do
    read -r other_kind other_name _ <"$scratch/$other.step"
    [ "$other_kind" = system ] && is_alone "$other_name" || return 1
  done
}

# one_runs MARK: a test with that mark runs.
one_runs() {
  for other in $running; do
    read -r other_kind other_name _ <"$scratch/$other.step"
    if [ "$other_kind" = system ] && is_marked "$1" "$other_name"; then return 0; fi
  done
  return 1
}

# without WORD LIST prints the list without the word.
without() {
  for word in $2; do
    [ "$word" = "$1" ] || printf ' %s' "$word"
  done
}

# run_step NUMBER KIND NAME runs one step in a process of its own, which ends with it. The command runs under timeout,
# which ends all that it has started when the step is ended.
run_step() {
  number=$1 kind=$2 name=$3 arguments=$4 try=$5 command='' watcher=''
  trap 'times >"$scratch/$number.times"; echo "$number" >"$scratch/ended"' EXIT
  trap 'kill $command $watcher 2>/dev/null || true; wait; exit 143' TERM
  date +%s >"$scratch/$number.began"
  status=0
  case $kind in
    build) build_tree "$name" || status=$? ;;
    unit)
      set -- --no-tests=error
      [ -z "$match" ] || set -- --no-tests=ignore -R "$match"
      label=$(label_of "$name")
      [ -z "$label" ] || set -- "$@" -L "$label"
      jobs=3
      [ "$try" = 1 ] || { set -- --rerun-failed; jobs=1; }
      # A test ends itself before that, with all its fibers and threads shown (tests/support/time_limit.h).
      bounded 3000 ctest --test-dir "build/test/$name" --verbose -j$jobs --timeout 595 "$@" || status=$?
      ;;
    system)
      limit=$(limit_of "$name")
      # shellcheck disable=SC2086 # one by one
      bounded "$limit" "$name" $arguments || status=$?
      [ "$status" -ne 124 ] || echo "not ok - ${name##*/} ends within $limit seconds"
      ;;
  esac
  echo "$status" >"$scratch/$number.status"
}

# bounded SECONDS COMMAND ... ends the command when the time is over, and shows before that where its processes are.
bounded() {
  timeout --kill-after=20 "$@" &
  command=$!
  { trap 'kill "$pause" 2>/dev/null' TERM; sleep $(($1 - 8)) & pause=$!; wait "$pause" && tests/threads "$command"; } &
  watcher=$!
  bounded_status=0
  wait "$command" || bounded_status=$?
  kill "$watcher" 2>/dev/null || true
  wait "$watcher" 2>/dev/null || true
  return "$bounded_status"
}

# limit_of FILE prints the seconds that a system test may take here: a line "# limit: SECONDS" of its head, or 120, of a
# machine whose coir_speed is 900 ms; other tests run beside it. None may take 600.
limit_of() {
  limit=$(sed -n '1,24s/^# limit: *\([0-9]*\)$/\1/p' "$1" | head -n 1)
  limit=$((${limit:-120} * ${COIR_TEST_SCALE:-100} / 100))
  [ "$limit" -lt 590 ] || limit=590
  echo "$limit"
}

# label_of TREE prints which of a tree's unit tests run, as a label of CTest; nothing for all of them. In the gate the
# thread sanitizer's tree runs the tests of locks, and a foreign CPU's tree those that can differ by CPU.
label_of() {
  case $tier/$1 in
    # All of the board's tests run behind the filter of tests/system/vendor_kernel.
    everything/*) [ "$what" != everything ] || [ "$1" != "$(default_board)" ] || echo cpu ;;
    gate/host-tsan) echo locks ;;
    *) is_native "$1" || echo cpu ;;
  esac
}

# is_native TREE: this machine runs the tree's programs.
is_native() {
  ! is_board "$1" || return 1
  case $1 in
    host-* | "$(uname -m)"-*) ;;
    *) return 1 ;;
  esac
}

# build_tree TREE builds what that tree's tests, and the system tests, run of it. A program that does not build is a
# failure; the others run still.
build_tree() {
  lock_tree "build/test/$1"
  if ! test_tree "$1" "build/test/$1" ON >"build/test/$1/build.log" 2>&1; then
    cannot_build "$1"
    return 1
  fi
  label=$(label_of "$1")
  case $label in
    '') goals=all ;;
    cpu) goals='cpu_tests apps/all' ;;
    *) goals=${label}_tests ;;
  esac
  [ "$what" = unit ] || [ "$what" = quick ] || is_board "$1" || case $1 in
    host-*) ;;
    *) goals="$goals system_programs" ;;
  esac
  # Each of tests/system builds its own. Without a match the gate runs: a change that any test may see.
  [ "$what" != changed ] || [ -z "$match" ] || ! is_native "$1" || goals=$(goals_of_match "$1" "$label")
  [ -n "$goals" ] || return 0
  # shellcheck disable=SC2086 # one argument for each goal
  if bounded 3000 cmake --build "build/test/$1" --target $goals -- -k 0 >>"build/test/$1/build.log" 2>&1; then
    return 0
  fi
  cannot_build "$1"
  return 1
}

# goals_of_match TREE LABEL prints what builds the programs of those tests alone that have the label, if one is given, and
# whose names match.
goals_of_match() {
  ctest --test-dir "build/test/$1" -N -R "$match" ${2:+-L "$2"} |
    sed -n 's/^ *Test *#[0-9]*: *//p' | sed 's/^explore_.*/explore/; t; s/$/_test/' | sort -u
}

# cannot_build TREE shows why.
cannot_build() {
  grep -E ' error: |^CMake Error|^FAILED: ' "build/test/$1/build.log" | cut -c1-200 | head -n 20 || true
  echo "not ok - $1 builds (whole log: build/test/$1/build.log)"
}

# end_step NUMBER adds up what a step printed, and shows what failed in it.
end_step() {
  read -r kind name _ <"$scratch/$1.step"
  running=$(without "$1" "$running")
  read -r began <"$scratch/$1.began"
  read -r status 2>/dev/null <"$scratch/$1.status" || status=1
  label="${name##*/}"
  if [ "$kind" = build ]; then
    building='' builds_left=$((builds_left - 1))
    : >"$scratch/built.$name"
    label="$name is built"
  fi
  count_step "$1" "$kind"
  if [ "$bad" -eq 0 ]; then keep "$1" "$kind"; else broken="$broken $1"; fi
  passed=$((passed + good)) failed=$((failed + bad))
  took=$(($(date +%s) - began))
  cpu=$(($(tail -n 1 "$scratch/$1.times" | processor_ms) / 1000))
  echo "$took $cpu $label" >>"$scratch/taken"
  sed -n 's/^ *[0-9]*\/[0-9]* Test *#[0-9]*: \([^ ]*\) .* \([0-9.]*\) sec.*/\2 \1/p' "$scratch/$1.log" |
    sed "s|\$| on $name|" >>"$scratch/tests_taken"
  counts=
  [ "$kind" = build ] && [ "$status" -eq 0 ] || counts=": $good passed, $bad failed"
  [ "$skipped" -eq 0 ] || counts="$counts, $skipped skipped"
  step "$label$counts ($took s, $cpu of processor time)"
  cat "$scratch/$1.failures" >&2
}

# count_step NUMBER KIND sets good, bad and skipped from the step's log, and leaves in NUMBER.failures what failed.
count_step() {
  good=0 bad=0 skipped=0
  : >"$scratch/$1.failures"
  [ "$2" != build ] || [ "$status" -ne 0 ] || return 0
  awk -v exit_status="$status" -f tests/count.awk "$scratch/$1.log" >"$scratch/$1.counts" 2>"$scratch/$1.failures"
  read -r good bad skipped <"$scratch/$1.counts"
}

# try_again runs what failed once more, alone: the failed tests of a tree, or the whole file of tests/system. If it passes,
# it counts as passed and is shown as lucky.
try_again() {
  [ -n "$second_tries" ] || return 0
  for number in $broken; do
    read -r kind name arguments <"$scratch/$number.step"
    [ "$kind" != build ] || continue
    label=${name##*/}
    say "      once more, alone: $label"
    read -r good bad _ <"$scratch/$number.counts"
    passed=$((passed - good)) failed=$((failed - bad))
    cp "$scratch/$number.log" "$scratch/$number.first"
    (run_step "$number" "$kind" "$name" "$arguments" 2) >"$scratch/$number.second" 2>&1 </dev/null
    read -r number <&4
    read -r status 2>/dev/null <"$scratch/$number.status" || status=1
    # CTest's numbers are those of the first try, and count.awk takes the last word on each.
    if [ "$kind" = unit ]; then cat "$scratch/$number.second" >>"$scratch/$number.log"; else mv "$scratch/$number.second" "$scratch/$number.log"; fi
    cp "$scratch/$number.failures" "$scratch/$number.first_failures"
    count_step "$number" "$kind"
    passed=$((passed + good)) failed=$((failed + bad))
    if [ "$bad" -eq 0 ]; then
      lucky="$lucky $number"
      say "      $label: passed at second try"
    else
      say "      $label: $bad failed again"
      cat "$scratch/$number.failures" >&2
    fi
  done
}

# print_second_tries shows what passed at its second try, and why the first one failed: each is a defect to mend.
print_second_tries() {
  for number in $lucky; do
    read -r _ name _ <"$scratch/$number.step"
    tests=$(sed -n 's/^ *[0-9]*\/[0-9]* Test *#[0-9]*: \([^ ]*\) .*\*\*\*.*/\1/p' "$scratch/$number.first" | sort -u | tr '\n' ' ')
    echo "passed at second try: ${name##*/}${tests:+ (${tests% })}"
    cat "$scratch/$number.first_failures"
  done
  # shellcheck disable=SC2086 # counted word by word
  [ -z "$lucky" ] || echo "second tries: $(set -- $lucky; echo $#)"
}

# keep_what_passes makes a folder for what this commit's steps have shown, unless the tree has changes. With --continue, what
# is there is not run again.
keep_what_passes() {
  kept_in=
  if [ -z "$(git status --porcelain)" ]; then
    kept_in=build/tested/$(git rev-parse --short=16 HEAD)
    mkdir -p "$kept_in"
    [ -n "$skip_passed" ] || [ "$what" != everything ] || rm -f "$kept_in"/*
  elif [ -n "$skip_passed" ]; then
    die "--continue wants a tree without changes: commit them, or leave --continue out"
  fi
}

# keep NUMBER KIND keeps the counts of a step that has passed.
keep() {
  [ -n "$kept_in" ] && [ "$what" = everything ] && [ -z "$match" ] && [ "$2" != build ] || return 0
  cp "$scratch/$1.counts" "$kept_in/$(kept_name "$1")"
}

kept_name() { tr ' /' '--' <"$scratch/$1.step"; }

# kept NUMBER KIND: the step has passed before, and is counted.
kept() {
  [ -n "$skip_passed" ] && [ "$2" != build ] && [ -f "$kept_in/$(kept_name "$1")" ] || return 1
  read -r good bad skipped <"$kept_in/$(kept_name "$1")"
  passed=$((passed + good))
  read -r _ kept_step _ <"$scratch/$1.step"
  step "${kept_step##*/}: $good passed, 0 failed (in an earlier run)"
}

# end_steps ends what still runs.
end_steps() {
  for number in ${running:-}; do
    kill -TERM "$(cat "$scratch/$number.pid")" 2>/dev/null || true
  done
  wait
}

# print_dearest names the steps and tests that took longest.
print_dearest() {
  say ''
  say 'the dearest steps (seconds, of processor time)'
  sort -rn "$scratch/taken" | head -n 10 | awk '{ printf "  %4d %4d  ", $1, $2; $1 = $2 = ""; sub(/^ +/, ""); print }' >&2
  [ -s "$scratch/tests_taken" ] || return 0
  say 'the dearest unit tests (seconds)'
  sort -rn "$scratch/tests_taken" | head -n 10 | sed 's/^/  /' >&2
}

# measure_speed tells tests about the machine and the run. It sets COIR_SPEED, the milliseconds of its processor that this
# machine takes to compile one file that does not change, the best of three; and COIR_TEST_SCALE, by how many per cent of
# those written down the limits of tests are longer.
measure_speed() {
  COIR_SPEED=$(for round in 1 2 3; do
    (
      clang++-19 -nostdinc++ -isystem /usr/lib/llvm-19/include/c++/v1 -std=c++23 -O2 -c tests/support/speed.cpp \
        -o "$scratch/speed.o"
      times
    ) | tail -n 1 | processor_ms
  done | sort -n | head -n 1)
  COIR_TEST_SCALE=$((COIR_SPEED / 9))
  [ "$COIR_TEST_SCALE" -ge 100 ] || COIR_TEST_SCALE=100
  COIR_TEST_TIER=$tier COIR_TEST_THREADS=$root/tests/threads
  export COIR_SPEED COIR_TEST_SCALE COIR_TEST_TIER COIR_TEST_THREADS
}

# processor_ms reads what `times` says of children, user time and system time, and prints milliseconds.
processor_ms() {
  awk '{ split($0, t, /[ms ]+/); printf "%d\n", (t[1] * 60 + t[2] + t[3] * 60 + t[4]) * 1000 }'
}
