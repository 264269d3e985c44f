# Sourced by tests that boot the emulated board: a real kernel enforces the denials of isolates. These are the unit tests that
# skip under QEMU's user mode.
#
#   isolates_prepare    puts the programs into $vm_dir/data
#   isolates_promises

# built TREE: the tests of that tree, in a folder of its name. A test's program has that test alone by its name.
built() {
  quietly "$vm_dir/programs.log" "$root/tests/programs" "$1" isolate_deny_test isolate_handle_test
  mkdir "$vm_dir/data/$1"
  for test in deny handle; do cp "$root/build/test/$1/tests/unit/isolate_${test}_test" "$vm_dir/data/$1"; done
}

# enforces TREE/TEST: all tests ran, none was skipped for want of a filter.
enforces() {
  vm_exec --timeout 120 "/mnt/data/$1" >"$vm_dir/ran" || { cat "$vm_dir/ran"; return 1; }
  cat "$vm_dir/ran"
  grep -q '^OK (' "$vm_dir/ran" && ! grep -q 'SKIP.*no seccomp' "$vm_dir/ran"
}

isolates_prepare() {
  built "$vm_board"
  # The gate has no tree of the CPU's other builds.
  own_run=riscv64-linux-musl
  [ "${COIR_TEST_TIER:-}" != gate ] || own_run=''
  [ -z "$own_run" ] || built "$own_run"
}

isolates_promises() {
  promise "the board's kernel denies what an isolate may not do" enforces "$vm_board"/isolate_deny_test
  [ -z "$own_run" ] || promise "and so is an isolate with a run of its own" enforces "$own_run/isolate_deny_test"
  promise "an isolate that is denied isolates starts none on the board's kernel" enforces "$vm_board"/isolate_handle_test
  [ -z "$own_run" ] || promise "nor does one with a run of its own" enforces "$own_run/isolate_handle_test"
}
