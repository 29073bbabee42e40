"""Decide how long a committer waits after a lost race, and when it stops.

Invariant: The wait doubles from the minimum to the maximum, plus up to a fifth at random.
Source: `RetryWaiter`, `FileStoreCommitImpl.tryCommit`.
"""

from __future__ import annotations

from attrs import frozen

from paimon.domain.options.table_options import TableOptions

_JITTER = 0.2


@frozen
class RetryPolicy:
    """The limits of retries, in milliseconds; `timeout_millis` None is no limit in time."""

    max_retries: int = 10
    timeout_millis: int | None = None
    min_wait_millis: int = 10
    max_wait_millis: int = 10_000

    @classmethod
    def of(cls, options: TableOptions) -> RetryPolicy:
        """Return the policy that the `commit.*` options set."""
        return cls(
            options.commit_max_retries,
            options.commit_timeout_millis,
            options.commit_min_retry_wait_millis,
            options.commit_max_retry_wait_millis,
        )

    def wait_millis(self, retry: int, chance: float) -> float:
        """Return the wait before a retry; `chance` is a random number in [0, 1)."""
        wait = min(self.min_wait_millis << min(retry, 32), self.max_wait_millis)
        return wait * (1 + _JITTER * chance)

    def gives_up(self, retries: int, elapsed_millis: int) -> bool:
        """Return whether a commit stops after `retries` + 1 lost races and this time."""
        timed_out = self.timeout_millis is not None and elapsed_millis > self.timeout_millis
        return retries >= self.max_retries or timed_out
