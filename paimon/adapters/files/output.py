"""Output: the common part of all output files, as file objects and in `with` blocks.

Invariant: a block that ends well closes the file, which makes it visible. A block that fails aborts the file.
"""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from types import TracebackType
from typing import Self


class Output:
    """The part of `paimon.ports.files.OutputFile` that does not depend on the storage."""

    def close(self) -> None:
        """Make the file visible.

        Raises
        ------
        NotImplementedError
            A subclass implements this method.
        """
        raise NotImplementedError

    def abort(self) -> None:
        """Discard the file.

        Raises
        ------
        NotImplementedError
            A subclass implements this method.
        """
        raise NotImplementedError

    def flush(self) -> None:
        """Do nothing, because nothing becomes visible before `close`."""

    def readable(self) -> bool:
        """Return False, because the file is write-only."""
        return False

    def writable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return False, because bytes are only appended."""
        return False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()


class BufferedOutput(Output):
    """A file during writing that is kept in memory, and given to `publish` as a whole when it is closed.

    Parameters
    ----------
    path : str
        The path that `publish` gets.
    publish : callable
        Makes a file visible in one step, from its path and its content. It may replace a file of this name.
    """

    def __init__(self, path: str, publish: Callable[[str, bytes], object]) -> None:
        self._path = path
        self._publish = publish
        self._buffer = BytesIO()

    def write(self, data: bytes) -> int:
        """Append bytes."""
        return self._buffer.write(data)

    def tell(self) -> int:
        """Return the number of bytes written."""
        return self._buffer.tell()

    def close(self) -> None:
        """Make the file visible."""
        if not self._buffer.closed:
            self._publish(self._path, self._buffer.getvalue())
            self._buffer.close()

    def abort(self) -> None:
        """Discard the file."""
        self._buffer.close()

    @property
    def closed(self) -> bool:
        """Whether `close` or `abort` was called."""
        return self._buffer.closed
