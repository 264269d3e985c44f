# Judges how deep fibers went, from what painted programs wrote, and prints figures: "name: value unit".
#
#   awk -v kinds='http,http accept,main' -f evaluate.awk LOG ...
#
# A line of the input is "<cpu> <program> <fiber> <class in KB> <peak in bytes> <fibers>", separated by tabs. `kinds` are
# the fibers that the library and the daemon spawn. "main" is the body of whoever calls run(), and is judged in the
# program `main_of` alone, coird if that is not given. The rest are the tests' own, which may overflow on purpose. A table
# goes to standard error. The exit status is 1 when a kind comes within 25 % of its class, or never ran, so that nothing
# is known of it.

BEGIN {
  FS = "\t"
  if (main_of == "") main_of = "coird"
  count = split(kinds, kind, ",")
  for (i = 1; i <= count; i++) wanted[kind[i]] = 1
}

NF != 6 || $4 + 0 == 0 {
  print "stacks: not a line of a stack log: " $0 > "/dev/stderr"
  bad = 1
  next
}
!($3 in wanted) || ($3 == "main" && $2 != main_of) { next }
{
  if ($5 > peak[$1, $3]) peak[$1, $3] = $5 + 0
  if ($5 > worst[$3]) worst[$3] = $5 + 0
  if (!($3 in has) || $4 + 0 < has[$3]) has[$3] = $4 + 0
  ran[$3] += $6
  cpus[$1] = 1
  if ($5 > 0.75 * $4 * 1024) near[$3, $4 + 0] = $5 > near[$3, $4 + 0] ? $5 + 0 : near[$3, $4 + 0]
}

# class_for is the smallest class, in KB, of which `bytes` leave a quarter; 0 when none does.
function class_for(bytes,  kb) {
  for (kb = 8; kb <= 64; kb *= 2) if (bytes <= 0.75 * kb * 1024) return kb
  return 0
}

function figure(name) {
  gsub(/[^A-Za-z0-9_.]/, "_", name)
  return name
}

END {
  printf "%-16s %10s %8s %8s %8s\n", "fiber", "peak", "of", "choose", "ran" > "/dev/stderr"
  for (i = 1; i <= count; i++) {
    name = kind[i]
    if (!(name in ran)) {
      print "stacks: fiber " name " never ran under the load, so that its stack is not known" > "/dev/stderr"
      bad = 1
      continue
    }
    printf "%-16s %8d B %5d KB %5d KB %8d\n", name, worst[name], has[name], class_for(worst[name]), ran[name] > "/dev/stderr"
    printf "%s.peak_bytes: %d bytes\n", figure(name), worst[name]
    printf "%s.class_kb: %d kB\n", figure(name), class_for(worst[name])
    for (cpu in cpus) if ((cpu, name) in peak) printf "%s.%s.peak_bytes: %d bytes\n", cpu, figure(name), peak[cpu, name]
  }
  for (pair in near) {
    split(pair, part, SUBSEP)
    printf "stacks: fiber %s went %d bytes deep, within 25 %% of its %d KB stack\n", part[1], near[pair], part[2] > "/dev/stderr"
    bad = 1
  }
  exit bad
}
