"""The picture of a run: one panel for each group of figures over time, as SVG."""

from xml.sax.saxutils import escape

WIDTH, LEFT, RIGHT, HEIGHT, GAP, TOP = 900, 64, 150, 104, 34, 58
FONT = "font-family='DejaVu Sans, Verdana, sans-serif'"
COLOURS = ("#2b6ca3", "#c2571a", "#3c8031", "#8a4b9e", "#a0851d", "#666")
POINTS = 150  # in a line: more than the eye tells apart

# Title, then (name of the figure, words for it).
PANELS = (
    ("Resident memory of coird, kB", (("rss", "all of it"), ("anon", "its own"))),
    ("MemAvailable of the board, kB", (("available", "available"),)),
    ("Memory accounts, kB", (("account_total", "total"), ("account_stacks", "stacks"), ("account_http", "http"),
                             ("account_connections", "connections"), ("account_tls", "tls"), ("account_mcp", "mcp"))),
    ("Open connections and descriptors", (("connections", "connections"), ("fds", "descriptors"))),
    ("Time of an answer, ms", (("p50_ms", "half of them"), ("p99_ms", "99 %"))),
    ("Requests a second", (("ops", "kept"),)),
    ("Shed, and broken promises, in all", (("shed", "shed"), ("broken", "broken"))),
)


def text(x, y, words, size=11, weight="normal", fill="#222", anchor="start"):
    bold = f" font-weight='{weight}'" if weight != "normal" else ""
    return f"<text x='{x:.0f}' y='{y:.0f}' font-size='{size}'{bold} fill='{fill}' text-anchor='{anchor}'>{escape(words)}</text>"


def ceiling(value):
    """A round number that is not below the value."""
    step = 1.0
    while step * 10 <= value:
        step *= 10
    return next(step * each for each in (1, 1.5, 2, 3, 4, 5, 6, 8, 10) if step * each >= value)


def draw(samples, marks, title, path):
    """`marks` are (second, word) of what happened to the board. Times are in seconds, the axis in minutes."""
    samples = samples[::-(-len(samples) // POINTS)]
    end = samples[-1]["s"] or 1
    wide = WIDTH - LEFT - RIGHT
    x = lambda second: LEFT + wide * second / end
    panels = [(name, [(key, word) for key, word in lines if samples[-1].get(key) is not None]) for name, lines in PANELS]
    panels = [(name, lines) for name, lines in panels if lines]
    height = TOP + len(panels) * (HEIGHT + GAP) + 24
    parts = [
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {height}' width='{WIDTH}' height='{height}' role='img' {FONT}>",
        f"<title>{escape(title)}</title><rect width='{WIDTH}' height='{height}' fill='#fff'/>",
        text(LEFT, 24, title, 14, "bold"),
    ]
    colour_of = {word: ("#888", "#2b6ca3", "#c2571a")[number % 3] for number, word in enumerate(sorted({word for _, word in marks}))}
    for number, (word, colour) in enumerate(colour_of.items()):
        parts.append(text(LEFT + 130 * number, 42, "| " + word, 10, fill=colour))
    for number, (name, lines) in enumerate(panels):
        top = TOP + number * (HEIGHT + GAP) + 14
        most = ceiling(max([sample[key] or 0 for sample in samples for key, _ in lines] + [1]))
        y = lambda value: top + HEIGHT - HEIGHT * value / most
        parts.append(text(LEFT, top - 5, name, 11, "bold"))
        parts.append(f"<path d='M{LEFT} {top}V{top + HEIGHT}H{LEFT + wide}' stroke='#999' fill='none'/>")
        for share in (0, 0.5, 1):
            parts.append(text(LEFT - 5, y(most * share) + 4, f"{most * share:,.10g}", 9, fill="#555", anchor="end"))
            parts.append(f"<path d='M{LEFT} {y(most * share):.0f}H{LEFT + wide}' stroke='#eee'/>")
        for second, word in marks:
            parts.append(f"<path d='M{x(second):.0f} {top}v{HEIGHT}' stroke='{colour_of[word]}' stroke-width='.6' stroke-dasharray='2 3'/>")
        labels = []
        for place, (key, word) in enumerate(lines):
            points = [(x(sample["s"]), y(sample[key])) for sample in samples if sample[key] is not None]
            path_of = "L".join(f"{px:.0f} {py:.1f}" for px, py in points)
            parts.append(f"<path d='M{path_of}' stroke='{COLOURS[place]}' stroke-width='1.3' fill='none'/>")
            last = next(sample[key] for sample in reversed(samples) if sample[key] is not None)
            labels.append([y(last) + 4, f"{word} {last:,.0f}", COLOURS[place]])
        low = top + HEIGHT + 6
        for label in sorted(labels, reverse=True):
            low = min(low, label[0] + 3)  # labels do not overlap
            parts.append(text(LEFT + wide + 6, low, label[1], 10, fill=label[2]))
            low -= 13
    bottom = TOP + len(panels) * (HEIGHT + GAP)
    for tenth in range(0, 11, 2):
        parts.append(text(x(end * tenth / 10), bottom + 6, f"{end * tenth / 600:.3g} min", 9, fill="#555", anchor="middle"))
    parts.append("</svg>")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(parts) + "\n")
