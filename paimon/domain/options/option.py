"""The description of one option: its kind, its default, and whether it may change.

Invariant: everything else about options (defaults, checks, documentation) is computed from these values.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from attrs import frozen


class Kind(Enum):
    """The form of an option's value."""

    TEXT = "text"
    BOOL = "true or false"
    INT = "32-bit number"
    LONG = "64-bit number"
    DOUBLE = "number"
    MEMORY = "size"
    DURATION = "duration"
    CHOICE = "choice"
    NAMES = "comma-separated names"
    LEVELS = "values by level"
    STATS_MODE = "statistics mode"
    STATS_MODE_LEVELS = "statistics modes by level"


class Effect(Enum):
    """What this library does with an option."""

    IMPLEMENTED = "implemented"
    REFUSED = "refused"
    NO_EFFECT = "no effect"


@frozen
class Option:
    """One option."""

    key: str
    kind: Kind
    # None for no value, or for one that is computed from other options
    default: str | None
    doc: str
    # the option cannot change once the table has a snapshot
    immutable: bool = False
    choices: tuple[str, ...] = ()
    # older keys that are read if this one is absent
    aliases: tuple[str, ...] = ()
    # the option belongs to catalogs, not to tables
    catalog: bool = False
    # what the library does with the option. Of a REFUSED option, callers may give only the default; a table of another
    # writer that has the option still opens
    effect: Effect = Effect.IMPLEMENTED
    # of a NO_EFFECT option, why its value changes nothing that a caller relies on; of a REFUSED option, the hint of the
    # error; of an IMPLEMENTED option, a limit, if there is one
    reason: str = ""


def choice_option(
    key: str,
    choices: str,
    default: str | None,
    doc: str,
    immutable: bool = False,
    **parts: Any,
) -> Option:
    """Build a CHOICE option from values in one text; `parts` are its `aliases`, `effect` and `reason`."""
    values = tuple(choices.split())
    return Option(key, Kind.CHOICE, default, doc, immutable, values, **parts)
