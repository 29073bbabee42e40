"""StoreRequests: send requests of StoreFiles to obstore with one retry policy, and translate its errors.

The client retries failed connections, status 5xx and cut bodies of found objects. It does not retry cut bodies of other
replies: listings, batched deletes, "not found", "precondition failed" and new multipart uploads. This module retries
them within the same limits.

Invariant: errors contain no secrets. Source: obstore 0.12 (object_store), measured by
`tests/adapters/files/test_store_files.py`.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from obstore.exceptions import BaseError, GenericError, NotSupportedError, PermissionDeniedError, UnauthenticatedError

from paimon.adapters.files.request_retry import RequestRetry
from paimon.domain.commit.retry import RetryPolicy
from paimon.domain.errors import NotFound, PaimonError, StorageError, Unsupported
from paimon.domain.secrets import redact_secrets

T = TypeVar("T")

REFUSALS = (PermissionDeniedError, UnauthenticatedError, NotSupportedError, PermissionError, NotImplementedError)
"""Errors of a store that refuses the request."""
_CREDENTIALS = "pass credentials in the environment, by the role of the machine, or as storage options"
_processes: dict[str, int] = {}
"""The process that sent the first request."""
_CUT_REPLY = re.compile(r"HTTP error|invalid \w+ response", re.IGNORECASE)
"""The text of a client error without a whole reply. Errors with a status of the store have another text."""
_RETRIES = re.compile(r"after (\d+) retries, max_retries: (\d+)")


class StoreRequests:
    """Sends requests to one store; the values of `secrets`, the storage options, are removed from errors."""

    def __init__(self, store: Any, policy: RetryPolicy, slow_millis: int, secrets: Mapping[str, object]) -> None:
        self._store = store
        self._retry = RequestRetry(policy, is_retryable, slow_millis)
        self._secrets = secrets

    def send(self, path: str, request: Callable[[Any], T], *, missing_is_error: bool = False) -> T:
        """Send a request until its reply is whole, and translate its errors (missing: NotFound or StorageError)."""
        with self.translate_errors(path, missing_is_error=missing_is_error):
            return self.try_send(path, request)

    def try_send(self, path: str, request: Callable[[Any], T]) -> T:
        """Send a request that is safe to repeat until its reply is whole; errors are not translated."""
        _check_process()
        return self._retry.send(lambda: request(self._store), path)

    @contextlib.contextmanager
    def translate_errors(self, path: str, *, missing_is_error: bool = False) -> Iterator[None]:
        """Translate errors of the client, without secrets; with `missing_is_error`, NotFound becomes StorageError."""
        try:
            yield
        except PaimonError:
            raise
        except FileNotFoundError as error:
            if missing_is_error:
                raise self.storage_error(path, error) from None
            raise NotFound("file", path) from None
        except (BaseError, OSError, ValueError) as error:
            raise self.storage_error(path, error) from None

    def storage_error(self, path: str, error: Exception) -> StorageError:
        """Return an error of the client as a StorageError."""
        hint = _CREDENTIALS if isinstance(error, REFUSALS) else None
        return StorageError(path, redact_secrets(first_line(error), self._secrets), hint=hint)


def _check_process() -> None:
    """Refuse requests in a forked child: obstore has one runtime for the process, whose threads do not exist there."""
    first = _processes.setdefault("first", os.getpid())
    if first != os.getpid():
        raise Unsupported(
            "requests to an object store in a forked process, after its parent sent some",
            hint="start processes with 'spawn': multiprocessing.set_start_method('spawn')",
        )


def is_cut_reply(error: Exception) -> bool:
    """Return whether no whole reply arrived, so that the error says nothing about the object."""
    return isinstance(error, GenericError) and _CUT_REPLY.search(first_line(error)) is not None


def is_retryable(error: Exception) -> bool:
    """Return whether no whole reply arrived, and the client has retries left."""
    if not is_cut_reply(error):
        return False
    spent = _RETRIES.search(first_line(error))
    return spent is None or int(spent[1]) < int(spent[2])


def first_line(error: Exception) -> str:
    """Return the first line of the text of an error, or its class."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
