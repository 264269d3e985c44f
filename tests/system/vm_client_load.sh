# Sourced after vm.sh by what sets thousands of clients on the emulated board (vm_start --net tap).
#
#   load_build               builds the clients, and for the board what a test starts beside coird; sets load_data, a
#                             folder for vm_start --data, and load_overlay, one for --overlay that lifts the limit of
#                             open files as the kernel sets it (4,096)
#   load_start PORT MOST     starts clients of that port of the board, with TLS if it is 443
#   load_ask COMMAND ...     one command of tests/bench/client_load_main.cpp; sets open again refused closed lost declined reset
#                             unanswered unconnected
#   load_stop                ends the clients, and with them their connections
#   guest_memory              prints the guest's MemAvailable in kB
#   guest_free                prints what is free or page cache in kB: MemAvailable without slab, of which it counts
#                             pinned inodes and dentries of sockets as if they could be had back
#   guest_resident            prints what is resident of coird, in kB; guest_own that without the pages of its file
#   coird_starts              prints how often coird has come to listen since the guest booted
#   oom_kills                 prints how often the guest's kernel has killed for want of memory since it booted
#
# Everything ends with the shell that sourced vm.sh.

load_build() {
  load_log=$vm_dir/load-build.log
  load_tree=$(uname -m)-linux-musl
  quietly "$load_log" "$root/tests/programs" "$load_tree" client_load
  quietly "$load_log" "$root/tests/programs" "$vm_board" epoll_floor memory_hog
  load_data=$vm_dir/programs load_overlay=$vm_dir/overlay
  mkdir -p "$load_data" "$load_overlay/etc/default"
  cp "$root/build/test/$vm_board/tests/bench/epoll_floor" "$root/build/test/$vm_board/tests/bench/memory_hog" "$load_data"
  {
    cat "$root/port/init/busybox/etc/default/coird"
    echo 'ulimit -n 65536'
  } >"$load_overlay/etc/default/coird"
}

load_start() {
  rm -f "$vm_dir/client_load.in" "$vm_dir/client_load.out"
  mkfifo "$vm_dir/client_load.in" "$vm_dir/client_load.out"
  load_address=${vm_url#http://}
  load_program=$root/build/test/$load_tree/tests/bench/client_load
  [ "$1" -ne 443 ] || load_program="python3 -B $root/tests/bench/tls_client_load.py"
  # shellcheck disable=SC2086 # $vm_enter and the program are commands of several words
  setpriv --pdeathsig TERM timeout 900 $vm_enter $load_program \
    "${load_address%%:*}" "$1" /100.txt "$2" <"$vm_dir/client_load.in" >"$vm_dir/client_load.out" &
  load_process=$!
  exec 5>"$vm_dir/client_load.in" 6<"$vm_dir/client_load.out"
}

load_ask() {
  echo "$*" >&5
  # shellcheck disable=SC2034 # for the caller
  read -r open again refused closed lost declined reset unanswered unconnected <&6 ||
    die "the clients have ended; they say why above"
}

load_stop() {
  exec 5>&- 6<&-
  wait "$load_process" || true
}

guest_memory() { vm_exec "sed -n 's/^MemAvailable: *\([0-9]*\) kB/\1/p' /proc/meminfo"; }
guest_free() { vm_exec "awk '/^(MemFree|Active.file.|Inactive.file.):/ { sum += \$2 } END { print sum }' /proc/meminfo"; }
coird_starts() { grep -c 'coird: listening on .*:80[^0-9]*$' "$vm_log" || true; }
guest_resident() { vm_exec 'sed -n "s/^VmRSS:[^0-9]*\([0-9]*\) kB/\1/p" "/proc/$(cat /run/coird.pid)/status"'; }
guest_own() { vm_exec 'sed -n "s/^RssAnon:[^0-9]*\([0-9]*\) kB/\1/p" "/proc/$(cat /run/coird.pid)/status"'; }
oom_kills() { grep -c 'Out of memory: Killed process' "$vm_log" || true; }
