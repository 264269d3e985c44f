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
  if ! "$@" >"$log" 2>&1 </dev/null; then
    grep -E 'error:|Error [0-9]|^E: ' "$log" | head -n 10 >&2 || true
    tail -n 10 "$log" >&2
    die "failed: $* (whole log: $log)"
  fi
}

# usage prints the comment block at the head of the script that was started.
usage() {
  sed -n '2,/^[^#]/{/^#/!d; s/^# \{0,1\}//; p;}' "$0"
}
