"""StoreOutput and StoreInput: files of an object store during writing and reading.

Invariant: nothing is visible before `close`, whatever was uploaded. Reads are requests for ranges; the last range of a
file is read together with its size.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

from paimon.adapters.files.output import Output

PART_BYTES = 8 * 1024 * 1024
"""The size of a part of an upload. `PARTS_AT_ONCE` parts are in memory at the same time."""
PARTS_AT_ONCE = 2
TAIL_BYTES = 64 * 1024
"""The number of last bytes that are read with the size of a file. Most footers are smaller."""


class StoreOutput(Output):
    """A file during writing: one put if it fits into a part, otherwise an upload in parts.

    `put` creates the whole object. `start` begins an upload with more than one part of bytes, and returns its writer.
    `guard` translates errors of the client. `has_arrived` returns whether an object of this size exists.
    """

    def __init__(
        self,
        put: Callable[[bytes], None],
        start: Callable[[bytes], Any],
        guard: Callable[[], Any],
        has_arrived: Callable[[int], bool],
    ) -> None:
        self._put = put
        self._start = start
        self._guard = guard
        self._has_arrived = has_arrived
        self._buffer = bytearray()
        self._writer: Any = None
        self._size = 0
        self.closed = False

    def write(self, data: bytes) -> int:
        """Append bytes of any buffer, and return their number."""
        view = memoryview(data).cast("B")  # the client refuses the signed bytes of Arrow's buffers
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
        """Return the number of bytes written."""
        return self._size

    def close(self) -> None:
        """Finish the upload. If the reply was lost, the size of the object decides."""
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
            except Exception:  # the store refuses to finish an upload again after a lost reply
                if not self._has_arrived(self._size):
                    raise

    def abort(self) -> None:
        """Leave the upload unfinished. The rules of the store delete its parts."""
        self.closed = True
        self._writer = None
        self._buffer = bytearray()


class StoreInput(io.RawIOBase):
    """A seekable input. `fetch` takes the start and length of a range; `tail` has the last bytes, possibly none."""

    def __init__(self, fetch: Callable[[int, int], bytes], size: int, tail: bytes) -> None:
        self._fetch = fetch
        self._size = size
        self._tail = tail
        self._position = 0

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes; fewer only at the end."""
        start = self._position
        length = self._size - start if size is None or size < 0 else min(size, self._size - start)
        if length <= 0:
            return b""
        self._position = start + length
        in_tail = start - (self._size - len(self._tail))
        return self._tail[in_tail : in_tail + length] if in_tail >= 0 else self._fetch(start, length)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move the position, and return it."""
        origin = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = max(0, origin + offset)
        return self._position

    def tell(self) -> int:
        """Return the position."""
        return self._position

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def size(self) -> int:
        """Return the size of the file in bytes."""
        return self._size
