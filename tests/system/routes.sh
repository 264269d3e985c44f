#!/bin/sh
# Tables of routes that are wrong: the compiler refuses each of these, with the words that say why. http_routes_test has the
# tables that are right.
#
# everything: compiles each refused table alone
# limit: 300
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
. "$root/scripts/say.sh"
. "$root/scripts/cache.sh"
scratch=$(mktemp -d "${TMPDIR:-/tmp}/coir-routes.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
status=0
sysroot=$(cached "musl-$(uname -m)-linux-musl" musl)
libcxx=$(dirname "$(dirname "$(realpath "$(command -v clang-19)")")")/include/c++/v1

cmake -DCOIR_CONFIG_DIR="$scratch" -DCOIR_TLS=ON -DCOIR_CLIENT=ON -DCOIR_STREAMS=ON -DCOIR_SITE=ON -P "$root/toolchains/config.cmake"

cat >"$scratch/before.h" <<'END'
#include <coir/http/routes.h>
using namespace coir::http;
void none(Exchange& exchange);
void one(Exchange& exchange, std::string_view a);
void two(Exchange& exchange, std::string_view a, int b);
void around_it(Exchange& exchange, Next next);
inline auto inner() { return routes(get<"/{a}">(one)); }
END

compile() {
  clang++-19 -fsyntax-only --target="$(uname -m)-linux-musl" --sysroot="$sysroot" -std=c++23 -fno-exceptions -fno-rtti \
    -nostdinc++ -isystem "$libcxx" -D_LIBCPP_HAS_MUSL_LIBC -I"$scratch" -I"$root/port/include" -I"$root/core/include" \
    -I"$root/net/include" -include "$scratch/before.h" -x c++ "$1" >"$scratch/said" 2>&1
}

# refused WORDS CODE: the code does not compile, and the compiler's words hold these.
refused() {
  echo "$2" >"$scratch/code.cpp"
  if compile "$scratch/code.cpp"; then
    echo "not ok - refused: $2"
    status=1
  elif grep -q "$1" "$scratch/said"; then
    echo "ok - refused ($1): $2"
  else
    echo "not ok - refused for another reason than $1: $2"
    head -n 5 "$scratch/said" | sed 's/^/  /'
    status=1
  fi
}

# The frame by itself compiles: the reasons below are those that are named.
echo 'struct Gate { int times; void operator()(Exchange& exchange, Next next); };
auto all(int& seen) {
  return routes(get<"/">(none), get<"/hub">([&](Exchange&) { ++seen; }), get<"/rest/{path...}">(none),
                mount<"/in", around_it>(inner(), Gate{3}));
}
auto f(int& seen) { static auto app = around<around_it>(all(seen), Gate{4}); return answered_by(app); }' >"$scratch/code.cpp"
if compile "$scratch/code.cpp"; then
  echo "ok - a good table compiles"
else
  echo "not ok - a good table compiles"
  sed 's/^/  /' "$scratch/said"
  status=1
fi

pattern() { refused "$1" "auto t = routes(get<\"$3\">($2));"; }
pattern a_pattern_begins_with_a_slash none sensors
pattern a_pattern_begins_with_a_slash none ''
pattern a_pattern_is_written_decoded none /a%20b
pattern a_pattern_is_written_decoded none '/a?b'
pattern a_pattern_is_written_decoded none '/a b'
pattern a_pattern_has_no_empty_segment none /a//b
pattern a_pattern_has_no_empty_segment none //
pattern a_pattern_has_no_dot_segments none /a/../b
pattern a_pattern_has_no_dot_segments none /.
pattern a_parameter_is_a_whole_segment one '/a{b}'
pattern a_parameter_is_a_whole_segment one '/{b}c'
pattern a_parameter_is_a_whole_segment one '/{}'
pattern a_parameter_is_a_whole_segment one '/{...}'
pattern a_parameter_is_a_whole_segment one '/b}'
pattern a_parameter_is_a_whole_segment one '/{b'
pattern a_parameter_is_a_whole_segment one '/{b-c}'
pattern only_the_last_segment_takes_the_rest one '/{b...}/c'
pattern two_parameters_have_the_same_name two '/{b}/{b}'
pattern a_pattern_has_eight_parameters none '/{a}/{b}/{c}/{d}/{e}/{f}/{g}/{h}/{i}'
pattern another_number_of_parameters none '/{a}'
pattern another_number_of_parameters two '/{a}'
pattern another_number_of_parameters two '/{a...}'
pattern another_number_of_parameters one /

conflict() {
  refused two_routes_answer_the_same_request "auto t = routes(get<\"$2\">($1), $5<\"$4\">($3)); auto all = t.table();"
}
conflict none /a none /a get
conflict none /a none /a any
conflict one '/{a}' one '/{b}' get
conflict one '/{a}/b' one '/a/{b}' get
conflict one '/{a...}' one '/{b...}' get
conflict two '/{a}/b/{c...}' one '/a/{b...}' get
refused two_routes_answer_the_same_request \
  'auto t = routes(get<"/in/{x}">(one), mount<"/in">(inner())); auto all = t.table();'

refused 'a parameter is taken as' 'void bad(Exchange&, const char*); auto t = routes(get<"/{a}">(bad)); auto all = t.table();'
refused 'a handler takes' 'void bad(int); auto t = routes(get<"/">(bad));'
refused 'a middleware takes' 'auto t = routes(get<"/">(none, none)); auto all = t.table();'
refused 'no matching function\|cannot be used as a function\|too many arguments' \
  'auto t = routes(get<"/", none>(none)); auto all = t.table();'
refused 'a prefix has no parameters' 'auto t = routes(mount<"/{a}">(inner()));'
refused 'a prefix has no parameters' 'auto t = routes(mount<"/a/">(inner()));'
refused 'a method is a token' 'auto t = routes(method<"GET", "/a">(none));'

sed -i '1i #include <coir/http/authorization.h>' "$scratch/before.h"
refused a_realm_is_visible_text 'bool yes(std::string_view token); auto t = routes(get<"/">(none, require_bearer(yes, "a\"b")));'
refused 'a check takes' 'bool bad(int); auto t = routes(get<"/">(none, require_basic(bad)));'
exit "$status"
