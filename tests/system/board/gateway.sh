# Sourced by tests that boot the emulated board: coird as a gateway before an upstream on this machine.
#
#   gateway_prepare    starts the upstream, and adds to coird_args; the machine is to start with --outbound
#   gateway_promises   the last ends the upstream

gateway_prepare() {
  mkfifo "$vm_dir/upstream.in" "$vm_dir/upstream.out"
  setpriv --pdeathsig TERM python3 "$root/tests/system/proxies/board_upstream.py" <"$vm_dir/upstream.in" >"$vm_dir/upstream.out" 4<&- &
  upstream=$!
  exec 5>"$vm_dir/upstream.in" 6<"$vm_dir/upstream.out"
  read -r upstream_port <&6
  # The machine's own network has this one's loopback at that address.
  coird_args="$coird_args --proxy /app/=http://10.0.2.2:$upstream_port"
}
# The machine has the upstream's input open too: its end would not come.
upstream_stop() {
  kill "$upstream"
  wait "$upstream" 2>/dev/null || true
}

serves_files() { fetch /100.txt && status_is 200 && [ "$(wc -c <"$vm_dir/body")" -eq 100 ]; }

passes_on() {
  fetch /app/one && status_is 200 && [ "$(cat "$vm_dir/body")" = /app/one ] && grep -qi '^x-for: 10\.' "$vm_dir/head"
}

# Fifty requests on one connection, which the upstream sees as one too.
passes_many() {
  curl -sS --max-time 60 -o "$vm_dir/body" "$vm_url/app/[1-50]" && [ "$(cat "$vm_dir/body")" = /app/50 ]
}

passes_uploads() {
  head -c 900000 /dev/urandom >"$vm_dir/upload"
  fetch /app/upload --data-binary "@$vm_dir/upload" -H 'Expect:' && status_is 200 && cmp "$vm_dir/upload" "$vm_dir/body" || return 1
  fetch /app/upload --data-binary "@$vm_dir/upload" -H 'Expect:' -H 'Transfer-Encoding: chunked' && cmp "$vm_dir/upload" "$vm_dir/body"
}

# Each event is asked for only once the one before has come.
passes_events() {
  rm -f "$vm_dir/events"
  mkfifo "$vm_dir/events"
  curl -sSN --max-time 60 -o "$vm_dir/events" "$vm_url/app/events" 4<&- 5>&- 6<&- &
  follower=$!
  exec 7<"$vm_dir/events"
  for number in 0 1 2 3; do
    read -r line <&7 && read -r _ <&7 || return 1
    echo "$line"
    [ "$line" = "data: $number" ] || return 1
    [ "$number" -eq 3 ] || curl -sS --max-time 30 -o "$vm_dir/body" "$vm_url/app/go"
  done
  exec 7<&-
  wait "$follower"
}

misses_it() {
  fetch /app/one && { status_is 502 || status_is 503; } && serves_files
}

gateway_promises() {
  promise "files are served beside the gateway" serves_files
  promise "a request reaches the upstream on this machine, and says for whom" passes_on
  promise "fifty requests on one connection do" passes_many
  promise "uploads pass, with a length and in chunks" passes_uploads
  promise "events pass one by one" passes_events
  upstream_stop
  promise "an upstream that has gone is 502 or 503, and files are served still" misses_it
}
