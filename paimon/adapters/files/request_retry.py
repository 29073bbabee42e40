"""RequestRetry: makes a storage request again when its reply did not arrive, for every adapter and operation alike.

Invariant: only a request that may be made twice goes through here. A conditional put may: its repetition returns
"exists", which the caller resolves by comparing content.
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
    """How often, and after which errors, one request is made again.

    Attributes
    ----------
    policy : RetryPolicy
        The number of retries of one request, the time after which no retry begins, and the waits between them.
    is_transient : callable
        Returns whether an error of the client says nothing about the request, only about its reply.
    """

    policy: RetryPolicy
    is_transient: Callable[[Exception], bool]

    def send(self, request: Callable[[], T]) -> T:
        """Return what the request returns.

        Parameters
        ----------
        request : callable
            One request, including the reading of the reply's body.

        Raises
        ------
        Exception
            The error of the last attempt, or the first one that is not transient.
        """
        start, retries = time.monotonic(), 0
        while True:
            try:
                return request()
            except Exception as error:  # clients have errors of their own; `is_transient` knows them
                elapsed_millis = int(1000 * (time.monotonic() - start))
                if not self.is_transient(error) or self.policy.gives_up(retries, elapsed_millis):
                    raise
            time.sleep(self.policy.wait_millis(retries, random.random()) / 1000)
            retries += 1
