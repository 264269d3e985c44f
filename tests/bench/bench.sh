# shellcheck shell=bash
# Sourced by the benchmarks: packages, programs, samples and what becomes of them.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
here=$root/tests/bench
. "$root/scripts/say.sh"
. "$root/scripts/packages.sh"

programs=$root/build/bench
scratch=$(mktemp -d "${TMPDIR:-/tmp}/coir-bench.XXXXXX")
samples=$scratch/samples
mkdir -p "$programs"
need_packages build bench

# build_coir PRESET TARGET ... builds programs of this tree as the preset says.
build_coir() {
  local preset=$1
  shift
  say "building $* for $preset ..."
  quietly "$programs/build.log" "$root/tests/programs" --shipped "$preset" "$@"
}

# build_host SOURCE [FLAG ...] compiles one of the programs here for this machine, once per change.
build_host() {
  local source=$1 out=$programs/${1%.*}
  shift
  if [ ! -e "$out" ] || [ "$here/$source" -nt "$out" ] || [ "$here/measure.h" -nt "$out" ]; then
    say "building $source ..."
    case $source in
      *.go) GOCACHE=$programs/go-cache quietly "$programs/build.log" go build -o "$out" "$here/$source" ;;
      *) quietly "$programs/build.log" g++ -std=c++20 -O2 -DNDEBUG -static "$here/$source" -o "$out" "$@" ;;
    esac
  fi
}

# sample NAME VALUE UNIT keeps one measurement; figures are made of them at the end.
sample() {
  printf '%s: %s %s\n' "$1" "$2" "$3" >>"$samples"
}

# print_figures PEER ... prints the median of every figure, and how ours stands beside each peer's.
print_figures() {
  awk -v peers="$*" -f "$here/figures.awk" "$samples"
}
