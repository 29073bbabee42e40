"""Draw how a commit, a plan and a read grow with the number of snapshots, as SVG text."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any
from xml.sax.saxutils import escape

COLOURS = {"ours": "#d95f02", "peer-native": "#7570b3", "peer": "#66a61e"}
NAMES = {"ours": "this library", "peer-native": "pypaimon native", "peer": "pypaimon"}
TITLES = {
    "commit": "commit of one row",
    "maintained commit": "commit that compacts and expires",
    "plan": "plan of the newest state",
    "read": "read of the newest state",
}
WIDTH, HEIGHT = 240, 190
LEFT, TOP, GAP = 46, 46, 60
_STYLE = "text{font:11px sans-serif;fill:#333}.t{font-weight:bold}line{stroke:#ddd}polyline{fill:none;stroke-width:2}"

Points = Mapping[str, Sequence[tuple[int, float]]]


def draw_growth(results: Sequence[Mapping[str, Any]]) -> str:
    """Draw one curve for each library and kind of work: CPU milliseconds over snapshots, on a logarithmic axis.

    Parameters
    ----------
    results : sequence of mapping
        The results of the group ``history``.

    Returns
    -------
    str
        An SVG document.
    """
    width = LEFT + len(TITLES) * (WIDTH + GAP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{TOP + HEIGHT + 60}">',
        f'<style>{_STYLE}</style><rect width="100%" height="100%" fill="#fff"/>',
    ]
    for place, (work, title) in enumerate(TITLES.items()):
        parts.append(f'<g transform="translate({LEFT + place * (WIDTH + GAP)},{TOP})">')
        parts += [*_draw_picture(_collect_points(results, work), f"{title}, CPU ms"), "</g>"]
    return "\n".join([*parts, "</svg>", ""])


def _collect_points(results: Sequence[Mapping[str, Any]], work: str) -> Points:
    found: dict[str, list[tuple[int, float]]] = {}
    for result in results:
        if result["title"] == "long history" and work in result["figures"]:
            point = (result["snapshots"], result["figures"][work]["cpu"])
            found.setdefault(result["library"], []).append(point)
    return {library: sorted(found[library]) for library in COLOURS if library in found}


def _draw_picture(points: Points, title: str) -> list[str]:
    all_points = [point for line in points.values() for point in line]
    if not all_points:
        return [f'<text class="t" y="-24">{escape(title)}: not measured</text>']
    first, last = (math.log10(choose(x for x, _ in all_points)) for choose in (min, max))
    top = _round_up(max(y for _, y in all_points))

    def _to_pixels(x: float, y: float) -> tuple[float, float]:
        return WIDTH * (math.log10(x) - first) / max(last - first, 1e-9), HEIGHT * (1 - y / top)

    parts = [f'<text class="t" y="-24">{escape(title)}</text>']
    for step in range(5):
        y = HEIGHT * (1 - step / 4)
        parts.append(f'<line x1="0" y1="{y:.0f}" x2="{WIDTH}" y2="{y:.0f}"/>')
        parts.append(f'<text x="-6" y="{y + 4:.0f}" text-anchor="end">{top * step / 4:g}</text>')
    for power in range(math.ceil(first), math.floor(last) + 1):
        x, _ = _to_pixels(10**power, 0)
        parts.append(f'<text x="{x:.0f}" y="{HEIGHT + 16}" text-anchor="middle">{10**power:,}</text>')
    parts.append(f'<text x="{WIDTH / 2:.0f}" y="{HEIGHT + 32}" text-anchor="middle">snapshots</text>')
    for place, (library, line) in enumerate(points.items()):
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (_to_pixels(*point) for point in line))
        parts.append(f'<polyline stroke="{COLOURS[library]}" points="{path}"/>')
        parts.append(f'<text x="{place * 88}" y="-8" style="fill:{COLOURS[library]}">{escape(NAMES[library])}</text>')
    return parts


def _round_up(value: float) -> float:
    """Return the next number of the form 1, 2 or 4 times a power of ten."""
    power = 10 ** math.floor(math.log10(max(value, 1e-3)))
    return next(factor * power for factor in (1, 2, 4, 10) if value <= factor * power)
