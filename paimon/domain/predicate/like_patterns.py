"""Parse LIKE patterns into texts and wildcards.

Invariant: A pattern is a sequence of texts, ``_`` and ``%``. The escape character precedes only ``%``, ``_`` or itself.
Source: `Like`, `StartsWith`, `EndsWith`, `Contains`, and LIKE in SQL.
"""

from __future__ import annotations

from enum import Enum

from paimon.domain.errors import InvalidRequest


class Wildcard(Enum):
    """A pattern character that matches other characters."""

    ONE = "_"
    MANY = "%"


def parse_like(pattern: str, escape: str | None) -> tuple[str | Wildcard, ...]:
    """Return a LIKE pattern's texts and wildcards: no text is empty, and no two texts or ``%`` are adjacent."""
    if escape is not None and len(escape) != 1:
        raise InvalidRequest(
            f"ESCAPE {escape!r} is not one character", subject=pattern, hint="write, for example, ESCAPE '!'"
        )
    parts: list[str | Wildcard] = []
    text: list[str] = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            text.append(_check_escaped(next(characters, ""), pattern, escape))
        elif character in "%_":
            if text:
                parts.append("".join(text))
                text = []
            wildcard = Wildcard(character)
            if not (wildcard is Wildcard.MANY and parts and parts[-1] is Wildcard.MANY):
                parts.append(wildcard)
        else:
            text.append(character)
    return (*parts, "".join(text)) if text else tuple(parts)


def _check_escaped(character: str, pattern: str, escape: str) -> str:
    if character not in ("%", "_", escape):
        raise InvalidRequest(
            f"LIKE pattern {pattern!r} has {character!r} after the ESCAPE character {escape!r}",
            subject=pattern,
            hint="write the escape character only before %, _ or itself",
        )
    return character


def find_prefix(parts: tuple[str | Wildcard, ...]) -> str:
    """Return the text with which every match begins; empty if the pattern begins with a wildcard."""
    return parts[0] if parts and isinstance(parts[0], str) else ""
