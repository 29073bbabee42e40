"""How long a committer that lost a race waits, and when it gives up.

Law: waits double from the shortest to the longest, plus up to a fifth of chance. Source: `RetryWaiter`,
`FileStoreCommitImpl.tryCommit`.
"""

from __future__ import annotations

from attrs import frozen

_JITTER = 0.2


@frozen
class RetryPolicy:
    """Bounds in milliseconds; `timeout_millis` None: no bound in time."""

    max_retries: int = 10
    timeout_millis: int | None = None
    min_wait_millis: int = 10
    max_wait_millis: int = 10_000

    def wait_millis(self, retry: int, chance: float) -> float:
        """The wait before retry number `retry` (from 0); `chance` in [0, 1)."""
        wait = min(self.min_wait_millis << min(retry, 32), self.max_wait_millis)
        return wait * (1 + _JITTER * chance)

    def gives_up(self, retries: int, elapsed_millis: int) -> bool:
        """Whether a commit that was lost `retries` + 1 times, after this time, is not tried again."""
        timed_out = self.timeout_millis is not None and elapsed_millis > self.timeout_millis
        return retries >= self.max_retries or timed_out
