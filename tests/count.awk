# Adds up the tests of one run, `ctest --verbose` or a system test, and prints "PASSED FAILED SKIPPED". The output
# of a program that did not pass goes to standard error.
#
# A test that CTest ran twice counts as it ended the second time.
#
# Counted are CppUTest's summaries and lines "ok - promise" and "not ok - promise" ("# SKIP why" at the end of one: not
# run). A program that ended badly without having named a failure counts as one failure; one that ended well without
# having named a test counts as one passed test under CTest, and as a failure elsewhere.
#
#   awk -v exit_status=N -f count.awk LOG

# take notes a line that program `id` printed.
function take(id, text,  word, faults, ran) {
  line[id, ++lines[id]] = text
  split(text, word, " ")
  if (text ~ /^not ok( |$)/) bad[id]++
  else if (text ~ /^ok .*# SKIP/) skip[id]++
  else if (text ~ /^ok( |$)/) good[id]++
  else if (text ~ /^OK \([0-9]+ tests, [0-9]+ ran/) {
    good[id] += word[4]
    skip[id] += ignored(text)
  } else if (text ~ /^Errors \([0-9]+ failures, [0-9]+ tests, [0-9]+ ran/) {
    faults = substr(word[2], 2) + 0
    ran = word[6] + 0
    if (faults > ran) faults = ran
    bad[id] += faults
    good[id] += ran - faults
    skip[id] += ignored(text)
  }
}

function ignored(text) {
  return match(text, /[0-9]+ ignored/) ? substr(text, RSTART, RLENGTH) + 0 : 0
}

# sum_up closes the account of program `id`.
function sum_up(id, name, ended_well, silence_is_good) {
  if (ended_well && good[id] + bad[id] + skip[id] == 0) {
    if (silence_is_good) good[id] = 1
    else bad[id] = 1
  }
  if (!ended_well && bad[id] + 0 == 0) bad[id] = 1
  passed += good[id] - ended_good[id]
  failed += bad[id] - ended_bad[id]
  skipped += skip[id] - ended_skip[id]
  ended_good[id] = good[id]
  ended_bad[id] = bad[id]
  ended_skip[id] = skip[id]
  if (bad[id] + 0 > 0) show(id, name)
  good[id] = bad[id] = skip[id] = lines[id] = 0
}

# show prints what a program that failed printed: a line that repeats once, and of much the beginning and the end.
function show(id, name,  i, n, kept, times) {
  print "      | " name > "/dev/stderr"
  for (i = 1; i <= lines[id]; i += times) {
    for (times = 1; i + times <= lines[id] && line[id, i + times] == line[id, i]; times++) ;
    # If there is much, the tests that passed are left out.
    if (lines[id] > 120 && line[id, i] ~ /^ok( |$)/) continue
    kept[++n] = line[id, i]
    if (times > 1) kept[++n] = "(" times " times)"
  }
  for (i = 1; i <= n; i++) {
    if (n > 120 && i == 41) {
      print "      |   ... and " n - 120 " lines more ..." > "/dev/stderr"
      i = n - 79
    }
    print "      |   " kept[i] > "/dev/stderr"
  }
}

# "7: text" is what CTest's seventh test printed; "3/9 Test #7: name ....***Failed  0.1 sec" is what became of it.
/^[0-9]+: / {
  id = $1 + 0
  take(id, substr($0, index($0, ": ") + 2))
  next
}
/^ *[0-9]+\/[0-9]+ Test +#[0-9]+: / {
  ctest = 1
  match($0, /#[0-9]+: /)
  id = substr($0, RSTART + 1) + 0
  if (/\*\*\*Skipped /) skipped++
  else sum_up(id, substr($0, RSTART + RLENGTH), / Passed +[0-9.]+ sec/, 1)
  next
}
/^No tests were found/ { ctest = 1 }
!ctest { take("other", $0) }

END {
  if (!ctest) sum_up("other", "exit status " exit_status, exit_status == 0, 0)
  else if (exit_status != 0 && failed == 0) failed = 1
  print passed + 0, failed + 0, skipped + 0
}
