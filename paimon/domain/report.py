"""What notebooks show of a value, as data: a title, facts, and tables of texts.

A class that derives `CardDisplay` describes itself as a `Report`. `paimon.domain.markup` renders reports as HTML, and
`format_report` as text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any

import attrs
from attrs import field, frozen

from paimon.domain.errors import PaimonError
from paimon.domain.markup import (
    format_card,
    format_details,
    format_grid,
    format_lines,
    format_note,
    format_size,
    format_time,
)
from paimon.domain.text_layout import GAP, TextColumn, to_text_lines

_SUFFIXES = {"_millis": format_time, "_bytes": format_size}


@frozen
class Grid:
    """A table of texts in a report."""

    columns: tuple[TextColumn, ...]
    # a card hides the table behind this line, until the reader opens it; empty for a table that is shown
    summary: str = ""


@frozen
class Lines:
    """A text whose lines and blanks are kept, such as a plan."""

    text: str


def _leave_out_empty(facts: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    return tuple((label, text) for label, text in facts if text)


@frozen
class Report:
    """The description of a value; a part that is a string is a note."""

    title: str
    # what the value is, such as 'Snapshot'
    kind: str = ""
    # labels and texts; one without a text is left out
    facts: tuple[tuple[str, str], ...] = field(default=(), converter=_leave_out_empty)
    parts: tuple[Grid | Lines | str, ...] = ()


def format_report(report: Report) -> str:
    """Format a report as text."""
    lines = [f"{report.title} ({report.kind})" if report.kind else report.title]
    width = max((len(label) for label, _ in report.facts), default=0)
    for label, text in report.facts:
        first, *more = text.split("\n")
        lines += [f"{GAP}{label:{width}}{GAP}{first}", *(f"{GAP}{'':{width}}{GAP}{line}" for line in more)]
    for part in report.parts:
        if isinstance(part, Grid):
            lines += to_text_lines(part.columns)
        else:
            lines.append(part.text if isinstance(part, Lines) else part)
    return "\n".join(lines)


def format_report_card(report: Report) -> str:
    """Format a report as the HTML of a card."""
    return format_card(report.title, report.kind, report.facts, *map(_format_part, report.parts))


def _format_part(part: Grid | Lines | str) -> str:
    if isinstance(part, str):
        return format_note(part)
    if isinstance(part, Lines):
        return format_lines(part.text)
    grid = format_grid(part.columns)
    return format_details(part.summary, grid) if part.summary else grid


class CardDisplay:
    """Mixin: notebooks show the value as a card, by default with the fields of the attrs class."""

    __slots__ = ()

    def _report(self) -> Report:
        return report_fields(self)

    def _repr_html_(self) -> str:
        return format_report_card(self._report())


class ListingDisplay(CardDisplay):
    """Mixin: `print` shows the report as text, too."""

    __slots__ = ()

    def __str__(self) -> str:
        return format_report(self._report())


class ShownText(str):
    """A text that notebooks and the Python prompt show with its lines, such as a plan."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return format_report_card(Report("plan", parts=(Lines(self),)))


def report_fields(value: Any) -> Report:
    """Describe a value of an attrs class by its fields; what is empty, None or False is left out.

    Times and sizes are recognised by the units in their names.
    """
    name = type(value).__name__
    words = "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name).strip()
    facts: list[tuple[str, str]] = []
    for attribute in attrs.fields(type(value)):
        label, content = attribute.name, getattr(value, attribute.name)
        for suffix, form in _SUFFIXES.items():
            if label.endswith(suffix) and content is not None:
                label, content = label.removesuffix(suffix), form(content)
        facts.append((label.replace("_", " "), _format_fact(content, "_id" in attribute.name)))
    return Report(words.capitalize(), facts=facts)


def _format_fact(value: object, is_id: bool) -> str:
    if value is None or value is False:
        return ""
    if isinstance(value, int) and not isinstance(value, bool) and not is_id:
        return f"{value:,}"
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, PaimonError):
        return value.message
    if isinstance(value, tuple | list):
        separator = ", " if all(isinstance(part, str | int) for part in value) else "\n"
        return separator.join(map(str, value))
    if isinstance(value, Mapping):
        return "\n".join(f"{key}: {part}" for key, part in value.items())
    return "yes" if value is True else str(value)
