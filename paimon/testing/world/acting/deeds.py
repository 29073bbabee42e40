"""What was done in a history, by whom and when, what was told of it, and what was seen.

Law: judged by values; the text of a deed is for the story alone. Moments count everything that happens, so that of two
deeds one can say which came first, and whether they met.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from attrs import field, frozen

from paimon.testing.world.plan import Role


class Told(Enum):
    """What an actor was told of its work."""

    DONE = "done"
    REFUSED = "refused"
    UNCERTAIN = "uncertain"
    DIED = "died"


@frozen(hash=False)
class Seen:
    """What a reader saw.

    Parameters
    ----------
    snapshot : int
        The snapshot that was read; 0 for a table without one.
    rows : mapping
        Versions by key.
    doubled : int
        Rows beyond one a key.
    tag : str, optional
        The tag that was read, rather than the newest state.
    """

    snapshot: int
    rows: Mapping[int, int]
    doubled: int = 0
    tag: str | None = None


@frozen
class Named:
    """A tag that was made to name a snapshot, or is meant to name none any more."""

    tag: str
    snapshot: int | None = None


@frozen(hash=False)
class Done:
    """What a piece of work answers: for the story, and for the judgement."""

    text: str
    seen: Seen | None = None
    named: Named | None = None


@frozen(hash=False)
class Deed:
    """One piece of work of an actor.

    Parameters
    ----------
    number : int
        Of an actor's works, from 1; of a writer, its commit. A writer does one again until it is told that it is done.
    began, ended : int
        Moments.
    """

    actor: str
    role: Role
    number: int
    told: Told
    began: int
    ended: int
    text: str = ""
    seen: Seen | None = field(default=None, repr=False)
    named: Named | None = None
