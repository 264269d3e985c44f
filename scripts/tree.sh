# Sourced by the scripts: build trees outlive changes of the toolchain files, whose flags CMake reads only once.

# freshness TREE [OFF] prints --fresh if the tree was configured with toolchain files that have changed since, and notes
# them; also if it was configured without tests, unless OFF says that none are wanted.
freshness() {
  now=$(cat "$root"/toolchains/*.cmake "$root/toolchains/pins.txt" "$root"/toolchains/recipes/*.sh | sha256sum)
  mkdir -p "$root/$1"
  if [ "$(cat "$root/$1/toolchain.sum" 2>/dev/null)" != "$now" ] ||
    { [ -z "${2:-}" ] && grep -qs '^COIR_BUILD_TESTS:BOOL=OFF' "$root/$1/CMakeCache.txt"; }; then
    echo "$now" >"$root/$1/toolchain.sum"
    echo --fresh
  fi
}

# configure_tree NAME TREE OPTION ... configures a preset, or a board, whose options are the preset's of its target.
configure_tree() {
  configure_name=$1 configure_in=$2
  shift 2
  if is_board "$configure_name"; then
    set -- -DCOIR_BOARD="$configure_name" "$@"
    configure_name=$(board_target "$configure_name")
  fi
  cmake --preset "$configure_name" -B "$configure_in" "$@"
}

# test_tree NAME TREE UNITY OPTION ... configures a tree for tests, unless it is configured so already.
test_tree() {
  test_name=$1 test_in=$2 test_unity=$3
  shift 3
  fresh=$(freshness "$test_in")
  if [ -n "$fresh" ] || [ ! -e "$root/$test_in/build.ninja" ] ||
    ! grep -qs '^COIR_BUILD_TESTS:BOOL=ON' "$root/$test_in/CMakeCache.txt" ||
    ! grep -qs "^COIR_UNITY:BOOL=$test_unity" "$root/$test_in/CMakeCache.txt"; then
    configure_tree "$test_name" "$test_in" ${fresh:+"$fresh"} -DCOIR_BUILD_TESTS=ON "-DCOIR_UNITY=$test_unity" "$@"
  fi
}

# lock_tree TREE waits until no other script builds in that tree, and keeps others waiting until this one ends.
lock_tree() {
  mkdir -p "$root/$1"
  exec 8>"$root/$1.lock"
  flock 8
}
