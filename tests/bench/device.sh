#!/bin/sh
# scripts/bench device: see tests/bench/README.md for what each figure means.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
. "$root/tests/system/vm.sh"
for option; do
  [ "$option" = --quick ] || die "unknown option '$option'; see scripts/bench --help"
done

# new_app makes a program beside the tree, builds it, boots it and asks it, and prints the seconds from the beginning.
new_app() {
  vm_build
  "$root/scripts/build" --target "$(uname -m)-linux-musl" --no-tests >/dev/null
  app=$vm_dir/first-light
  began=$(date +%s%N)
  "$root/scripts/new-app" first-light "$app" >/dev/null
  quietly "$vm_dir/app.log" cmake -S "$app" -B "$app/build/board" --preset board
  quietly "$vm_dir/app.log" cmake --build "$app/build/board" --target first-light
  vm_app=$app/build/board/first-light
  vm_start --overlay "$app/root" || die "the new program does not boot"
  vm_await 60 answers || die "the new program does not answer"
  awk -v ns=$(($(date +%s%N) - began)) 'BEGIN { printf "new_app_s: %.1f s\n", ns / 1e9 }'
  vm_stop
  vm_app=''
}
answers() { curl -sS --max-time 10 "$vm_url/reading" 2>/dev/null | grep -q celsius; }

"$root/scripts/setup" --for vm,test
new_app
