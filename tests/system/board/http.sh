# Sourced by tests that boot the emulated board: coird serves files over HTTP, bears load, is started again, ends.
#
#   http_promises KERNEL EPOLL   EPOLL is yes if that kernel has it, or no
#   fetch PATH [OPTION ...]      leaves the head in $vm_dir/head and the body in $vm_dir/body; OPTION is curl's
#   status_is CODE               of the last fetch
#   memory_is_left KB            after what was done, and nothing was killed for it

memory_is_the_boards() {
  total=$(vm_exec "sed -n 's/^MemTotal: *\([0-9]*\) kB/\1/p' /proc/meminfo")
  echo "MemTotal: $total kB"
  [ "$total" -ge 28300 ] && [ "$total" -le 29300 ]
}

# The vendor's kernel has no timerfd; only the later ones have epoll. An address of sv39 has 38 bits.
kernel_is_the_vendors() {
  vm_exec 'uname -a; cat /proc/cpuinfo'
  [ "$(vm_exec 'cat /proc/sys/fs/epoll/max_user_watches >/dev/null 2>&1 && echo yes || echo no')" = "$1" ] || return 1
  vm_exec '[ ! -e /proc/self/pagemap ] && [ ! -e /proc/self/ns/user ] && [ ! -e /sys/fs/cgroup ]' || return 1
  vm_exec "awk -F'[- ]' 'length(\$2) > 10 { exit 1 }' /proc/self/maps"
}

fetch() {
  path=$1
  shift
  curl -sS --max-time 20 -D "$vm_dir/head" -o "$vm_dir/body" "$@" "$vm_url$path"
  cat "$vm_dir/head"
}

status_is() { head -n 1 "$vm_dir/head" | grep -q "^HTTP/1.1 $1 "; }

serves_the_page() { fetch / && status_is 200 && grep -q 'from the board' "$vm_dir/body"; }

serves_100_bytes() { fetch /100.txt && status_is 200 && [ "$(wc -c <"$vm_dir/body")" -eq 100 ]; }

is_healthy() { fetch /healthz && status_is 200; }

counts_itself() { fetch /metrics && status_is 200 && grep -qE '^coir[a-z_]+(\{.*\})? [0-9]' "$vm_dir/body"; }

answers_head() { fetch /100.txt --head && status_is 200 && grep -qi '^content-length: 100' "$vm_dir/head"; }

serves_a_range() {
  fetch /100.txt --range 10-19 && status_is 206 && [ "$(wc -c <"$vm_dir/body")" -eq 10 ] &&
    grep -qi '^content-range: bytes 10-19/100' "$vm_dir/head"
}

misses() { fetch /no-such-file && status_is 404; }

bears_load() {
  wrk -t1 -c64 -d5s --timeout 10s "$vm_url/100.txt" >"$vm_dir/wrk" 2>&1
  cat "$vm_dir/wrk"
  grep -q '^Requests/sec: *[1-9]' "$vm_dir/wrk" && ! grep -qE 'Socket errors|Non-2xx' "$vm_dir/wrk"
}

memory_is_left() {
  available=$(vm_exec "sed -n 's/^MemAvailable: *\([0-9]*\) kB/\1/p' /proc/meminfo")
  echo "MemAvailable: $available kB"
  vm_exec 'grep -E "^Vm(HWM|RSS)" "/proc/$(cat /run/coird.pid)/status"'
  # 22 MB are available when coird idles; what was taken meanwhile must have come back.
  [ "$available" -ge "$1" ] && ! grep -qE 'Out of memory|oom-kill|Kernel panic|BUG:' "$vm_log"
}

# Another process serves under the pid file's number within 20 seconds.
is_started_again() {
  before=$(vm_exec 'cat /run/coird.pid')
  vm_exec "kill -KILL $before"
  changed() { [ "$(vm_exec 'cat /run/coird.pid')" != "$before" ]; }
  vm_await 20 changed && vm_await 20 is_healthy && serves_100_bytes
}

# A second daemon in the guest, so that its exit status reaches a shell and not init.
ends_cleanly() {
  vm_exec --timeout 30 '
    mkfifo /run/said
    exec 4<>/run/said
    rm /run/said
    /usr/sbin/coird --listen 127.0.0.1:8099 --root /mnt/data/www 2>&4 4>&- &
    pid=$!
    while read -r line <&4; do
      echo "$line"
      case $line in *"listening on"*) break ;; esac
    done
    [ "$(wget -q -O - http://127.0.0.1:8099/100.txt | wc -c)" -eq 100 ] || exit 99
    kill -TERM $pid
    wait $pid
    status=$?
    echo "status $status"
    exit $status'
}

init_script_works() {
  vm_exec --timeout 60 '/etc/init.d/S90coird status && /etc/init.d/S90coird stop && ! /etc/init.d/S90coird status' &&
    ! curl -sS --max-time 5 -o /dev/null "$vm_url/healthz" &&
    vm_exec '! /etc/init.d/S90coird reload && /etc/init.d/S90coird start' &&
    vm_await 20 is_healthy &&
    vm_exec 'before=$(cat /run/coird.pid) && /etc/init.d/S90coird reload && [ "$(cat /run/coird.pid)" = "$before" ] &&
      kill -0 "$before"' && is_healthy
}

# The init script passes on where the record, the safe mode's count and coirctl's socket are.
records_and_answers() {
  vm_exec 'ls /var/lib/coird/crashes /var/lib/coird/starts && [ -S /run/coird.sock ] &&
    [ "$(stat -c %a /run/coird.sock)" = 600 ]'
}

# To bind low ports and to read and reach files of others; 8,192 is how many files Linux lets all processes open.
keeps_few_rights() {
  vm_exec 'status=/proc/$(cat /run/coird.pid)/status && grep ^Cap "$status" && cat /proc/sys/fs/file-max &&
    [ "$(grep -cE "^Cap(Eff|Prm|Bnd):.0*40[46]$" "$status")" = 3 ] && [ "$(cat /proc/sys/fs/file-max)" -gt 8192 ]'
}

http_promises() {
  promise "$1: Linux sees between 28.3 and 29.3 MB" memory_is_the_boards
  promise "$1: the kernel has what the vendor's has, and lacks what it lacks" kernel_is_the_vendors "$2"
  promise "$1: / is the page of the data directory" serves_the_page
  promise "$1: a file of 100 bytes arrives whole" serves_100_bytes
  promise "$1: /healthz says yes" is_healthy
  promise "$1: /metrics is Prometheus text" counts_itself
  promise "$1: HEAD tells the length and sends no body" answers_head
  promise "$1: a range is 206 with its bytes" serves_a_range
  promise "$1: a missing file is 404" misses
  promise "$1: 64 connections of wrk see no error for 5 seconds" bears_load
  promise "$1: memory is left after the load, and nothing was killed for it" memory_is_left 20000
  promise "$1: init starts a killed coird again" is_started_again
  promise "$1: the init script has coird keep its record and answer coirctl" records_and_answers
  promise "$1: coird is root with few of its capabilities, and as many files may be open as before" keeps_few_rights
  promise "$1: SIGTERM ends coird with exit status 0" ends_cleanly
  promise "$1: the init script stops, starts and tells" init_script_works
}
