"""StoreRequests: the only way from StoreFiles to obstore, with one policy of retries and one translation of errors.

The client retries connections that fail, status 5xx and cut bodies of found objects. It does not retry cut bodies of
other replies: listings, batched deletes, "not found", "precondition failed" and new multipart uploads. These are
retried here, within the same limits.

Invariant: errors that leave carry no secrets. Source: obstore 0.12 (object_store), measured by
`tests/adapters/test_store_files.py`.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from obstore.exceptions import (
    BaseError,
    GenericError,
    NotSupportedError,
    PermissionDeniedError,
    UnauthenticatedError,
)

from paimon.adapters.files.request_retry import RequestRetry
from paimon.domain.commit.retry import RetryPolicy
from paimon.domain.errors import NotFound, PaimonError, StorageError
from paimon.domain.secrets import redacted

T = TypeVar("T")

REFUSALS = (PermissionDeniedError, UnauthenticatedError, NotSupportedError, PermissionError, NotImplementedError)
"""Errors that say that the store does not do what it is asked."""
_CREDENTIALS = "give credentials by the environment of this process, its machine's role, or the storage options"
_CUT_REPLY = re.compile(r"HTTP error|invalid \w+ response", re.IGNORECASE)
"""In an error of the client: no whole reply arrived. A status that the store sent is described in other words."""
_RETRIES = re.compile(r"after (\d+) retries, max_retries: (\d+)")


class StoreRequests:
    """Sends requests to one store.

    Parameters
    ----------
    store : object
        The client, as obstore's functions take it; it retries by the same policy.
    policy : RetryPolicy
        The limits of one request.
    secrets : mapping
        The storage options, whose secrets no error may show.
    """

    def __init__(self, store: Any, policy: RetryPolicy, secrets: Mapping[str, object]) -> None:
        self._store = store
        self._retry = RequestRetry(policy, is_retryable)
        self._secrets = secrets

    def send(self, path: str, request: Callable[[Any], T], *, missing_is_error: bool = False) -> T:
        """Return what the request returns, as `try_send`, with the errors of `translate_errors`."""
        with self.translate_errors(path, missing_is_error=missing_is_error):
            return self.try_send(request)

    def try_send(self, request: Callable[[Any], T]) -> T:
        """Return what the request returns; make it again where its reply does not arrive whole.

        Parameters
        ----------
        request : callable
            Takes the client; one request with the reading of its reply. It must be safe to make twice.

        Raises
        ------
        BaseError, OSError
            As the client raises them.
        """
        return self._retry.send(lambda: request(self._store))

    @contextlib.contextmanager
    def translate_errors(self, path: str, *, missing_is_error: bool = False) -> Iterator[None]:
        """Turn the client's errors into NotFound or StorageError, without secrets and without their inner story."""
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
        """Return the StorageError of a client's error."""
        hint = _CREDENTIALS if isinstance(error, REFUSALS) else None
        return StorageError(path, redacted(first_line(error), self._secrets), hint=hint)


def is_cut_reply(error: Exception) -> bool:
    """Return whether no whole reply arrived, so that the error says nothing about the object."""
    return isinstance(error, GenericError) and _CUT_REPLY.search(first_line(error)) is not None


def is_retryable(error: Exception) -> bool:
    """Return whether no whole reply arrived and the client's own retries are not used up."""
    if not is_cut_reply(error):
        return False
    spent = _RETRIES.search(first_line(error))
    return spent is None or int(spent[1]) < int(spent[2])


def first_line(error: Exception) -> str:
    """Return the first line of an error's text, or its class."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
