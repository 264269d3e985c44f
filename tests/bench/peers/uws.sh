# shellcheck shell=bash
# Sourced by streams.sh.

# build_uws TREE builds uws_server with the uWebSockets that lies in TREE, with its uSockets, as their own build does: for this
# processor, optimised as a whole, without TLS and compression.
build_uws() {
  local tree=$1 out=$programs/uws_server work=$scratch/uws
  [ -e "$tree/src/App.h" ] && [ -e "$tree/uSockets/src/libusockets.h" ] ||
    die "COIR_UWS=$tree holds no uWebSockets: src/App.h and uSockets/src/libusockets.h are wanted"
  tree=$(cd "$tree" && pwd)
  if [ "$(cat "$out.tree" 2>/dev/null)" = "$tree" ] && [ "$out" -nt "$here/peers/uws_server.cpp" ]; then return; fi
  say 'building uws_server.cpp ...'
  mkdir -p "$work"
  local flags=(-O3 -march=native -flto=auto -DNDEBUG -DLIBUS_NO_SSL -I"$tree/uSockets/src")
  (cd "$work" && quietly "$programs/build.log" gcc "${flags[@]}" -std=c11 -c "$tree"/uSockets/src/*.c \
    "$tree"/uSockets/src/eventing/*.c "$tree"/uSockets/src/crypto/*.c) &&
    quietly "$programs/build.log" g++ "${flags[@]}" -std=c++20 -DUWS_NO_ZLIB -I"$tree/src" "$here/peers/uws_server.cpp" \
      "$work"/*.o -o "$out"
  echo "$tree" >"$out.tree"
}
