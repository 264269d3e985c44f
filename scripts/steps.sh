# Sourced by scripts/test: its steps, several of which run at a time.
#
#   build TREE    builds what the tests of a tree are made of; one tree at a time, for the compiler takes every CPU
#   unit TREE     runs the unit tests of that tree once it is built
#   system FILE   runs one of tests/system once every tree is built; one with a line "# alone: WHY" in its head runs last,
#                 with nothing beside it
#
# Each leaves in $scratch/NUMBER.* its log, its counts and its times. When it has ended it writes its number into a pipe,
# from which the one loop that starts steps reads.

waiting='' steps_total=0 passed=0 failed=0

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
    read -r number <&4
    end_step "$number"
  done
}

# start_steps LANES starts what may start now. There is always something that may, or something that runs.
start_steps() {
  for number in $waiting; do
    # shellcheck disable=SC2086 # counted word by word
    [ "$(set -- $running; echo $#)" -lt "$1" ] || return 0
    ! alone_runs || return 0
    read -r kind name arguments <"$scratch/$number.step"
    may_start "$kind" "$name" || continue
    [ "$kind" != build ] || building=$name
    waiting=$(without "$number" "$waiting") running="$running $number"
    run_step "$number" "$kind" "$name" "$arguments" >"$scratch/$number.log" 2>&1 </dev/null 4>&- &
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
      ! is_alone "$2" || { [ -z "$running" ] && all_that_wait_are_alone; }
      ;;
  esac
}

# is_alone FILE: the test wants nothing beside it.
is_alone() {
  grep -q '^# alone: ' "$1"
}

all_that_wait_are_alone() {
  for other in $waiting; do
    read -r other_kind other_name _ <"$scratch/$other.step"
    [ "$other_kind" = system ] && is_alone "$other_name" || return 1
  done
}

alone_runs() {
  for other in $running; do
    read -r other_kind other_name _ <"$scratch/$other.step"
    if [ "$other_kind" = system ] && is_alone "$other_name"; then return 0; fi
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
  number=$1 kind=$2 name=$3 arguments=$4 command=''
  trap 'times >"$scratch/$number.times"; echo "$number" >"$scratch/ended"' EXIT
  trap '[ -z "$command" ] || kill "$command"; wait; exit 143' TERM
  date +%s >"$scratch/$number.began"
  status=0
  case $kind in
    build) build_tree "$name" || status=$? ;;
    unit)
      set -- --no-tests=error
      [ -z "$match" ] || set -- --no-tests=ignore -R "$match"
      # All of the board's run behind the filter of tests/system/vendor_kernel.
      if cpu_tests_only "$name" || { [ "$name" = "$(default_board)" ] && [ "$what" = all ]; }; then set -- "$@" -L cpu; fi
      # qemu's user mode forks a program of many threads where the kernel has vfork, and hung in it once in some thousands
      # of starts: what runs out of its time there is tried once more.
      case $name in
        host-* | "$(uname -m)"-*) ;;
        *) set -- "$@" --repeat after-timeout:2 ;;
      esac
      bounded 3000 ctest --test-dir "build/$name" --verbose -j3 "$@" || status=$?
      ;;
    system)
      # shellcheck disable=SC2086 # one by one
      bounded 1800 "$name" $arguments || status=$?
      [ "$status" -ne 124 ] || echo "not ok - ${name##*/} ends within 1800 seconds"
      ;;
  esac
  echo "$status" >"$scratch/$number.status"
}

# bounded SECONDS COMMAND ...
bounded() {
  timeout --kill-after=20 "$@" &
  command=$!
  wait "$command"
}

# cpu_tests_only TREE: on a foreign CPU only what can differ by CPU runs, unless everything is asked for.
cpu_tests_only() {
  [ -z "$every_cpu" ] || return 1
  ! is_board "$1" || return 1
  case $1 in
    host-* | "$(uname -m)"-*) return 1 ;;
  esac
}

# build_tree TREE builds what that tree's tests, and the system tests, run of it. A program that does not build is a
# failure; the others run still.
build_tree() {
  lock_tree "build/$1"
  fresh=$(freshness "build/$1")
  goals=all
  if cpu_tests_only "$1"; then goals='cpu_tests apps/all'; fi
  [ "$what" = unit ] || [ "$what" = quick ] || is_board "$1" || case $1 in
    host-*) ;;
    *) goals="$goals system_programs" ;;
  esac
  # shellcheck disable=SC2086 # one argument for each goal
  if { [ -z "$fresh" ] && [ -e "build/$1/build.ninja" ] || configure_tree "$1" "build/$1" ${fresh:+"$fresh"} -DCOIR_BUILD_TESTS=ON; } >"build/$1/build.log" 2>&1 &&
    bounded 3000 cmake --build "build/$1" --target $goals -- -k 0 >>"build/$1/build.log" 2>&1; then
    return 0
  fi
  grep -E ' error: |^CMake Error|^FAILED: ' "build/$1/build.log" | cut -c1-200 | head -n 20 || true
  echo "not ok - $1 builds (whole log: build/$1/build.log)"
  return 1
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
  if [ "$kind" = build ] && [ "$status" -eq 0 ]; then
    good=0 bad=0 skipped=0
    : >"$scratch/$1.failures"
  else
    awk -v exit_status="$status" -f tests/count.awk "$scratch/$1.log" >"$scratch/$1.counts" 2>"$scratch/$1.failures"
    read -r good bad skipped <"$scratch/$1.counts"
  fi
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

# speed prints how many milliseconds of its processor this machine takes to compile one file that does not change: the best
# of three.
speed() {
  for round in 1 2 3; do
    (
      clang++-19 -nostdinc++ -isystem /usr/lib/llvm-19/include/c++/v1 -std=c++23 -O2 -c tests/support/speed.cpp \
        -o "$scratch/speed.o"
      times
    ) | tail -n 1 | processor_ms
  done | sort -n | head -n 1
}

# processor_ms reads what `times` says of children, user time and system time, and prints milliseconds.
processor_ms() {
  awk '{ split($0, t, /[ms ]+/); printf "%d\n", (t[1] * 60 + t[2] + t[3] * 60 + t[4]) * 1000 }'
}
