"""What is known of one option: its kind, default and whether it may change.

Law: everything else about options (defaults, checks, documentation) is computed from these values.
"""

from __future__ import annotations

from enum import Enum

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


@frozen
class Option:
    """One option.

    Parameters
    ----------
    key : str
        Its name in schema files.
    kind : Kind
        The form of its value.
    default : str, optional
        The value where none is given; None: nothing, or computed from others.
    doc : str
        What it does, in a few words.
    immutable : bool
        Whether it may no longer change once the table has a snapshot.
    choices : tuple of str
        The values of a CHOICE.
    aliases : tuple of str
        Older keys that are read where this one is absent.
    catalog : bool
        Whether it belongs to catalogs, not to tables.
    """

    key: str
    kind: Kind
    default: str | None
    doc: str
    immutable: bool = False
    choices: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    catalog: bool = False


def choice(
    key: str, choices: str, default: str | None, doc: str, immutable: bool = False, aliases: tuple[str, ...] = ()
) -> Option:
    """A CHOICE whose values are given as one text, separated by blanks."""
    return Option(key, Kind.CHOICE, default, doc, immutable, tuple(choices.split()), aliases)
