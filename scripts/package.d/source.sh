# Sourced by scripts/package: the source, by itself and in the packages that are built from it.

# lay_source FOLDER puts this tree's files of the last commit there, and below third-party what set-up has of others' sources.
lay_source() {
  "$root/scripts/setup" --for build
  mkdir -p "$1/third-party"
  git -C "$root" archive HEAD | tar -x -C "$1"
  cp -R "$(cached mbedtls mbedtls)" "$1/third-party/mbedtls"
  cp -R "$(cached yyjson yyjson)" "$1/third-party/yyjson"
  cp -R "$(cached libinih libinih)" "$1/third-party/inih"
  cp -R "$(cached picohttpparser h2o)" "$1/third-party/picohttpparser"
}

make_source() {
  lay_source "$work/coir-$version"
  pack "coir-$version" "coir-$version.tar.gz"
}

# source_into FOLDER puts the tarball of make_source there.
source_into() {
  mkdir -p "$1"
  (out=$1 && make_source) >/dev/null
}
