#!/bin/sh
# usage: tests/system/site_off.sh
#
# Built with COIR_SITE=OFF, COIR_PROXY=OFF, COIR_MCP=OFF, COIR_MDNS=OFF and COIR_MQTT=OFF the daemon serves files and has nothing of what a site
# wants besides, nor of passing on, agents, being found and reporting: each of those options is refused by its name, with the cure.
#
# everything: builds trees of its own
# builds: trees of its own
# limit: 300
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
. "$root/scripts/say.sh"
scratch=$(mktemp -d "${TMPDIR:-/tmp}/coir-site-off.XXXXXX")
daemon=''
end() {
  [ -z "$daemon" ] || kill "$daemon" 2>/dev/null || true
  rm -rf "$scratch"
}
trap end EXIT
trap 'exit 130' INT TERM HUP
status=0

# promise TEXT COMMAND ... prints whether the command succeeds; what it found is in $scratch/found.
promise() {
  text=$1
  shift
  if "$@"; then
    echo "ok - $text"
  else
    echo "not ok - $text"
    head -n 20 "$scratch/found" | sed 's/^/  /'
    status=1
  fi
}
nothing_found() { [ ! -s "$scratch/found" ]; }

"$root/tests/programs" x86_64-linux-musl+no-site coird -- -DCOIR_SITE=OFF -DCOIR_PROXY=OFF -DCOIR_MCP=OFF -DCOIR_MDNS=OFF -DCOIR_MQTT=OFF \
  -DCOIR_COIRCTL=OFF
coird=$root/build/test/x86_64-linux-musl-no-site/apps/coird/coird
names='list_folder|NameList|open_writable|FileTree6change|AcceptedCodings|matches_glob|CredentialStore|bearer_token|pbkdf2'
llvm-nm-19 "$coird" | grep -E "$names" >"$scratch/found" || true
llvm-nm-19 "$coird" | grep -E 'Forwarding|UpstreamGroup|FastCgi|names.*Asking|4coir3mcp|JsonDocument|ClientCore|4mdns|4mqtt' >>"$scratch/found" || true
promise "no symbol of lists, changes, compressed forms, patterns, credentials, the proxy, FastCGI, MCP, multicast DNS and MQTT is in the daemon" nothing_found

# refused OPTION [VALUE]: one line that names the option and the cure, and exit status 2.
refused() {
  answer=0
  switch=COIR_SITE
  case $1 in
    --proxy*) switch=COIR_PROXY ;;
    --fastcgi) switch=COIR_FASTCGI ;;
    --mcp*) switch=COIR_MCP ;;
  esac
  "$coird" --root "$scratch" "$@" </dev/null >"$scratch/out" 2>"$scratch/found" || answer=$?
  [ "$answer" -eq 2 ] && [ ! -s "$scratch/out" ] && [ "$(wc -l <"$scratch/found")" -eq 1 ] &&
    grep -qx "coird: $1: this coird was built without $switch (build it with -D$switch=ON)" "$scratch/found"
}
promise "--index is one line that names it, and status 2" refused --index
promise "so is --cache" refused --cache '*.css=no-store'
promise "so is --error-page" refused --error-page 404=/none.html
promise "so is --allow-put" refused --allow-put /
promise "so is --auth" refused --auth /dev/null
promise "so is --hash-password" refused --hash-password anne
promise "so is --hash-token" refused --hash-token robot
promise "so is --mcp" refused --mcp /mcp
promise "so is --mcp-tool" refused --mcp-tool time
promise "so is --proxy" refused --proxy /=http://127.0.0.1:1
promise "so is --proxy-ca" refused --proxy-ca /dev/null
promise "so is --proxy-cert" refused --proxy-cert /dev/null
promise "so is --proxy-key" refused --proxy-key /dev/null
promise "so is --fastcgi" refused --fastcgi .php=127.0.0.1:1
# left_out OPTION VALUE SWITCH: the same of what has words of its own.
left_out() {
  answer=0
  "$coird" "$1" "$2" </dev/null >"$scratch/out" 2>"$scratch/found" || answer=$?
  [ "$answer" -eq 2 ] && [ "$(wc -l <"$scratch/found")" -eq 1 ] && grep -q -- "$1.*$3" "$scratch/found"
}
promise "so is --mdns" left_out --mdns board COIR_MDNS
promise "so is --mqtt" left_out --mqtt mqtt://127.0.0.1 COIR_MQTT
"$coird" --help | grep -E '^ +--(index|cache|error-page|allow-put|auth|hash-password|hash-token|proxy|proxy-ca|proxy-cert|fastcgi) ' >"$scratch/found" || true
promise "--help lists none of them" nothing_found

mkdir "$scratch/site"
echo hello >"$scratch/site/page.txt"
echo other >"$scratch/site/page.txt.gz"
mkfifo "$scratch/said"
"$coird" --listen 127.0.0.1:0 --root "$scratch/site" 2>"$scratch/said" &
daemon=$!
read -r line <"$scratch/said"
url=http://127.0.0.1:${line##*:}
# answers STATUS CURL_ARGUMENT ...
answers() {
  wanted=$1
  shift
  got=$(curl -sS --max-time 20 -o "$scratch/found" -w '%{http_code}' "$@")
  [ "$got" = "$wanted" ]
}
serves() { answers 200 -H 'Accept-Encoding: gzip' "$url/page.txt" && grep -qx hello "$scratch/found"; }
promise "files are served, as they are" serves
promise "a folder is not listed" answers 404 "$url/"
promise "nothing is changed" answers 405 -X PUT -d new "$url/page.txt"
kill "$daemon"
daemon=''
exit "$status"
