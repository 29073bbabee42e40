"""The record of a history: what each actor did and when, which outcome it got, and which state it observed.

Invariant: the checks use the values of an action. The description is only for the trace. Logical times count all
events, so that two actions can be ordered, and one can see whether they overlapped.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from attrs import field, frozen

from paimon.testing.simulation.simulation_plan import Role


class Outcome(Enum):
    """What an actor knows about its work after it returned or raised."""

    DONE = "done"
    REFUSED = "refused"
    UNCERTAIN = "uncertain"
    DIED = "died"


@frozen(hash=False)
class Observation:
    """The state of the table that a reader saw.

    Parameters
    ----------
    snapshot_id : int
        The snapshot that was read; 0 for a table without a snapshot.
    versions : mapping
        The column `version` by the column `id`.
    duplicate_rows : int
        The number of rows minus the number of keys.
    tag_name : str, optional
        The tag that was read; None for the newest state.
    """

    snapshot_id: int
    versions: Mapping[int, int]
    duplicate_rows: int = 0
    tag_name: str | None = None


@frozen
class TagChange:
    """A tag that was created or replaced, with its snapshot; `snapshot_id` is None for a tag that was deleted."""

    tag_name: str
    snapshot_id: int | None = None


@frozen(hash=False)
class WorkResult:
    """The result of one piece of work: a description for the trace, and values for the checks."""

    description: str
    observation: Observation | None = None
    tag_change: TagChange | None = None


@frozen(hash=False)
class Action:
    """One piece of work of an actor.

    Parameters
    ----------
    actor : str
        The name of the actor, such as `writer-0`.
    role : Role
        The role of the actor.
    number : int
        The number of the work within the actor, from 1; for a writer, the commit identifier. A writer repeats a number
        until its outcome is `DONE`.
    outcome : Outcome
        What the actor knows afterwards.
    start_time, end_time : int
        Logical times.
    description : str
        The line of the trace.
    observation : Observation, optional
        The state that a reader saw.
    tag_change : TagChange, optional
        The tag that a tagger changed.
    """

    actor: str
    role: Role
    number: int
    outcome: Outcome
    start_time: int
    end_time: int
    description: str = ""
    observation: Observation | None = field(default=None, repr=False)
    tag_change: TagChange | None = None
