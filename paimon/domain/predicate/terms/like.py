"""LIKE patterns taken apart.

Law: a pattern is a sequence of texts, any-one and any-many marks; the escape character quotes `%`, `_` and itself only.
Source: SQL's LIKE; `Like`, `StartsWith`, `EndsWith`, `Contains`.
"""

from __future__ import annotations

from enum import Enum

from paimon.domain.errors import InvalidRequest


class Wildcard(Enum):
    """What stands for other characters."""

    ONE = "_"
    MANY = "%"


def parts_of(pattern: str, escape: str | None) -> tuple[str | Wildcard, ...]:
    """Texts (never two in a row, never empty) and wildcards of a pattern; two `%` in a row are one.

    Raises
    ------
    InvalidRequest
        Where the escape character quotes something that needs no quoting, or nothing.
    """
    if escape is not None and len(escape) != 1:
        raise InvalidRequest(f"ESCAPE {escape!r} is not one character", subject=pattern, hint="such as ESCAPE '!'")
    parts: list[str | Wildcard] = []
    text: list[str] = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            text.append(_quoted(next(characters, ""), pattern, escape))
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


def _quoted(character: str, pattern: str, escape: str) -> str:
    if character not in ("%", "_", escape):
        raise InvalidRequest(
            f"LIKE {pattern!r} quotes {character!r} with ESCAPE {escape!r}", subject=pattern,
            hint="the escape character stands only before %, _ or itself",
        )
    return character


def prefix_of(parts: tuple[str | Wildcard, ...]) -> str:
    """The text that every match begins with."""
    return parts[0] if parts and isinstance(parts[0], str) else ""
