"""Files of an object store, being read or written.

Law: nothing is visible before the close of an output, whatever was uploaded; what is read is read by ranges, of which
the last one of the file comes with its size.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

from paimon.adapters.files.output import Output

PART_BYTES = 8 * 1024 * 1024
"""An upload goes up in such parts, so many at once: together they are what it holds in memory."""
PARTS_AT_ONCE = 2
TAIL_BYTES = 64 * 1024
"""What is read with a file's size: most footers are smaller."""


class StoreOutput(Output):
    """A file being written: one put where it fits into a part, else an upload in parts.

    Parameters
    ----------
    put : callable
        Creates the whole object of these bytes.
    start : callable
        Begins an upload with these bytes, more than one part, and returns the client's writer.
    guard : callable
        Returns a context that turns the client's errors into ours.
    landed : callable
        Returns whether an object of this size is there.
    """

    def __init__(
        self,
        put: Callable[[bytes], None],
        start: Callable[[bytes], Any],
        guard: Callable[[], Any],
        landed: Callable[[int], bool],
    ) -> None:
        self._put = put
        self._start = start
        self._guard = guard
        self._landed = landed
        self._buffer = bytearray()
        self._writer: Any = None
        self._size = 0
        self.closed = False

    def write(self, data: bytes) -> int:
        """Append bytes."""
        view = memoryview(data).cast("B")  # Arrow's buffers hold signed bytes, which the client does not take
        self._size += view.nbytes
        with self._guard():
            if self._writer is not None:
                self._writer.write(view)
            elif self._size <= PART_BYTES:
                self._buffer += view
            else:
                missing = PART_BYTES + 1 - len(self._buffer)
                self._writer = self._start(bytes(self._buffer) + view[:missing])
                self._buffer = bytearray()
                self._writer.write(view[missing:])
        return view.nbytes

    def tell(self) -> int:
        """Bytes written."""
        return self._size

    def close(self) -> None:
        """Finish the upload; where its acknowledgement got lost, the object itself tells."""
        if self.closed:
            return
        self.closed = True
        if self._writer is None:
            data, self._buffer = bytes(self._buffer), bytearray()
            self._put(data)
            return
        with self._guard():
            try:
                self._writer.close()
            except Exception:  # the second try of a finish that took place is an error of the store
                if not self._landed(self._size):
                    raise

    def abort(self) -> None:
        """Leave the upload unfinished: it never becomes an object; its parts go by the store's own rules."""
        self.closed = True
        self._writer = None
        self._buffer = bytearray()


class StoreInput(io.RawIOBase):
    """A seekable input; `fetch(start, length)` answers a range, `tail` holds the last bytes of the file."""

    def __init__(self, fetch: Callable[[int, int], bytes], size: int, tail: bytes) -> None:
        self._fetch = fetch
        self._size = size
        self._tail = tail
        self._position = 0

    def read(self, size: int = -1) -> bytes:
        """The next bytes; fewer only at the end."""
        start = self._position
        length = self._size - start if size is None or size < 0 else min(size, self._size - start)
        if length <= 0:
            return b""
        self._position = start + length
        in_tail = start - (self._size - len(self._tail))
        return self._tail[in_tail : in_tail + length] if in_tail >= 0 else self._fetch(start, length)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move; answers the position."""
        origin = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = max(0, origin + offset)
        return self._position

    def tell(self) -> int:
        """The position."""
        return self._position

    def readable(self) -> bool:
        """True."""
        return True

    def seekable(self) -> bool:
        """True."""
        return True

    def size(self) -> int:
        """Bytes of the file."""
        return self._size
