#!/usr/bin/env bash
# scripts/bench tls: see tests/bench/README.md for what each figure means.
set -eu
. "$(dirname "$0")/bench.sh"
. "$here/servers.sh"

rounds=5 seconds=2 held=400 vm=''
for option; do
  case $option in
    --quick) rounds=1 seconds=3 held=200 ;;
    --vm) vm=yes ;;
  esac
done

# measure_board is all there is with --vm: timers beside handshakes on the emulated board.
measure_board() {
  . "$root/tests/system/vm.sh"
  local pairs
  build_coir "$vm_board" coird
  build_coir "$vm_board" tls_delay
  mkdir "$vm_dir/programs"
  llvm-strip-19 "$root/build/$vm_board/tests/bench/tls_delay" -o "$vm_dir/programs/tls_delay"
  vm_coird=$root/build/$vm_board/apps/coird/coird
  vm_start --data "$vm_dir/programs" || die "the board does not boot"
  for ((round = 1; round <= rounds; ++round)); do
    say "round $round of $rounds"
    for pairs in 1 16; do
      vm_exec "/mnt/data/tls_delay $pairs $((seconds * 2)) 2>/dev/null" | sed 's/^/riscv64./' >>"$samples"
    done
  done
  vm_stop
  print_figures
}

if [ -n "$vm" ]; then
  measure_board
  exit
fi

build_coir x86_64-linux-musl-single coird
build_coir x86_64-linux-musl-single plain_mbedtls
build_coir x86_64-linux-musl-single tls_delay
say 'building coird with the small profile ...'
quietly "$programs/build.log" "$root/scripts/build" --target x86_64-linux-musl --single --tls small --no-tests
tree=$root/build/x86_64-linux-musl-single
servers=(coird plain_mbedtls nginx lighttpd)
declare -A pids ports

openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$scratch/key.pem" -out "$scratch/cert.pem" \
  -subj /CN=bench.test -addext subjectAltName=IP:127.0.0.1 -days 30 2>/dev/null
cat "$scratch/cert.pem" "$scratch/key.pem" >"$scratch/both.pem"
head -c 67108864 /dev/zero >"$scratch/www/big"

# command_of is what servers.sh asks for a server's command line, here with TLS.
command_of() {
  local name=$1 port=$2 folder=$3 profile=''
  case $name in
    coird | small)
      [ "$name" = coird ] || profile=-tls-small
      command=("$tree$profile/apps/coird/coird" --tls-listen "127.0.0.1:$port" --root "$scratch/www" --idle-timeout 600s
        --cert "$scratch/cert.pem" --key "$scratch/key.pem" --state "$folder")
      ;;
    plain_mbedtls) command=("$tree/tests/bench/plain_mbedtls" "$port" "$scratch/both.pem") ;;
    nginx)
      command=("$(command -v nginx || echo /usr/sbin/nginx)" -p "$folder" -c "$folder/nginx.conf")
      sed -e "s|@PORT@|$port ssl|; s|@DIR@/www|$scratch/www|; s|@DIR@|$folder|; s|@FILES@|$files|" \
        -e "s|@CONNECTIONS@|$connections|; s|root |ssl_certificate $scratch/cert.pem; ssl_certificate_key $scratch/key.pem; root |" \
        "$here/peers/nginx.conf" >"$folder/nginx.conf"
      ;;
    lighttpd)
      command=("$(command -v lighttpd || echo /usr/sbin/lighttpd)" -D -f "$folder/lighttpd.conf")
      {
        sed -e "s|@PORT@|$port|; s|@DIR@/www|$scratch/www|; s|@DIR@|$folder|; s|@FILES@|$files|" \
          -e "s|@CONNECTIONS@|$connections|" "$here/peers/lighttpd.conf"
        printf '%s\n' 'server.modules = ( "mod_openssl" )' 'ssl.engine = "enable"' \
          "ssl.pemfile = \"$scratch/cert.pem\"" "ssl.privkey = \"$scratch/key.pem\""
      } >"$folder/lighttpd.conf"
      ;;
  esac
}

# measure_handshakes NAME has three clients make new sessions one after the other, OpenSSL's, whose public-key arithmetic is
# ten times as fast, so that the server is the bottleneck. The second figure is by processor time and minds company less.
measure_handshakes() {
  local name=$1 before i clients=()
  before=$(cpu_ns "${pids[$name]}")
  for i in 1 2 3; do
    taskset -c $client_cpu openssl s_time -connect "127.0.0.1:${ports[$name]}" -new -time "$seconds" \
      >"$scratch/s_time.$i" 2>/dev/null &
    clients+=("$!")
  done
  wait "${clients[@]}" || true
  cat "$scratch"/s_time.[123] | awk -v name="$(prefix "$name")" -v ns=$(($(cpu_ns "${pids[$name]}") - before)) '
    /real seconds/ { made += $1; rate += $1 / $4 }
    END {
      if (made == 0) exit 1
      printf "%shandshakes_per_s: %.0f /s\n", name, rate
      printf "%scpu_us_per_handshake: %.1f us\n", name, ns / 1000 / made
    }' >>"$samples" || die "$name makes no sessions"
}

# measure_bulk NAME takes 64 MB on one connection.
measure_bulk() {
  local name=$1 before
  before=$(cpu_ns "${pids[$name]}")
  taskset -c $client_cpu curl -sS --http0.9 --cacert "$scratch/cert.pem" --tls13-ciphers TLS_AES_128_GCM_SHA256 \
    -o /dev/null -w '%{speed_download} %{size_download}\n' "https://127.0.0.1:${ports[$name]}/big" >"$scratch/bulk"
  awk -v name="$(prefix "$name")" -v ns=$(($(cpu_ns "${pids[$name]}") - before)) '
    $2 != 67108864 { exit 1 }
    {
      printf "%sbulk_mb_per_s: %.0f MB/s\n", name, $1 / 1e6
      printf "%scpu_us_per_mb: %.0f us\n", name, ns / 1000 / 67
    }' "$scratch/bulk" >>"$samples" || die "$name does not send 64 MB"
}

# measure_requests is measure_rate of servers.sh, over TLS.
measure_requests() {
  local name=$1 before
  before=$(cpu_ns "${pids[$name]}")
  taskset -c $client_cpu wrk -t1 -c64 -d"${seconds}s" "https://127.0.0.1:${ports[$name]}$target" >"$scratch/wrk" ||
    die "wrk fails against $name"
  awk -v name="$(prefix "$name")" -v ns=$(($(cpu_ns "${pids[$name]}") - before)) '
    $2 == "requests" && $3 == "in" { requests = $1 }
    $1 == "Requests/sec:" { rate = $2 }
    END {
      if (requests == 0) exit 1
      printf "%srps_64: %.0f /s\n", name, rate
      printf "%scpu_us_per_request_64: %.3f us\n", name, ns / 1000 / requests
    }' "$scratch/wrk" >>"$samples" || die "$name answered nothing to wrk"
}

for name in "${servers[@]}" small; do
  start "$name"
  pids[$name]=$pid ports[$name]=$port
done

say 'idle sessions'
for version in 1.3 1.2; do
  for name in coird plain_mbedtls small; do
    [ "$name$version" != small1.2 ] || continue
    python3 "$here/tls_sessions.py" "${ports[$name]}" "${pids[$name]}" "$held" "$version" "$(prefix "$name")" >>"$samples"
  done
done
for ((round = 1; round <= rounds; ++round)); do
  say "round $round of $rounds"
  for name in "${servers[@]}"; do
    measure_handshakes "$name"
    measure_requests "$name"
    measure_bulk "$name"
  done
done

say 'timers beside handshakes'
for pairs in 1 16; do
  taskset -c $server_cpu "$tree/tests/bench/tls_delay" "$pairs" "$seconds" >>"$samples" 2>/dev/null
done

print_figures plain_mbedtls nginx lighttpd
