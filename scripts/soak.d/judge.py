"""Judges whether a figure rises over a run of scripts/soak.

The first quarter is the warm-up: pools fill, code is read into memory. The rest is cut into twelve blocks, each of which counts
by its median, so that a burst that meets a sample decides nothing. The slope is the median of the slopes of all pairs of blocks
(Theil and Sen). A figure rises if both hold:

- the order of the blocks is no accident (Kendall's S, one-sided, 0.1 %);
- the rise over the judged time exceeds the noise: three times the deviation of the blocks from the line (1.4826 times the median
  absolute one), and at least the `floor` of the figure, below which pages of stacks and buffers come and go.
"""

from statistics import median

BLOCKS = 12
SHORTEST_S = 300  # of a run that is judged: before that the pools still fill
WARM_UP = 0.25
SIGNIFICANT = 3.09  # of the normal distribution, one-sided, 0.1 %

# The figures that must not rise (1) or fall (-1), with unit and floor.
JUDGED = (("rss", 1, "kB", 24), ("anon", 1, "kB", 24), ("available", -1, "kB", 512), ("account_total", 1, "kB", 24), ("fds", 1, "", 6),
          ("fibers", 1, "", 4))


class Slope:
    """The slope of one figure over the judged part of a run."""

    def __init__(self, name, sign, unit, floor, times, values):
        self.name, self.unit = name, unit
        judged = [(at, value) for at, value in zip(times, values) if at >= times[0] + WARM_UP * (times[-1] - times[0])]
        size = len(judged) / BLOCKS
        blocks = [judged[int(size * n):int(size * (n + 1))] for n in range(BLOCKS)]
        blocks = [block for block in blocks if block]
        at = [median(time for time, _ in block) for block in blocks]
        level = [median(value for _, value in block) for block in blocks]
        pairs = [(i, j) for j in range(len(blocks)) for i in range(j)]
        self.per_s = median((level[j] - level[i]) / (at[j] - at[i]) for i, j in pairs) if pairs else 0.0
        middle = median(value - self.per_s * time for time, value in zip(at, level))
        off = median(abs(value - self.per_s * time - middle) for time, value in zip(at, level))
        self.noise = max(floor, 3 * 1.4826 * off)
        self.first, self.last = level[0], level[-1]
        self.rise = self.per_s * (judged[-1][0] - judged[0][0])
        order = sum((level[j] > level[i]) - (level[j] < level[i]) for i, j in pairs) * sign
        n = len(blocks)
        self.z = (order - 1) / (n * (n - 1) * (2 * n + 5) / 18) ** 0.5 if order > 0 else 0.0
        self.rises = self.z > SIGNIFICANT and self.rise * sign > self.noise

    def verdict(self):
        return (f"{self.name}: {self.first:.0f} to {self.last:.0f} {self.unit}, rise {self.rise:+.1f} {self.unit}, "
                f"noise {self.noise:.1f}, z {self.z:.1f}").replace("  ", " ")


def slopes(samples):
    """A Slope for each judged figure that every sample has; none if there are too few samples to tell."""
    if len(samples) < 2 * BLOCKS:
        return []
    times = [sample["s"] for sample in samples]
    return [Slope(name, sign, unit, floor, times, [sample[name] for sample in samples]) for name, sign, unit, floor in JUDGED
            if name not in missing(samples)]


def missing(samples):
    """The judged figures that a sample lacks."""
    return [name for name, *_ in JUDGED if any(sample.get(name) is None for sample in samples)]


def long_enough(samples):
    return bool(samples) and samples[-1]["s"] >= 0.95 * SHORTEST_S


def write(samples, path):
    names = list(samples[0])
    with open(path, "w", encoding="utf-8") as file:
        file.write("\t".join(names) + "\n")
        for sample in samples:
            file.write("\t".join(f"{sample.get(name, 0):g}" if sample.get(name) is not None else "" for name in names) + "\n")


def read(path):
    with open(path, encoding="utf-8") as file:
        names = file.readline().rstrip("\n").split("\t")
        return [{name: float(value) if value else None for name, value in zip(names, line.rstrip("\n").split("\t"))} for line in file]
