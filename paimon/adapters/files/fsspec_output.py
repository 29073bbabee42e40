"""Output files that are written through fsspec.

Invariant: nothing is visible before `close`, a closed file is whole, and `abort` leaves no file.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from typing import Any

from paimon.adapters.files.output import Output


class BufferedOutputFile(Output):
    """An output file in memory. `put` creates the file with all its bytes at `close`."""

    def __init__(self, put: Callable[[bytes], None]) -> None:
        self._put = put
        self._buffer = io.BytesIO()
        self.closed = False

    def write(self, data: bytes) -> int:
        """Append bytes, and return their number."""
        return self._buffer.write(data)

    def tell(self) -> int:
        """Return the number of bytes written."""
        return self._buffer.tell()

    def close(self) -> None:
        """Put the file. Further calls do nothing."""
        if not self.closed:
            self.closed = True
            self._put(self._buffer.getvalue())

    def abort(self) -> None:
        """Discard the bytes."""
        self.closed = True


class StagedOutputFile(Output):
    """An upload of fsspec that is committed at `close`.

    `file` was opened with `autocommit=False`. `guard` returns a context manager that translates errors of the client.
    """

    def __init__(self, file: Any, guard: Callable[[], contextlib.AbstractContextManager[None]]) -> None:
        self._file = file
        self._guard = guard
        self._size = 0
        self.closed = False

    def write(self, data: bytes) -> int:
        """Append bytes, and return their number."""
        with self._guard():
            self._file.write(data)
        self._size += len(data)
        return len(data)

    def tell(self) -> int:
        """Return the number of bytes written."""
        return self._size

    def close(self) -> None:
        """Finish the upload. Further calls do nothing."""
        if self.closed:
            return
        self.closed = True
        with self._guard():
            self._file.close()
            self._file.commit()

    def abort(self) -> None:
        """Discard the upload."""
        self.closed = True
        with contextlib.suppress(Exception):  # an upload that cannot be discarded was never visible
            self._file.close()
            self._file.discard()
