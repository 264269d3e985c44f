# Sourced by the scripts: how they speak. Progress goes to standard error, figures alone to standard output.

# die MESSAGE ... ends the script with one line that tells the cure.
die() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

# say MESSAGE ... is one line of progress.
say() {
  printf '%s\n' "$*" >&2
}

# step MESSAGE ... is one numbered line of progress: "[3/9] ..."; steps_total is set by the caller.
steps_total=0
steps_done=0
step() {
  steps_done=$((steps_done + 1))
  printf '[%d/%d] %s\n' "$steps_done" "$steps_total" "$*" >&2
}

# quietly LOG COMMAND ... runs a command with its output in LOG; a failure shows its errors and its end and stops the script.
quietly() {
  log=$1
  shift
  "$@" >"$log" 2>&1 </dev/null || failed_quietly "$@"
}

# build_quietly LOG COMMAND ... is quietly for what runs ninja, and tells how far a long build is at each tenth of it.
build_quietly() {
  log=$1
  shift
  # The command's status takes a way of its own past the pipe; its output is read line by line, as it comes.
  build_status=$({
    {
      status=0
      "$@" 2>&1 </dev/null 4>&- || status=$?
      echo "$status" >&4
    } | {
      told=0
      while IFS= read -r line; do
        printf '%s\n' "$line"
        case $line in
          '['[0-9]*/[0-9]*']'*)
            done_steps=${line%%/*} all_steps=${line#*/}
            done_steps=${done_steps#?} all_steps=${all_steps%%]*}
            case $done_steps$all_steps in *[!0-9]*) continue ;; esac
            tenth=$((10 * done_steps / all_steps))
            if [ "$all_steps" -ge 30 ] && [ "$tenth" -gt "$told" ] && [ "$tenth" -lt 10 ]; then
              told=$tenth
              say "      [$done_steps/$all_steps]"
            fi
            ;;
        esac
      done >"$log"
    }
  } 4>&1)
  [ "$build_status" = 0 ] || failed_quietly "$@"
}

# failed_quietly COMMAND ... is the end of the two.
failed_quietly() {
  grep -E 'error:|Error [0-9]|^E: ' "$log" | head -n 10 >&2 || true
  tail -n 10 "$log" >&2
  die "failed: $* (whole log: $log)"
}

# usage prints the comment block at the head of the script that was started.
usage() {
  sed -n '2,/^[^#]/{/^#/!d; s/^# \{0,1\}//; p;}' "$0"
}
