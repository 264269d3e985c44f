# Sourced by the tests that run on the emulated board; the caller sets root and has `set -eu`.
#
#   vm_board                          the board; by default COIR_VM_BOARD, or the one that port/boards/default names
#   vm_build                          builds coird for the board, unless COIR_VM_COIRD names a binary; sets vm_coird
#   vm_app                            a daemon of one's own to boot instead of vm_coird
#   vm_start [option ...]             boots with options of qemu/board-vm run, and waits until coird listens; sets
#                                     vm_url, vm_enter ("ip netns exec NAME" with --net tap), vm_log, vm_ready
#   vm_start_or_end [option ...]      vm_start as a promise; ends the test if it is broken
#   vm_exec [--timeout S] COMMAND     runs COMMAND in the guest, as qemu/board-vm exec
#   vm_stop                           ends the machine
#   vm_await SECONDS COMMAND ...      repeats COMMAND until it succeeds
#   promise TEXT COMMAND ...          runs COMMAND and prints "ok - TEXT" or "not ok - TEXT", then what COMMAND printed
#   vm_finish                         the caller's last line: ends everything, status 1 if a promise was broken
#
# One machine at a time. All ends with the shell that started it.
. "$root/scripts/say.sh"
. "$root/scripts/boards.sh"

vm_board=${COIR_VM_BOARD:-$(default_board)}

vm_dir=$(mktemp -d "${TMPDIR:-/tmp}/coir-vm.XXXXXX")
vm_process=''
vm_broken=0
trap 'vm_stop; rm -rf "$vm_dir"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

vm_build() {
  vm_coird=${COIR_VM_COIRD:-}
  if [ -z "$vm_coird" ]; then
    vm_coird=$root/build/test/$vm_board/apps/coird/coird
    "$root/tests/programs" "$vm_board" coird >"$vm_dir/build.log" 2>&1 || {
      cat "$vm_dir/build.log"
      echo "not ok - coird builds for the board"
      exit 1
    }
  fi
}

vm_start() {
  vm_url='' vm_enter='' vm_log=$vm_dir/serial.log vm_ready=''
  rm -f "$vm_dir/said"
  mkfifo "$vm_dir/said"
  if [ -n "${vm_app:-}" ]; then set -- --app "$vm_app" "$@"; else set -- --coird "$vm_coird" "$@"; fi
  "$root/qemu/board-vm" run "$vm_dir" --board "$vm_board" --timeout 600 "$@" >"$vm_dir/said" &
  vm_process=$!
  exec 4<"$vm_dir/said"
  while read -r name value <&4; do
    case $name in
      url:) vm_url=$value ;;
      netns:) vm_enter="ip netns exec $value" ;;
      ready:)
        vm_ready=$value
        return 0
        ;;
    esac
  done
  return 1
}

# vm_start_or_end is vm_start as a promise, without which there is nothing to test.
vm_start_or_end() {
  if vm_start "$@"; then
    echo "ok - the board boots, and coird listens"
    echo "  after $vm_ready"
  else
    echo "not ok - the board boots, and coird listens"
    exit 1
  fi
}

vm_exec() { "$root/qemu/board-vm" exec "$vm_dir" "$@"; }

vm_stop() {
  [ -n "$vm_process" ] || return 0
  kill "$vm_process" 2>/dev/null || true
  wait "$vm_process" 2>/dev/null || true
  exec 4<&-
  vm_process=''
}

vm_await() {
  vm_until=$(($(date +%s) + $1))
  shift
  until "$@"; do
    [ "$(date +%s)" -lt "$vm_until" ] || return 1
    sleep 0.2
  done
}

promise() {
  vm_promise=$1
  shift
  if ("$@") >"$vm_dir/promise.log" 2>&1; then
    echo "ok - $vm_promise"
  else
    echo "not ok - $vm_promise"
    vm_broken=1
  fi
  sed 's/^/  /' "$vm_dir/promise.log"
}

vm_finish() {
  vm_stop
  exit "$vm_broken"
}
