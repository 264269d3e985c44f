# Sourced by tests that boot the emulated board: the unit tests that start programs while they have other threads, on a kernel
# that has vfork. They are marked VM in tests/unit/CMakeLists.txt; of the gate are those that are marked CPU as well.
#
#   processes_prepare    puts the programs into $vm_dir/data
#   processes_promises

passes() {
  vm_exec --timeout 120 "/mnt/data/$1_test" >"$vm_dir/ran" 2>&1 || { tail -n 60 "$vm_dir/ran"; return 1; }
  grep '^OK (' "$vm_dir/ran"
}

processes_prepare() {
  marks='\(CPU \)*VM'
  [ "${COIR_TEST_TIER:-}" != gate ] || marks='CPU VM'
  starting=$(sed -n "s/^ *coir_test([a-z0-9_/]*\/\([a-z0-9_]*\) $marks.*/\1/p" "$root/tests/unit/CMakeLists.txt" | sort)
  # shellcheck disable=SC2046,SC2086 # one argument for each
  quietly "$vm_dir/programs.log" "$root/tests/programs" "$vm_board" $(printf '%s_test ' $starting)
  for test in $starting; do
    llvm-strip-19 "$root/build/test/$vm_board/tests/unit/${test}_test" -o "$vm_dir/data/${test}_test"
  done
}

processes_promises() {
  for test in $starting; do promise "$test passes on the board's kernel" passes "$test"; done
}
