# Sourced after vm_client_load.sh by what sets followers of a feed and WebSockets on the emulated board, served by
# tests/bench/streams_server.cpp in coird's place. KIND is feed or sockets.
#
#   streams_build KIND ...        builds the server for load_data, and clients
#   streams_serve                 starts the server on port 81; its files are those of /mnt/data
#   streams_start KIND            starts clients of that kind, of port $streams_port
#   streams_ask KIND COMMAND ...  one command of tests/bench/stream_clients.cpp or resting_clients.cpp; sets answer
#   streams_stop KIND             ends them, and with them their connections
#   streams_resident              prints what is resident of the server, in kB
#
#   upstream_build                builds the server for this machine, and clients of a feed
#   upstream_serve                starts it at $upstream_address:$upstream_port, in the machine's tap network
#   upstream_stop                 ends it
#
# Everything ends with the shell that sourced vm.sh.

# streams_program KIND prints the name of the clients' program. streams_in and streams_out are its descriptors here.
streams_program() {
  case $1 in
    feed) echo stream_clients ;;
    sockets) echo resting_clients ;;
  esac
}
streams_pipes() {
  case $1 in
    feed) streams_in=3 streams_out=7 ;;
    sockets) streams_in=8 streams_out=9 ;;
  esac
}

streams_port=81
# The host's end of the board's cable (qemu/board-vm), in a network of its own.
upstream_address=192.168.42.2 upstream_port=8000

upstream_build() {
  load_tree=$(uname -m)-linux-musl
  quietly "$load_log" "$root/tests/programs" "$load_tree" streams_server
  quietly "$load_log" g++ -std=c++20 -O2 -DNDEBUG -static "$root/tests/bench/stream_clients.cpp" -o "$vm_dir/stream_clients"
}

upstream_serve() {
  # shellcheck disable=SC2086 # a command of several words
  setpriv --pdeathsig TERM timeout 900 $vm_enter "$root/build/test/$load_tree/tests/bench/streams_server" $upstream_port 0 $upstream_address \
    2>"$vm_dir/upstream.log" 4<&- &
  upstream_process=$!
  vm_await 20 grep -q listening "$vm_dir/upstream.log" || die "the upstream does not start: $(cat "$vm_dir/upstream.log")"
}

upstream_stop() {
  kill "$upstream_process"
  wait "$upstream_process" 2>/dev/null || true
}

streams_build() {
  quietly "$load_log" "$root/tests/programs" "$vm_board" streams_server
  llvm-strip-19 "$root/build/test/$vm_board/tests/bench/streams_server" -o "$load_data/streams_server"
  for kind; do
    program=$(streams_program "$kind")
    quietly "$load_log" g++ -std=c++20 -O2 -DNDEBUG -static "$root/tests/bench/$program.cpp" -o "$vm_dir/$program"
  done
}

streams_serve() {
  vm_exec '/etc/init.d/S90coird stop; ulimit -n 65536
    /mnt/data/streams_server 81 0 0.0.0.0 /mnt/data 2>/run/streams.log &
    until grep -q "listening\|error" /run/streams.log; do sleep 0.1; done; grep -q listening /run/streams.log'
}

streams_start() {
  program=$(streams_program "$1")
  streams_pipes "$1"
  rm -f "$vm_dir/$1.in" "$vm_dir/$1.out"
  mkfifo "$vm_dir/$1.in" "$vm_dir/$1.out"
  address=${vm_url#http://}
  # Others' descriptors are closed: a program ends at the end of its input. ($vm_enter is a command of several words.)
  # shellcheck disable=SC2086
  setpriv --pdeathsig TERM timeout 900 $vm_enter "$vm_dir/$program" "${address%%:*}" "$streams_port" \
    <"$vm_dir/$1.in" >"$vm_dir/$1.out" 3>&- 5>&- 6<&- 7<&- 8>&- 9<&- &
  eval "streams_process_$1=$!; exec $streams_in>\"\$vm_dir/$1.in\" $streams_out<\"\$vm_dir/$1.out\""
}

streams_ask() {
  streams_pipes "$1"
  shift
  eval "echo \"\$*\" >&$streams_in; read -r answer <&$streams_out" || die "the clients have ended; they say why above"
}

streams_stop() {
  streams_pipes "$1"
  eval "exec $streams_in>&- $streams_out<&-; wait \"\$streams_process_$1\"" || true
}

streams_resident() { vm_exec 'sed -n "s/^VmRSS:[^0-9]*\([0-9]*\) kB/\1/p" "/proc/$(pidof streams_server)/status"'; }
