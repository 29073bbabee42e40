"""Files being written through fsspec: not visible before their close.

Law: `abort` leaves nothing, and a file that was closed is whole.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from typing import Any

from paimon.adapters.files.output import Output


class BufferedOutputFile(Output):
    """Kept in memory and put as a whole."""

    def __init__(self, put: Callable[[bytes], None]) -> None:
        self._put = put
        self._buffer = io.BytesIO()
        self.closed = False

    def write(self, data: bytes) -> int:
        """Append bytes."""
        return self._buffer.write(data)

    def tell(self) -> int:
        """Bytes written."""
        return self._buffer.tell()

    def close(self) -> None:
        """Put the file."""
        if not self.closed:
            self.closed = True
            self._put(self._buffer.getvalue())

    def abort(self) -> None:
        """Forget the bytes."""
        self.closed = True


class StagedOutputFile(Output):
    """An upload of fsspec that is committed at the close; `guard` turns the client's errors into ours."""

    def __init__(self, file: Any, guard: Callable[[], contextlib.AbstractContextManager[None]]) -> None:
        self._file = file
        self._guard = guard
        self._size = 0
        self.closed = False

    def write(self, data: bytes) -> int:
        """Append bytes."""
        with self._guard():
            self._file.write(data)
        self._size += len(data)
        return len(data)

    def tell(self) -> int:
        """Bytes written."""
        return self._size

    def close(self) -> None:
        """Finish the upload."""
        if self.closed:
            return
        self.closed = True
        with self._guard():
            self._file.close()
            self._file.commit()

    def abort(self) -> None:
        """Throw the upload away."""
        self.closed = True
        with contextlib.suppress(Exception):  # what cannot be thrown away was never visible
            self._file.close()
            self._file.discard()
