"""Files being written through fsspec: not visible before their close.

Law: `abort` leaves nothing, and a file that was closed is whole.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from types import TracebackType
from typing import Any

from paimon.domain.errors import StorageError


class _Output:
    """What both kinds share: leaving a `with` block by an exception aborts."""

    def close(self) -> None:
        raise NotImplementedError

    def abort(self) -> None:
        raise NotImplementedError

    def flush(self) -> None:
        """Nothing becomes visible before the close."""

    def readable(self) -> bool:
        """False: write only."""
        return False

    def writable(self) -> bool:
        """True."""
        return True

    def seekable(self) -> bool:
        """False: bytes are appended."""
        return False

    def __enter__(self) -> Any:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()


class BufferedOutputFile(_Output):
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


class StagedOutputFile(_Output):
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
