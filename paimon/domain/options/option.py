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
    """One option.

    Parameters
    ----------
    key : str
        Its name in schema files.
    kind : Kind
        The form of its value.
    default : str, optional
        The value where none is given. None: no value, or one that is computed from other options.
    doc : str
        What it does, in a few words.
    immutable : bool
        Whether it can no longer change once the table has a snapshot.
    choices : tuple of str
        The values of a CHOICE.
    aliases : tuple of str
        Older keys that are read where this one is absent.
    catalog : bool
        Whether it belongs to catalogs, not to tables.
    effect : Effect
        What the library does with it. Of a REFUSED option, only the default is accepted from a caller; a table of
        another writer that carries the option still opens.
    reason : str
        Of a NO_EFFECT option, why its value changes nothing that a caller relies on. Of a REFUSED option, the hint of
        the error: what is missing, and what to do. Of an IMPLEMENTED option, a limit, if there is one.
    """

    key: str
    kind: Kind
    default: str | None
    doc: str
    immutable: bool = False
    choices: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    catalog: bool = False
    effect: Effect = Effect.IMPLEMENTED
    reason: str = ""


def choice_option(
    key: str,
    choices: str,
    default: str | None,
    doc: str,
    immutable: bool = False,
    **parts: Any,
) -> Option:
    """Build a CHOICE whose values are given as one text, separated by blanks.

    Parameters
    ----------
    key : str
        Its name in schema files.
    choices : str
        The allowed values.
    default : str, optional
        The value where none is given.
    doc : str
        What it does, in a few words.
    immutable : bool
        Whether it can no longer change once the table has a snapshot.
    **parts
        The fields `aliases`, `effect` and `reason` of `Option`.

    Returns
    -------
    Option
        The option.
    """
    values = tuple(choices.split())
    return Option(key, Kind.CHOICE, default, doc, immutable, values, **parts)
