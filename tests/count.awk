# Adds up the tests in one output, CTest's log or a system test's, and prints "PASSED FAILED SKIPPED".
#
# Counted are CppUTest's summaries and lines "ok - promise" and "not ok - promise" ("# SKIP why" at the end of one: not
# run). A program that ended badly without having named a failure counts as one; so does one that named no test at all,
# unless CTest says that it passed.

function settle(ended_well) {
  if (ended_well && good + bad + skip == 0) good = 1
  if (!ended_well && bad == 0) bad = 1
  passed += good; failed += bad; skipped += skip
  good = bad = skip = 0
  open_block = 0
}

/^OK \([0-9]+ tests, [0-9]+ ran/ { good += $4; skip += ignored() }
/^Errors \([0-9]+ failures, [0-9]+ tests, [0-9]+ ran/ {
  faults = substr($2, 2) + 0
  if (faults == 0) faults = 1
  if (faults > $6) faults = $6
  bad += faults; good += $6 - faults; skip += ignored()
}
function ignored(  place) {
  place = match($0, /[0-9]+ ignored/)
  return place ? substr($0, place, RLENGTH) + 0 : 0
}

/^not ok( |$)/ { bad++; next }
/^ok( |$)/ { if ($0 ~ /# SKIP/) skip++; else good++; next }

/^[0-9]+\/[0-9]+ Testing: / { ctest = 1; open_block = 1 }
/^Test Passed\.$/ && open_block { settle(1) }
/^Test Skipped\.$/ && open_block { skip++; settle(1) }
/^Test (Failed|Timeout|Not Run)/ && open_block { settle(0) }

END {
  if (ctest && open_block) settle(0)
  if (!ctest) {
    if (good + bad + skip == 0) bad = 1
    settle(exit_status == 0)
  } else if (exit_status != 0 && failed == 0) {
    failed = 1
  }
  print passed + 0, failed + 0, skipped + 0
}
