#!/usr/bin/env bash
# scripts/bench newcomer: see tests/bench/README.md for what each figure means.
set -eu
case ${1:-} in '' | --quick) ;; *) echo "newcomer takes --quick or nothing" >&2; exit 2 ;; esac
# The programs need no peer but Go, which is asked for, not installed.
root=$(cd "$(dirname "$0")/../.." && pwd)
here=$root/tests/bench
. "$root/scripts/say.sh"
programs=$root/build/bench
scratch=$(mktemp -d "${TMPDIR:-/tmp}/coir-bench.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$programs"
"$root/scripts/setup" --for build

preset=$(uname -m)-linux-musl-single
say "building the programs ..."
quietly "$programs/build.log" "$root/tests/programs" --shipped "$preset" example_chat example_service

# lines_of FILE counts the lines that are code.
lines_of() {
  grep -cvE '^[[:space:]]*(//|$)' "$1"
}

# figures PREFIX NAME SOURCE PROGRAM prints what is asked of one program.
figures() {
  echo "$1$2.lines: $(lines_of "$3") lines"
  echo "$1$2.file_kb: $(($(stat -c %s "$4") / 1024)) kB"
  echo "$1$2.rss_kb: $(python3 "$here/newcomer/use.py" "$2" "$4") kB"
}

echo "json_api.lines: $(lines_of "$root/apps/examples/json_api.cpp") lines"
for name in chat service; do
  # As it is shipped: without its symbols.
  llvm-strip-19 -o "$scratch/$name" "$root/build/$preset/apps/examples/$name"
  figures '' "$name" "$root/apps/examples/$name.cpp" "$scratch/$name"
  if command -v go >/dev/null; then
    GOCACHE=$programs/go-cache CGO_ENABLED=0 quietly "$programs/build.log" \
      go build -trimpath -ldflags='-s -w' -o "$scratch/go-$name" "$here/newcomer/$name.go"
    figures go. "$name" "$here/newcomer/$name.go" "$scratch/go-$name"
  else
    for figure in lines file_kb rss_kb; do echo "go.$name.$figure: absent (Debian's golang-go is not installed)"; done
  fi
done | tee "$scratch/figures"
awk -F'[: ]+' '$2 ~ /^[0-9]+$/ { figure[$1] = $2 }
  END { for (name in figure) if (name ~ /^go\./) { ours = substr(name, 4); printf "ratio.go.%s: %.3f x\n", ours, figure[ours] / figure[name] } }' \
  "$scratch/figures" | sort
