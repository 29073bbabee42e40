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

from paimon.adapters.cancellation import sleep
from paimon.adapters.logs import log_event
from paimon.domain.commit.retry import RetryPolicy
from paimon.ports.observer import Event

T = TypeVar("T")


@frozen
class RequestRetry:
    """The limits of retries, and the errors that are retried."""

    # retries of one request, the time after which no retry begins, and the waits between them
    policy: RetryPolicy
    # whether an error of the client concerns only the reply, not the request
    is_transient: Callable[[Exception], bool]
    # requests that take longer are logged
    slow_millis: int = 10_000

    def send(self, request: Callable[[], T], path: str) -> T:
        """Send a request until a reply arrives, within the limits; raise the first error that is not transient."""
        start, retries = time.monotonic(), 0
        while True:
            began = time.monotonic()
            try:
                return request()
            except Exception as error:  # clients raise their own errors, which `is_transient` judges
                elapsed_millis = int(1000 * (time.monotonic() - start))
                if not self.is_transient(error) or self.policy.gives_up(retries, elapsed_millis):
                    raise
                reason = type(error).__name__  # the text of an error may contain a signed URL
            finally:
                millis = int(1000 * (time.monotonic() - began))
                if millis >= self.slow_millis:
                    log_event(Event("slow_request", path, {"millis": millis}))
            wait_millis = self.policy.wait_millis(retries, random.random())
            retries += 1
            log_event(
                Event("request_retry", path, {"retry": retries, "wait_millis": round(wait_millis), "reason": reason})
            )
            sleep(wait_millis / 1000)
