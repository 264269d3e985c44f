#!/bin/sh
# The shape of the tree: what may stand at its top, which layer may include which, what must not be written in it.
#
# limit: 240
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
cd "$root"
scratch=$(mktemp -d "${TMPDIR:-/tmp}/coir-shape.XXXXXX")
found=$scratch/found
trap 'rm -rf "$scratch"' EXIT
status=0

# none TEXT: the promise holds if nothing was written to $found.
none() {
  if [ -s "$found" ]; then
    echo "not ok - $1"
    sed 's/^/  /' "$found"
    status=1
  else
    echo "ok - $1"
  fi
}

# sources DIR ... prints the C, C++ and assembly files below.
sources() {
  find "$@" \( -name '*.h' -o -name '*.cpp' -o -name '*.c' -o -name '*.S' \) | sort
}

# includes DIR ... prints "FILE: HEADER" for each coir header named in angle brackets.
includes() {
  sources "$@" | xargs -r grep -HoE '^ *# *include *<coir/[^>]*>' | sed -E 's/:? *# *include *</: /; s/::/:/; s/>$//'
}

wanted='CMakeLists.txt CMakePresets.json CHANGELOG.md LICENSE README.md apps core net port qemu scripts tests toolchains'
for name in *; do
  case " $wanted build " in *" $name "*) ;; *) echo "$name is not wanted" ;; esac
done >"$found"
for name in $wanted; do [ -e "$name" ] || echo "$name is missing"; done >>"$found"
none "the top level holds exactly what the design names"

includes port | grep -vE ': coir/(port/|config\.h$)' >"$found" || true
none "port includes no layer above it"
includes core | grep -E ': coir/(net|http)/' >"$found" || true
none "core includes no layer above it"

# A private header is named in quotes, and found beside the file or in its own layer.
for layer in port core net apps; do
  sources $layer | xargs -r grep -HoE '^ *# *include *"[^"]+"' | sed -E 's/: *# *include *"/ /; s/"$//' |
    while read -r file header; do
      case $header in
        *..*) ;;
        *) [ ! -e "${file%/*}/$header" ] && [ ! -e "$layer/src/$header" ] || continue ;;
      esac
      for base in "${file%/*}" "$layer/src"; do
        [ -e "$base/$header" ] || continue
        case $(realpath --relative-to=. "$base/$header") in "$layer"/*) continue 2 ;; esac
      done
      # A board's headers are named by their role; the build writes them from board.conf and pins.txt.
      case $header in board.h | board_pins.h) continue ;; esac
      echo "$file: $header"
    done
done >"$found"
none "a private header is included from its own layer only"

# Inside a layer an include points down the floors, or stays in its room: the lowest first.
core_rooms='base memory fiber schedule wait scope sync blocking process inspect run isolate serial'
net_rooms='base socket datagram names sntp tls/library tls json http/text http/message websocket http/connection http/session http/files stream hub http/content http/routing http/concurrent/queues http/concurrent http/serial http outbound client mdns mqtt proxy/upstreams proxy proxy/routes fastcgi mcp/message mcp/tools mcp/access mcp/sessions mcp/server mcp/client/wire mcp/client mcp/fan_out mcp/gateway'
floors() {
  layer=$1
  shift
  (cd "$layer/src" && sources . | xargs -r grep -HoE '^ *# *include *"[^"]+"') | sed -E 's,^\./,,; s/: *# *include *"/ /; s/"$//' |
    awk -v layer="$layer" -v rooms="$*" '
      BEGIN { count = split(rooms, names, " "); for (i = 1; i <= count; ++i) floor[names[i]] = i }
      function room(path) { sub("/[^/]*$", "", path); return path }
      { from = room($1); to = room($2) }
      !(from in floor) { print layer "/src/" $1 ": " from " is no room" }
      (to in floor) && floor[to] > floor[from] { print layer "/src/" $1 ": " $2 }'
}
{
  # shellcheck disable=SC2086 # words
  floors core $core_rooms
  # shellcheck disable=SC2086
  floors net $net_rooms
} >"$found"
none "an include climbs no floor inside a layer"

# A public header is of the room whose source of that name includes it. `homes` names the rooms of the others: the lowest one
# that defines a part of it. Three headers are exempt: budget.h and fatal.h are about waiting, and the scheduler calls them;
# coir/error.h includes errno.h. `known` are the rooms that climb for the plain types of a header: the reactor keeps
# RestingWait, rooms of http read ServerOptions and count in ServerCounters, sessions of MCP keep a Principal and kinds of items.
homes='coir/atomic.h=base coir/cancel_scope.h=wait coir/crash.h=inspect coir/descriptor.h=schedule coir/detail/descriptor_node.h=schedule coir/detail/fiber_name.h=fiber coir/detail/intrusive_list.h=base coir/detail/wait_list.h=wait coir/heartbeat.h=inspect coir/inspect.h=inspect coir/message.h=isolate coir/program.h=run coir/resting_wait.h=wait coir/run_options.h=schedule coir/serial.h=serial coir/sleep.h=wait coir/stack_size.h=base coir/trace.h=schedule
coir/events.h=stream coir/http/detail/content_coding.h=client coir/http/detail/duration_histogram.h=http coir/http/detail/upstream_server.h=proxy/upstreams coir/http/fastcgi.h=fastcgi coir/http/wire/representation.h=http/message coir/http/wire/server_event.h=stream coir/mcp.h=mcp/server coir/mcp/access.h=mcp/access coir/mcp/detail/account.h=mcp/message coir/mcp/detail/answer.h=mcp/client/wire coir/mcp/detail/tool.h=mcp/tools coir/mqtt.h=mqtt coir/net/certificates.h=tls coir/tcp.h=socket coir/tls.h=tls/library coir/websocket.h=websocket'
apart='coir/budget.h coir/detail/fatal.h coir/errno.h'
known='schedule=coir/resting_wait.h http/connection=coir/http/server.h http/session=coir/http/server.h http/concurrent/queues=coir/http/server.h http/concurrent=coir/http/server.h http/serial=coir/http/server.h mcp/sessions=coir/mcp.h'
public_floors() {
  layer=$1
  shift
  (cd "$layer/src" && sources . | xargs -r grep -HoE '^ *# *include *<coir/[^>]+') | sed -E 's,^\./,,; s/: *# *include *</ /' |
    awk -v layer="$layer" -v rooms="$*" -v homes="$(echo "$homes" | tr '\n' ' ')" -v apart="$apart" -v known="$known" '
      BEGIN {
        count = split(rooms, names, " "); for (i = 1; i <= count; ++i) floor[names[i]] = i
        count = split(apart, names, " "); for (i = 1; i <= count; ++i) skip[names[i]] = 1
        count = split(known, names, " "); for (i = 1; i <= count; ++i) climbs[names[i]] = 1
        count = split(homes, names, " "); for (i = 1; i <= count; ++i) { split(names[i], pair, "="); home[pair[1]] = pair[2] }
      }
      function room(path) { sub("/[^/]*$", "", path); return path }
      function name(path) { sub(".*/", "", path); sub("\\.[a-z]*$", "", path); return path }
      {
        if ($1 ~ "\\.cpp$" && name($1) == name($2)) home[$2] = room($1)
        file[++lines] = $1
        header[lines] = $2
      }
      function exists(header) { return (getline line < (layer "/include/" header)) > 0 }
      END {
        for (i = 1; i <= lines; ++i) {
          if (header[i] in skip) continue
          to = home[header[i]]
          if (to in floor) {
            if (floor[to] <= floor[room(file[i])] || (room(file[i]) "=" header[i]) in climbs) continue
            print layer "/src/" file[i] ": <" header[i] "> of " to
          } else if (exists(header[i])) {
            print layer "/src/" file[i] ": <" header[i] "> has no home"
          }
          close(layer "/include/" header[i])
        }
      }'
}
{
  # shellcheck disable=SC2086 # words
  public_floors core $core_rooms
  # shellcheck disable=SC2086
  public_floors net $net_rooms
} >"$found"
none "an include of a public header climbs no floor either"

find net/src -type f ! -name README.md | sed 's,/[^/]*$,,' | sort | uniq -c | awk '$1 > 20 { print $2 ": " $1 " files" }' >"$found"
none "a room of net has at most 20 files"

# Unit tests lie in the room of the code that they test.
find tests/unit -name '*_test.cpp' | sort | while read -r file; do
  room=$(dirname "${file#tests/unit/}")
  case " port $core_rooms cxx $net_rooms " in *" $room "*) ;; *) echo "$file: $room is no room of port, core or net" ;; esac
done >"$found"
none "a unit test lies in a room that exists"

# A source has the header of its name, private or public, in its own layer, or a header that names it.
{
  find port core net -name '*.h'
  grep -rohE '[A-Za-z0-9_]+\.cpp' port core net --include='*.h' | sed 's,^,named ,'
  find port core net -name '*.cpp' | sort
} | awk '
  function name(path) { sub(".*/", "", path); sub("\\.[a-z]*$", "", path); return path }
  function layer(path) { sub("/.*", "", path); return path }
  $1 == "named" { named[name($2)] = 1; next }
  /\.h$/ { has[layer($0), name($0)] = 1; next }
  !((layer($0), name($0)) in has) && !(name($0) in named) { print $0 ": no " name($0) ".h, and no header names " name($0) ".cpp" }' >"$found"
none "a source has the header of its name, or a header names it"

find port core net apps \( -name '*.cpp' -o -name '*.h' -o -name '*.c' -o -name '*.S' \) -exec awk 'END { if (NR > 300) print FILENAME ": " NR }' {} \; >"$found"
none "no source file has more than 300 lines"

# No test builds the fuzzers: a file that has moved is noticed here.
sed -n 's,.*"${coir_http}/\([^"]*\)".*,net/src/http/\1,p; s,.*"${PROJECT_SOURCE_DIR}/\([^"]*\.c[p]*\)".*,\1,p' tests/fuzz/CMakeLists.txt |
  while read -r file; do [ -e "$file" ] || echo "tests/fuzz/CMakeLists.txt: no $file"; done >"$found"
none "the fuzzers are built of files that exist"

# Headers that a user never includes are in no table: coir/detail/, and the part of context.h that each CPU has.
for layer in port core net; do
  sources $layer/include | sed "s,^$layer/include/,," | grep -vE '/(detail|arch)/' | while read -r header; do
    grep -qE "^\\|.*\`$header\`" $layer/README.md || echo "$layer/README.md: no table has $header"
  done
done >"$found"
none "each public header stands in the table of its layer's README"

find net/include -name '*.h' ! -path '*/detail/*' | awk 'END { if (NR > 45) print NR " headers" }' >"$found"
none "net has at most 45 public headers"

sources port/include core/include net/include | xargs -r grep -HnE '^ *# *include *"' >"$found" || true
none "a public header includes public headers only"

scripts/pictures --check >"$found" 2>&1 || true
none "the pictures are as scripts/pictures draws them"

# A sentence begins with its subject (the kernel's recipes are left alone: their text decides what the cache holds; questions
# that are quoted, and headings, are none; a type is named Where).
words='What|Who|Whom|Whose|Whoever|Whatever|Of|Nobody|Where|That which'
{
  grep -rnE "(^|[].:;!?)\`\"*] +|// +|^#+ *|^ *[*-] +|^ +|\\| |\"\"\"|[ (][*(\"])($words)( |$)" \
    port core net apps scripts qemu tests toolchains README.md CHANGELOG.md CMakeLists.txt
  grep -rniE "promise[( ]\"($words) " tests apps scripts
} | grep -vE '^qemu/kernel|\?"|^[^:]*\.md:[0-9]+:##|Where where' >"$found" || true
none "no sentence begins with What, Who, Whom, Whose, Whoever, Whatever, Of, Nobody or Where"

# Each public header compiles alone, as this machine's CPU, with the flags that users of coir need and with the switches
# of a build that has all. A folder below the tree's own, that ccache knows it again in another clone.
. scripts/say.sh
. scripts/cache.sh
alone=build/shape
rm -rf $alone
mkdir -p $alone/deps
cmake -DCOIR_CONFIG_DIR="$root/$alone" -DCOIR_TLS=ON -DCOIR_JSON=ON -DCOIR_CLIENT=ON -DCOIR_MDNS=ON -DCOIR_MQTT=ON -DCOIR_GZIP=ON -DCOIR_STREAMS=ON -DCOIR_PROXY=ON -DCOIR_FASTCGI=ON -DCOIR_MCP=ON -DCOIR_SITE=ON -DCOIR_DASHBOARD=ON -P toolchains/config.cmake
sysroot=$(cached "musl-$(uname -m)-linux-musl" musl)
libcxx=$(dirname "$(dirname "$(realpath "$(command -v clang-19)")")")/include/c++/v1
launcher=
! command -v ccache >/dev/null || launcher="toolchains/ccache.sh '$root'"
# compile HEADER leaves what is wrong with it, and in the folder deps what it includes.
cat >$alone/compile <<END
name=\$(echo "\$1" | tr / -)
$launcher clang++-19 -c --target="$(uname -m)-linux-musl" --sysroot="$sysroot" -std=c++23 -fno-exceptions -fno-rtti \\
  -nostdinc++ -isystem "$libcxx" -D_LIBCPP_HAS_MUSL_LIBC -I$alone -Iport/include -Icore/include -Inet/include \\
  -Wundef -Werror -Wno-pragma-once-outside-header -MD -MF "$alone/deps/\$name" -o "$alone/\$name.o" -x c++ "\$1" 2>&1 | head -n 5
END
find port/include core/include net/include -name '*.h' ! -path '*/arch/*' | xargs -P "$(nproc)" -n 1 sh $alone/compile >"$found"
none "each public header is usable alone"

# scripts/bench headers measures them. Those named here take longer to parse than all that coir wants of them.
# message_containers.h marshals these very containers; only programs that send them include it.
sources port/include core/include net/include | grep -v -e '/detail/' -e '^core/include/coir/message_containers\.h$' |
  xargs -r grep -HnE '^ *# *include *<(algorithm|chrono|filesystem|format|functional|iostream|map|memory|ranges|regex|string|vector)>' >"$found" || true
none "no public header includes one of the C++ library's heavy ones"

# A function that can wait takes a deadline; errno after it is read as coir/errno.h says.
find core/include net/include -name '*.h' ! -name deadline.h | sort | while read -r header; do
  tr ' ' '\n' <"$alone/deps/$(echo "$header" | tr / -)" |
    awk -v header="$header" '/coir\/deadline.h$/ { waits = 1 } /coir\/errno.h$/ { mended = 1 }
      END { if (waits && !mended) print header }'
done >"$found"
none "a header of what can wait brings the errno that survives waits"

grep -rnE '\b(v?[sf]?n?printf|fputs|puts|fwrite)\(' apps/coird >"$found" || true
none "coird writes without stdio: printf wants more stack than a fiber has"

for header in $(find port core net apps -name '*.h'); do
  grep -qE '^#(pragma once|ifndef COIR_)' "$header" || echo "$header"
done >"$found"
none "each header guards itself against being read twice"

# coir/config.h defines every switch. To ask whether one is defined is right only where that header is included, and there
# it is always so; -Wundef notices a switch that is tested by its value without the header.
switches=$(sed -nE 's/^#cmakedefine01 //p' port/config.h.in | tr '\n' '|')
sources port core net apps tests | xargs grep -HnE "(defined *\(? *|^ *# *ifn?def +)(${switches}COIR_ASAN|COIR_TSAN)\>" >"$found" || true
none "a switch of the build is tested by its value"

# The words are split so that this file is not found by itself.
grep -rnE "TO""DO|FIX""ME" --include='*' port core net apps tests qemu scripts toolchains CMakeLists.txt >"$found" || true
none "nothing is left for later in a comment"

grep -rnE '(https?|ftp)://[^ /]*(debian|ubuntu|kernel\.org|github|gitlab)' \
  port core net apps tests qemu scripts toolchains CMakeLists.txt | grep -v 'copyright:1:Format: ' >"$found" || true
none "no address of a registry or an archive is written down"
exit "$status"
