#!/bin/sh
# scripts/bench device: see tests/bench/README.md for what each figure means.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
. "$root/tests/system/vm.sh"
rounds='1 2 3' cuts=2000
for option; do
  [ "$option" = --quick ] || die "unknown option '$option'; see scripts/bench --help"
  rounds=1 cuts=200
done

# new_app makes a program beside the tree, builds it, boots it and asks it, and prints the seconds from the beginning.
new_app() {
  vm_build
  "$root/scripts/build" --board "$vm_board" --no-tests >/dev/null
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

# flash_card makes an image of the vendor's own sizes, every byte of it written, and prints seconds and memory of flashing it.
flash_card() {
  mkdir -p "$vm_dir/card/root"
  "$root/tests/system/cards/vm_root" "$vm_dir/card/root" busybox
  head -c 200M /dev/urandom >"$vm_dir/card/root/filler"
  "$root/tests/system/cards/make" "$vm_dir/card" a --root "$vm_dir/card/root" --kib 4 --full >/dev/null 2>&1
  cp --sparse=never "$vm_dir/card/card.img" "$vm_dir/card/vendor.img"
  rm -r "$vm_dir/card/card.img" "$vm_dir/card/root"
  card=$vm_dir/card/flashed.img
  python3 - "$root/scripts/flash" --image "$vm_dir/card/vendor.img" --out "$card" --coird "$vm_coird" --files "$vm_dir/clock" <<'END'
import resource, subprocess, sys, time
began = time.monotonic()
subprocess.run(sys.argv[1:], check=True)
print(f"flash_s: {time.monotonic() - began:.1f} s")
print(f"flash_peak_kb: {resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss} kB")
END
  rm "$vm_dir/card/vendor.img"
}

# clock makes the defaults of a coird whose start script notes the uptime before the program begins and when it listens.
clock() {
  mkdir -p "$vm_dir/clock/etc/default"
  cat "$root/port/init/busybox/etc/default/coird" - >"$vm_dir/clock/etc/default/coird" <<'END'
if [ "${1:-}" = run ] && [ ! -e /run/said ]; then
  mkfifo /run/said
  while read -r line; do
    case $line in *"listening on"*) read -r up rest </proc/uptime; echo "$up" >/run/listens ;; esac
    echo "$line"
  done </run/said &
  exec >/run/said 2>&1
  read -r up rest </proc/uptime
  echo "$up" >/run/began
fi
END
}

# boot_card boots the card and prints how long it takes, and coird's own part.
boot_card() {
  for round in $rounds; do
    vm_start --disk "$card" --append root=/dev/vda2 || die "the card does not boot"
    request=$(curl -sS -o /dev/null --max-time 20 -w '%{time_total}' "$vm_url/100.txt")
    echo "${vm_ready% s} $request $(vm_exec 'cat /run/began') $(vm_exec 'cat /run/listens')"
    vm_stop
  done >"$vm_dir/boots"
  awk '{ printf "boot_ms: %.0f ms\nboot_own_ms: %.0f ms\n", ($1 + $2) * 1000, ($4 - $3) * 1000 }' "$vm_dir/boots" |
    awk -f "$root/tests/bench/figures.awk"
}

# lives ends a coird of this machine's by a signal, starts it again, and has another read its files again under load.
lives() {
  "$root/scripts/build" --daemon --target "$(uname -m)-linux-musl" >/dev/null
  for each in crash reload; do
    # shellcheck disable=SC2086 # words
    PYTHONDONTWRITEBYTECODE=1 python3 "$root/tests/bench/$each.py" "$root/build/$(uname -m)-linux-musl/apps/coird/coird" $rounds
  done | awk -f "$root/tests/bench/figures.awk"
}

# viewers lets one person and then six look at the dashboard of the board, and prints what they cost beside an idle daemon, in
# per cent of the emulated CPU: the first one, all six, and each further one.
viewers() {
  mkdir -p "$vm_dir/token"
  (umask 077 && echo viewers-of-the-dashboard >"$vm_dir/token/token")
  vm_start --data "$vm_dir/token" --args '--dashboard /dashboard --dashboard-token-file /mnt/data/token' ||
    die "the board does not boot"
  # The kernel makes its first random bytes when somebody waits for them; until then the dashboard takes no token.
  vm_exec --timeout 60 'head -c 1 /dev/random >/dev/null'
  vm_await 20 signs_in || die "the board takes no token"
  for round in $rounds; do
    idle=$(ticks_of 30)
    watch 1
    one=$ticks
    watch 6
    # A tick is 10 ms: 100 ticks a second are the CPU.
    awk -v idle="$idle" -v one="$one" -v six="$ticks" 'BEGIN {
      printf "dashboard_cpu_one_percent: %.2f %%\n", (one - idle) / 30
      printf "dashboard_cpu_six_percent: %.2f %%\n", (six - idle) / 30
      printf "dashboard_cpu_further_percent: %.2f %%\n", (six - one) / 30 / 5
    }'
  done >"$vm_dir/viewers"
  awk -f "$root/tests/bench/figures.awk" "$vm_dir/viewers"
  vm_stop
}
# watch sets `ticks` to the processor time of coird in 30 s of the board in which so many people look at its dashboard.
watch() {
  watching=''
  for viewer in $(seq "$1"); do
    curl -sSN --max-time 45 -o "$vm_dir/seen.$viewer" -b "$vm_dir/cookies" "$vm_url/dashboard/events" 2>/dev/null &
    watching="$watching $!"
  done
  vm_await 20 all_see "$1" || die "the viewers see nothing: $(cat "$vm_dir"/seen.*)"
  ticks=$(ticks_of 30)
  # shellcheck disable=SC2086 # words; not for the board, which goes on
  kill $watching && wait $watching 2>/dev/null || true
  rm "$vm_dir"/seen.*
}
signs_in() {
  [ "$(curl -sS --max-time 20 -o /dev/null -w '%{http_code}' -c "$vm_dir/cookies" -H "Origin: $vm_url" \
    --data token=viewers-of-the-dashboard "$vm_url/dashboard")" = 303 ]
}
all_see() { for viewer in $(seq "$1"); do grep -qs '^data:' "$vm_dir/seen.$viewer" || return 1; done; }
# ticks_of SECONDS is the processor time of coird in this time of the board.
ticks_of() {
  vm_exec --timeout 60 "used() { awk '{ print \$14 + \$15 }' /proc/\$(cat /run/coird.pid)/stat; }; before=\$(used); sleep $1; echo \$((\$(used) - before))"
}

# state_cuts cuts the power of the board while coird writes its state.
state_cuts() {
  "$root/tests/system/state_cuts" --cuts "$cuts" | grep '^state_cuts'
}

"$root/scripts/setup" --for vm,test,flash
lives
state_cuts
new_app
viewers
clock
flash_card
boot_card
