"""CommitGroups: the port that lets concurrent commits of one process wait for each other and go together.

Invariant: each member is taken by at most one leader. Suite: `paimon.testing.contracts.commit_groups`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

T = TypeVar("T")
TakeMembers = Callable[[int], Sequence[T]]
"""Takes the waiting members, up to a number: first that of the leader, then others in the order of calls."""


class CommitGroups(Protocol):
    """Brings the concurrent calls of several threads together, by key."""

    def run(self, key: str, member: T, lead: Callable[[TakeMembers[T]], None]) -> None:
        """Let one call lead for all that wait.

        Of the calls with one key, one leads at a time, in its own thread: the first one at once, then the one that
        waits longest. A call returns after its member was taken and the call of `lead` that took it has ended, whatever
        its end. So the member itself carries its outcome. A call within `lead`, in the same thread, leads at once and
        takes its own member.

        Parameters
        ----------
        key : str
            Calls with different keys do not know of each other.
        member : object
            What the call brings.
        lead : callable
            Works for the members that it takes, once or several times.

        Raises
        ------
        BaseException
            What `lead` raises, in the call that leads only. Stopped, in a call that waits: its member is never taken.
            An interrupt, in a call that waits: its member may have been taken.
        """
