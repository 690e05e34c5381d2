"""The picture of tools/scale: the rate of R ranks over R times that of one, for each work that grows with them."""

import itertools

WIDTH, HEIGHT, LEFT, TOP, BOTTOM, RIGHT = 800, 420, 70, 50, 50, 190
COLOURS = {"dlrm/weak": "#0969da", "fixed/weak": "#1a7f37", "zipf/weak": "#bf8700", "backend/weak": "#8250df"}
NAMES = {
    "dlrm/weak": "DLRMv4",
    "fixed/weak": "ranking, fixed lengths",
    "zipf/weak": "ranking, zipf lengths",
    "backend/weak": "table behind a cache",
}
STYLE = "text { font: 14px system-ui, sans-serif; fill: #1f2328 } .grid { stroke: #d1d9e0 }"


def efficiencies(result):
    """By group, by ranks: samples a second over those of one rank and the number of ranks."""
    rates = {}
    for entry in result["cases"].values():
        if entry.get("group") in NAMES and "samples_per_s" in entry:
            rates.setdefault(entry["group"], {})[entry["ranks"]] = entry["samples_per_s"]
    return {
        group: {ranks: rate / ranks / of_group[1] for ranks, rate in sorted(of_group.items())}
        for group, of_group in rates.items()
        if 1 in of_group
    }


def draw(result):
    groups = efficiencies(result)
    most = max([2, *(ranks for of_group in groups.values() for ranks in of_group)])
    doublings = most.bit_length() - 1
    least = min([0.8, *(value for of_group in groups.values() for value in of_group.values())])
    least = int(least * 10) / 10

    def x(ranks):
        return LEFT + (WIDTH - LEFT - RIGHT) * (ranks.bit_length() - 1) / doublings

    def y(value):
        return TOP + (HEIGHT - TOP - BOTTOM) * (1.05 - value) / (1.05 - least)

    label = "Samples a second of several ranks over as many times those of one; one host only"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">',
        f"  <style>{STYLE}</style>",
        f'  <rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        f'  <text x="{LEFT}" y="28">{label}</text>',
    ]
    for tenth in range(round(least * 10), 11):
        lines.append(
            f'  <line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(tenth / 10):.1f}" y2="{y(tenth / 10):.1f}"/>'
        )
        lines.append(f'  <text x="{LEFT - 52}" y="{y(tenth / 10) + 5:.1f}">{10 * tenth} %</text>')
    for doubling in range(doublings + 1):
        lines.append(f'  <text x="{x(1 << doubling) - 4:.1f}" y="{HEIGHT - 20}">{1 << doubling}</text>')
    lines.append(f'  <text x="{WIDTH - RIGHT + 14}" y="{HEIGHT - 20}">ranks</text>')
    ends = []
    for group, points in groups.items():
        path = " ".join(f"{x(ranks):.1f},{y(value):.1f}" for ranks, value in points.items())
        colour = COLOURS[group]
        lines.append(f'  <polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        for ranks, value in points.items():
            lines.append(f'  <circle cx="{x(ranks):.1f}" cy="{y(value):.1f}" r="4" fill="{colour}"/>')
        last = list(points)[-1]
        ends.append([y(points[last]), x(last), f"{NAMES[group]} {100 * points[last]:.1f} %", colour])
    ends.sort()
    for before, after in itertools.pairwise(ends):  # names do not cover each other
        after[0] = max(after[0], before[0] + 18)
    for height, left, text, colour in ends:
        lines.append(f'  <text x="{left + 12:.1f}" y="{height + 5:.1f}" style="fill: {colour}">{text}</text>')
    return "\n".join([*lines, "</svg>"]) + "\n"
