# Reads samples ("name: value unit", a name as often as there were rounds) and prints figures: the median of each name in
# the order in which the names first came, then "ratio.PEER.NAME", ours divided by theirs, for each of the `peers` and for
# the best of them. A peer called "floor" is a bound, not a rival, and is no candidate for the best.

{
  name = substr($1, 1, length($1) - 1)
  if (!(name in count)) order[++names] = name
  values[name, ++count[name]] = $2
  unit[name] = $3
}

function median(name,    n, i, j, v, sorted) {
  n = count[name]
  for (i = 1; i <= n; ++i) {
    v = values[name, i] + 0
    for (j = i - 1; j >= 1 && sorted[j] > v; --j) sorted[j + 1] = sorted[j]
    sorted[j + 1] = v
  }
  return n % 2 ? sorted[(n + 1) / 2] : (sorted[n / 2] + sorted[n / 2 + 1]) / 2
}

function show(v) {
  return v == int(v) ? sprintf("%.0f", v) : sprintf("%.2f", v)
}

# More is better of rates and capacities, less of everything else.
function better(name, a, b) {
  return name ~ /(^|\.)rps_|_per_(cpu_)?s$|_max$/ ? a > b : a < b
}

END {
  peer_count = split(peers, peer, " ")
  for (i = 1; i <= names; ++i) {
    figure[order[i]] = median(order[i])
    print order[i] ": " show(figure[order[i]]) " " unit[order[i]]
  }
  for (i = 1; i <= names; ++i) {
    name = order[i]
    best = ""
    for (p = 1; p <= peer_count; ++p) {
      theirs = peer[p] "." name
      if (!(theirs in figure)) continue
      if (figure[theirs] > 0) printf "ratio.%s: %.3f x\n", theirs, figure[name] / figure[theirs]
      if (peer[p] != "floor" && (best == "" || better(name, figure[theirs], figure[best]))) best = theirs
    }
    if (best != "" && figure[best] > 0) printf "ratio.best_peer.%s: %.3f x\n", name, figure[name] / figure[best]
  }
}
