"""HTML of short reports, for notebooks: a card with a title, facts and tables.

Invariant: text never becomes markup, because this module escapes whatever a caller passes as text. Colours are shades
of the page's own, so that a card is readable on light and dark pages.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from html import escape

from paimon.domain.text_layout import TextColumn, cut_text

_LONGEST_TEXT = 300
_LONGEST_CELL = 60
_LONGEST_TITLE = 2_000
_NUMBER = ' class="number"'
_LINE = "rgba(128,128,128,.35)"
_STYLE = (
    ".paimon{font-size:13px;line-height:1.5;overflow-x:auto;padding:2px 0}"
    f".paimon .card{{display:inline-block;border:1px solid {_LINE};border-left:4px solid #0072b2;border-radius:4px;"
    "padding:8px 14px 10px;min-width:22em}"
    ".paimon .title{font-weight:600;font-size:15px}"
    ".paimon .kind,.paimon .type,.paimon .note{opacity:.65}"
    ".paimon .kind{margin-left:.7em;font-size:12px}"
    ".paimon .type{font-weight:normal;font-size:11px;display:block}"
    ".paimon .note{font-size:12px;margin-top:4px}"
    ".paimon .null{opacity:.45;font-style:italic}"
    ".paimon table{border-collapse:collapse;margin:6px 0 0;border:none;font-size:13px}"
    ".paimon td,.paimon th{padding:2px 14px 2px 0;text-align:left;vertical-align:top;border:none;background:none;"
    "max-width:44em;white-space:pre-wrap;overflow-wrap:anywhere}"
    ".paimon .facts td:first-child{opacity:.65;white-space:nowrap}"
    f".paimon .grid th{{border-bottom:1px solid {_LINE};white-space:nowrap}}"
    ".paimon .grid tr+tr td{border-top:1px solid rgba(128,128,128,.15)}"
    ".paimon .grid td,.paimon .grid th{padding:3px 18px 3px 2px;white-space:pre}"
    ".paimon pre{margin:6px 0 0;background:none;font-size:12px;line-height:1.35}"
    ".paimon .grid .number{text-align:right;font-variant-numeric:tabular-nums}"
    ".paimon details{margin-top:6px}.paimon summary{cursor:pointer;opacity:.8}"
)


def format_card(title: str, kind: str, facts: Iterable[tuple[str, str]], *parts: str) -> str:
    """Format a card as HTML of one element, with its own style.

    `kind` describes the object. `facts` are labels and texts, one line each. `parts` are HTML from this module, not
    text.
    """
    rows = "".join(f"<tr><td>{_text(label)}</td><td>{_text(value)}</td></tr>" for label, value in facts)
    body = f'<table class="facts"><tbody>{rows}</tbody></table>' if rows else ""
    head = f'<span class="title">{_text(title)}</span><span class="kind">{_text(kind)}</span>'
    return f'<div class="paimon"><style>{_STYLE}</style><div class="card">{head}{body}{"".join(parts)}</div></div>'


def format_grid(columns: Sequence[TextColumn]) -> str:
    """Format a table of texts. None is shown as a null, which looks different from every text.

    Each row is one line: a long text is cut, and the title of its cell, which a pointer shows, is whole.
    """
    head = "".join(_format_heading(column) for column in columns)
    cells = [[_format_cell(cell, column.is_numeric) for cell in column.cells] for column in columns]
    lines = "".join(f"<tr>{''.join(row)}</tr>" for row in zip(*cells, strict=True))
    return f'<table class="grid"><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>'


def _format_heading(column: TextColumn) -> str:
    type_name = f'<span class="type">{_text(column.type_name)}</span>' if column.type_name else ""
    return f"<th{_NUMBER if column.is_numeric else ''}>{_text(column.name)}{type_name}</th>"


def _format_cell(cell: str | None, is_numeric: bool) -> str:
    css = _NUMBER if is_numeric else ""
    if cell is None:
        return f'<td{css}><span class="null">null</span></td>'
    shown = cell if is_numeric else cut_text(cell.replace("\n", " "), _LONGEST_CELL)
    title = "" if shown == cell else f' title="{escape(shorten_text(cell, _LONGEST_TITLE))}"'
    return f"<td{css}{title}>{escape(shown)}</td>"


def format_lines(text: str) -> str:
    """Format a text whose lines and blanks are kept."""
    return f"<pre>{escape(text)}</pre>"


def format_note(text: str) -> str:
    """Format a line of small text."""
    return f'<div class="note">{_text(text)}</div>'


def format_details(summary: str, *parts: str) -> str:
    """Format parts that are hidden behind a line until the reader opens them."""
    return f"<details><summary>{_text(summary)}</summary>{''.join(parts)}</details>"


def format_size(count: int) -> str:
    """Format a number of bytes.

    >>> format_size(2764)
    '2.7 KiB'
    """
    size = float(count)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def format_time(millis: int) -> str:
    """Format epoch milliseconds as a time in UTC; a time outside Python's calendar is shown as its number.

    >>> format_time(0)
    '1970-01-01 00:00:00 UTC'
    """
    try:
        return f"{datetime.fromtimestamp(millis / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (OverflowError, ValueError, OSError):
        return f"{millis} ms"


def format_count(count: int, noun: str) -> str:
    """Format a count with its noun.

    >>> format_count(1, "file"), format_count(1200, "file")
    ('1 file', '1,200 files')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def shorten_text(text: str, length: int = _LONGEST_TEXT) -> str:
    """Cut a text to at most `length` characters; a cut text ends with an ellipsis."""
    return text if len(text) <= length else text[: length - 1] + "…"


def _text(text: str) -> str:
    return escape(shorten_text(text))
