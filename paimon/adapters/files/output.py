"""What all files being written share: how they are used as file objects and in `with` blocks.

Law: a block that ends well closes the file, and so makes it visible; a block that fails aborts it, and nothing is left.
"""

from __future__ import annotations

from types import TracebackType
from typing import Self


class Output:
    """The part of `paimon.ports.files.OutputFile` that is the same wherever the bytes go."""

    def close(self) -> None:
        """Make the file visible."""
        raise NotImplementedError

    def abort(self) -> None:
        """Leave nothing."""
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

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()
