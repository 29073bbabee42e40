"""Observer: the port that receives progress and metrics.

Invariant: an observer never changes a result. Suite: `paimon.testing.contracts.effects`.
"""

from __future__ import annotations

from typing import Protocol


class Observer(Protocol):
    """Receives progress and metrics.

    Both methods must return quickly and must not raise. They may be called from several threads.
    """

    def progress(self, activity: str, done: int, total: int | None = None) -> None:
        """Receive the progress of an activity.

        Calls of one activity arrive in ascending order of `done`. There need not be a last call with `done == total`.

        Parameters
        ----------
        activity : str
            A short text for people, such as ``"read splits"``.
        done : int
            The number of finished units (splits, files, snapshots, …).
        total : int, optional
            The number of all units. None if it is not known.
        """

    def count(self, metric: str, value: int) -> None:
        """Receive an increment of a metric.

        Parameters
        ----------
        metric : str
            A dotted name, such as ``"commit.hint_failed"``. An observer accepts names that it does not know.
        value : int
            What to add. The sum does not depend on the order of the calls.
        """
