"""RetryingFileSystem: an fsspec file system that repeats calls whose reply did not arrive.

The clients of fsspec retry by different rules, and not every client retries a reply whose body was cut. Lost replies
are recognized by the class of the error, or by its name where the client is optional.
"""

from __future__ import annotations

import http.client
import io
from collections.abc import Iterator
from typing import Any

from paimon.adapters.files.request_retry import RequestRetry

_LOST = (ConnectionError, TimeoutError, http.client.HTTPException)
_LOST_BY_NAME = frozenset({
    "ClientConnectionError", "ClientPayloadError",  # aiohttp
    "HTTPClientError", "ResponseStreamingError",  # botocore
    "ServiceRequestError", "ServiceResponseError",  # azure.core
    "ChunkedEncodingError", "ProtocolError",  # requests, urllib3
    "IncompleteReadError", "FSTimeoutError",
})  # fmt: skip


class RetryingFileSystem:
    """A file system of fsspec whose method calls are retried, so they must be safe to call twice.

    The result of `open` for writing is not wrapped. `unrepeated` is the file system itself, for a call whose lost reply
    the caller resolves.
    """

    def __init__(self, inner: Any, retry: RequestRetry) -> None:
        self.unrepeated = inner
        self._retry = retry

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.unrepeated, name)
        if name.startswith("_") or not callable(found):
            return found

        def call(*values: Any, **named: Any) -> Any:
            """Call the method; its first argument is a path, or a list of paths."""
            path = values[0] if values and isinstance(values[0], str) else name
            return self._retry.send(lambda: found(*values, **named), path)

        return call

    def open_input(self, path: str) -> RetryingInput:
        """Open a file for reading."""
        return RetryingInput(self.open(path, mode="rb"), self._retry, path)


class RetryingInput(io.RawIOBase):
    """A seekable input that repeats a failed read from the same position."""

    def __init__(self, inner: Any, retry: RequestRetry, path: str) -> None:
        self._inner = inner
        self._retry = retry
        self._path = path

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes; fewer only at the end."""
        start = self._inner.tell()

        def read_again() -> bytes:
            """Read from the position at which the first attempt began."""
            self._inner.seek(start)
            return bytes(self._inner.read(size))

        return self._retry.send(read_again, self._path)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move, and return the position."""
        return int(self._retry.send(lambda: self._inner.seek(offset, whence), self._path))

    def tell(self) -> int:
        """Return the position."""
        return int(self._inner.tell())

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def close(self) -> None:
        """Close the file."""
        if not self.closed:
            self._inner.close()
        super().close()


def is_lost_reply(error: BaseException) -> bool:
    """Return whether an error, or one of its causes, means that a reply did not arrive whole."""
    return any(
        isinstance(e, _LOST) or not _LOST_BY_NAME.isdisjoint(kind.__name__ for kind in type(e).__mro__)
        for e in _chain(error)
    )


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and its causes."""
    found: BaseException | None = error
    while found is not None:
        yield found
        found = found.__cause__
