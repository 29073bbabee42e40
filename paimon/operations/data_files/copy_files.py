"""Copy files between storages as streams."""

from __future__ import annotations

from paimon.domain.errors import StorageError
from paimon.ports.files import FileIO

_PIECE_BYTES = 8 * 1024 * 1024


def copy_stream(source: FileIO, path: str, target: FileIO, target_path: str) -> int:
    """Copy a file piece by piece, and return its size in bytes; the copy is visible when it is complete."""
    with source.open(path) as reader:
        size = reader.size()
        with target.create(target_path) as sink:
            while piece := reader.read(_PIECE_BYTES):
                sink.write(piece)
            if sink.tell() != size:
                raise StorageError(path, f"has {size} bytes, and {sink.tell()} were read")
    return int(size)
