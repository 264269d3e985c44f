# Shows what failed in one output: of CTest's log the programs that did not pass, of a system test all it printed; the
# first lines of each, where the reason stands.

function show(  i) {
  for (i = 1; i <= lines; i++) {
    if (i > 100) { print "      | ... " lines - i + 1 " lines more in " FILENAME; break }
    print "      | " line[i]
  }
  lines = 0
}

/^[0-9]+\/[0-9]+ Testing: / { ctest = 1; lines = 0 }
ctest && /^(Command:|Directory:|Output:|-----|[0-9]+\/[0-9]+ Test:|".*(start|end) time:)/ { next }
{ line[++lines] = $0 }
ctest && /^Test Passed\.$/ { lines = 0 }
ctest && /^Test (Failed|Timeout|Not Run)/ { show() }
END { if (!ctest) show() }
