"""Files being written through fsspec: not visible before their close.

Law: `abort` leaves nothing, and a file that was closed is whole.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from typing import Any

from paimon.adapters.files.output import Output
from paimon.domain.errors import StorageError


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
    """An upload of fsspec that is committed at the close."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._size = 0
        self.closed = False

    def write(self, data: bytes) -> int:
        """Append bytes."""
        try:
            self._file.write(data)
        except Exception as error:  # the border to clients of many makes
            raise StorageError(str(self._file.path), str(error) or type(error).__name__) from error
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
        try:
            self._file.close()
            self._file.commit()
        except Exception as error:  # as above
            raise StorageError(str(self._file.path), str(error) or type(error).__name__) from error

    def abort(self) -> None:
        """Throw the upload away."""
        self.closed = True
        with contextlib.suppress(Exception):  # what cannot be thrown away was never visible
            self._file.close()
            self._file.discard()
