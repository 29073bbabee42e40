"""Output: the common part of all output files, as file objects and in `with` blocks.

Invariant: a block that ends well closes the file, which makes it visible. A block that fails aborts the file.
"""

from __future__ import annotations

from types import TracebackType
from typing import Self


class Output:
    """The part of `paimon.ports.files.OutputFile` that does not depend on the storage."""

    def close(self) -> None:
        """Make the file visible."""
        raise NotImplementedError

    def abort(self) -> None:
        """Discard the file."""
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
