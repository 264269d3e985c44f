# Sourced by scripts/test: which tests can tell the difference that a change makes.

# changed_files prints the files that differ from COIR_BASE, or from where the branch left its upstream, or else from the
# last commit but one; what is not committed included.
changed_files() {
  base=${COIR_BASE:-$(git merge-base HEAD '@{upstream}' 2>/dev/null || git rev-parse --verify -q HEAD~1 || echo HEAD)}
  git rev-parse --verify -q "$base^{commit}" >/dev/null || die "no such commit: $base"
  {
    git diff --name-only "$base" --
    git ls-files --others --exclude-standard
  } | sort -u
}

# select_changed sets trees, files and match to what a change can touch: the unit tests of the rooms that changed, on this
# machine and under one sanitizer, and the tests of tests/system that drive those rooms. If that is unknown it selects
# the gate, which the rest of it is left to in any case.
select_changed() {
  changed_files >"$scratch/changed"
  say "changed: $(wc -l <"$scratch/changed") files"
  concepts='' systems='' sanitizers='' board='' gate='' files=''
  while IFS= read -r file; do
    case $file in
      *.md | LICENSE | .gitignore | .clang-format | scripts/bench | scripts/size | scripts/stacks | tests/bench/* | tests/fuzz/*) ;;
      tests/unit/*_test.cpp) of_concept "$file" ;;
      tests/unit/*/*) of_room "${file#tests/unit/}" ;;
      tests/system/coird/* | apps/coird/*) systems="$systems coird_* coirctl_control" ;;
      tests/system/cards/* | scripts/flash | scripts/flash.d/*) systems="$systems flash vm_flash" ;;
      tests/system/proxies/*) systems="$systems gateway*" ;;
      tests/system/*/*) gate=yes ;;
      tests/system/*) [ ! -x "$file" ] || files="$files $file" ;;
      tests/explore/*) concepts="$concepts|^explore" ;;
      apps/coirctl/*) systems="$systems coirctl_*" ;;
      apps/examples/*) systems="$systems examples" ;;
      port/boards/* | port/init/* | qemu/* | scripts/new-board | scripts/boards.sh) board=yes ;;
      port/arch/*) board=yes concepts="$concepts|^context" ;;
      port/os/* | port/include/*) board=yes sanitizers="$sanitizers host-asan" concepts="$concepts|^context|^beneath|^hardware|^limits|^kernel_time" ;;
      core/src/*) of_room "${file#core/src/}"; sanitizers="$sanitizers host-tsan" concepts="$concepts|^http_server\$" ;;
      core/include/*) of_concept "$file"; sanitizers="$sanitizers host-tsan" concepts="$concepts|^http_server\$" ;;
      net/src/*) of_room "${file#net/src/}"; sanitizers="$sanitizers host-asan" ;;
      net/include/*) of_concept "$file"; sanitizers="$sanitizers host-asan" ;;
      *) gate=yes ;;
    esac
  done <"$scratch/changed"

  if [ -n "$gate" ]; then
    trees=$gate_trees files=$(system_tests '*')
    return
  fi
  [ -z "$board" ] || systems="$systems boards vm_serves"
  for pattern in shape.sh $systems; do files="$files $(system_tests "$pattern")"; done
  files=$(echo "$files" | tr -s ' ' '\n' | sort -u)
  [ -n "$concepts" ] || return 0
  match=${concepts#|}
  trees=$(printf '%s\n' "$(uname -m)-linux-musl" $sanitizers | sort -ru)
  [ -z "$board" ] || trees="$trees $(default_board)"
}

# of_room PATH adds the unit tests of the room that a file lies in, and the tests of tests/system that drive it.
of_room() {
  room=${1%/*}
  for test in "tests/unit/$room"/*_test.cpp; do [ ! -f "$test" ] || of_concept "$test"; done
  case $room in
    mcp/*) systems="$systems coird_mcp coirctl_mcp mcp_*conformance" ;;
    proxy | proxy/* | fastcgi) systems="$systems gateway* fastcgi" ;;
    mqtt) systems="$systems mqtt_peers" ;;
    mdns | names) systems="$systems mdns_peers" ;;
    client) systems="$systems coirctl_fetch coirctl_servers" ;;
    tls) systems="$systems coird_tls coird_self_signed tls_certificates" ;;
    http/files) systems="$systems coird_files coird_site" ;;
    hub | stream | websocket) systems="$systems events_* websocket_peers" ;;
    http | http/*) systems="$systems coird_protocol coird_connections coird_stop" ;;
  esac
}

# of_concept FILE adds the unit tests whose names hold the file's: a test's own, or that of a header.
of_concept() {
  name=${1##*/}
  case $name in
    *_test.cpp) concepts="$concepts|^${name%_test.cpp}\$" ;;
    *) concepts="$concepts|${name%.*}" ;;
  esac
}
