"""Pictures of the health of a table: the levels and sizes of its worst buckets, before and after repairs.

Invariant: a bar has the width of the logarithm of its bytes, by one scale for all bars. Text never becomes markup.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from math import log2

from attrs import frozen

from paimon.domain.maintenance.bucket_layout import BucketShape, LevelShape
from paimon.domain.maintenance.health import TableHealth
from paimon.domain.markup import format_count, format_size
from paimon.domain.text_layout import TextColumn, cut_text

_CELLS = 16
_BAR_PIXELS, _NAME_PIXELS, _STATE_PIXELS, _LINE_PIXELS, _HEAD_PIXELS = 150, 230, 330, 20, 50
_STYLE = (
    "svg{--back:#fff;--ink:#1f2328;--soft:#59636e;--before:#c75000;--after:#0072b2}"
    "@media(prefers-color-scheme:dark){svg{--back:#14181d;--ink:#e6edf3;--soft:#a3adb8;--before:#f0a04b;--after:#56b4e9}}"
    ".back{fill:var(--back)}text{font:12px sans-serif;fill:var(--ink)}.title{font-weight:bold}.soft{fill:var(--soft)}"
    ".before{fill:var(--before)}.after{fill:var(--after)}"
)


@frozen
class _Line:
    """One level of a bucket; the name is empty below the first line of a bucket."""

    name: str
    level: int
    before: LevelShape | None
    after: LevelShape | None


def _list_lines(health: TableHealth) -> Iterator[_Line]:
    """Yield a line for each level of the buckets, the lowest level first."""
    later = health.shapes_after or tuple(BucketShape(shape.name) for shape in health.shapes)
    for shape, after in zip(health.shapes, later, strict=True):
        states = [{level.level: level for level in state.levels} for state in (shape, after)]
        name = shape.name
        for level in sorted(states[0].keys() | states[1].keys()):
            yield _Line(name, level, states[0].get(level), states[1].get(level))
            name = ""


def to_picture_columns(health: TableHealth) -> list[TextColumn]:
    """Return the picture as columns of text; without repairs there is no column for the state after them."""
    lines = list(_list_lines(health))
    scale = _find_scale(lines)
    columns = [
        TextColumn("bucket", False, tuple(line.name for line in lines)),
        TextColumn("level", True, tuple(str(line.level) for line in lines)),
        TextColumn("files", False, tuple(_draw_cells(line.before, scale) for line in lines)),
    ]
    if health.shapes_after is not None:
        columns.append(TextColumn("after repairs", False, tuple(_draw_cells(line.after, scale) for line in lines)))
    return columns


def _draw_cells(level: LevelShape | None, scale: float) -> str:
    if level is None:
        return ""
    return f"{'█' * max(round(_CELLS * _measure(level) / scale), 1)} {_describe(level)}"


def _describe(level: LevelShape) -> str:
    return f"{format_count(level.files, 'file')}, {format_size(level.size_bytes)}"


def _measure(level: LevelShape) -> float:
    return log2(level.size_bytes + 2)


def _find_scale(lines: Sequence[_Line]) -> float:
    """Return the measure of the largest level, which has the longest bar."""
    return max((_measure(level) for line in lines for level in (line.before, line.after) if level), default=1.0)


def draw_svg(health: TableHealth) -> str:
    """Return the picture as SVG, with the colors of light and dark pages."""
    lines = list(_list_lines(health))
    scale, states = _find_scale(lines), 1 if health.shapes_after is None else 2
    width, height = _NAME_PIXELS + states * _STATE_PIXELS, _HEAD_PIXELS + _LINE_PIXELS * len(lines) + 10
    title = f"{health.table_name}: the levels of {len(health.shapes)} of {format_count(health.buckets, 'bucket')}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        'role="img">',
        f"<title>{escape(title)}</title><style>{_STYLE}</style>",
        '<rect class="back" width="100%" height="100%"/>',
        _draw_text(10, 20, title, "title"),
    ]
    for place, heading in enumerate(("before", "after repairs")[:states] if states == 2 else ("now",)):
        parts.append(_draw_text(_NAME_PIXELS + place * _STATE_PIXELS, 42, heading, "soft"))
    for number, line in enumerate(lines):
        y = _HEAD_PIXELS + _LINE_PIXELS * number
        parts.append(_draw_text(10, y + 12, cut_text(line.name, 28), ""))
        parts.append(_draw_text(_NAME_PIXELS - 30, y + 12, f"L{line.level}", "soft"))
        for place, (level, style) in enumerate(((line.before, "before"), (line.after, "after"))):
            if level is not None:
                parts.append(_draw_level(_NAME_PIXELS + place * _STATE_PIXELS, y, level, style, scale))
    return "\n".join([*parts, "</svg>", ""])


def _draw_level(x: float, y: float, level: LevelShape, style: str, scale: float) -> str:
    wide = max(_BAR_PIXELS * _measure(level) / scale, 2)
    bar = f'<rect class="{style}" x="{x:g}" y="{y + 2:g}" width="{wide:.0f}" height="13" rx="2"/>'
    return bar + _draw_text(x + wide + 6, y + 12, _describe(level), "soft")


def _draw_text(x: float, y: float, text: str, style: str) -> str:
    return f'<text x="{x:g}" y="{y:g}" class="{style}">{escape(text)}</text>'
