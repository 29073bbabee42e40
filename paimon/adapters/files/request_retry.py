"""RequestRetry: repeat a storage request whose reply did not arrive, for every adapter and operation alike.

Invariant: only requests that are safe to send twice are repeated. A conditional put is one of them: its repetition
returns "exists", and the caller compares the content.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TypeVar

from attrs import frozen

from paimon.domain.commit.retry import RetryPolicy

T = TypeVar("T")


@frozen
class RequestRetry:
    """The limits of retries, and the errors that are retried."""

    # retries of one request, the time after which no retry begins, and the waits between them
    policy: RetryPolicy
    # whether an error of the client concerns only the reply, not the request
    is_transient: Callable[[Exception], bool]

    def send(self, request: Callable[[], T]) -> T:
        """Send a request until a reply arrives, within the limits.

        `request` also reads the body of the reply. Raises the first error that is not transient, or the last one.
        """
        start, retries = time.monotonic(), 0
        while True:
            try:
                return request()
            except Exception as error:  # clients raise their own errors, which `is_transient` judges
                elapsed_millis = int(1000 * (time.monotonic() - start))
                if not self.is_transient(error) or self.policy.gives_up(retries, elapsed_millis):
                    raise
            time.sleep(self.policy.wait_millis(retries, random.random()) / 1000)
            retries += 1
