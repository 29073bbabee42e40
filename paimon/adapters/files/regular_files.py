"""Open regular local files for reading, and refuse a FIFO, a device, a socket or a directory, which can block.

Invariant: the kind is read from the open descriptor, and the reader uses that descriptor. Another process that replaces
the file between the check and the read changes nothing.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from typing import BinaryIO

import pyarrow as pa

from paimon.domain.errors import CorruptTable

_HINT = "remove it, and restore the file from a backup"
_CANNOT_BE_OPENED = {errno.ENXIO, errno.ENODEV, errno.EOPNOTSUPP}
"""The errors of opening a socket, or a device without a driver."""
_DESCRIPTORS = "/proc/self/fd" if sys.platform == "linux" else "/dev/fd"
_KINDS = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFCHR: "a character device",
    stat.S_IFBLK: "a block device",
    stat.S_IFSOCK: "a socket",
    stat.S_IFDIR: "a directory",
}


def open_regular(name: str, path: str) -> BinaryIO:
    """Open the local path `name` for reading. The caller closes the file.

    What is not a regular file raises CorruptTable, which names `path`. OSError is not translated.
    """
    try:
        # O_NONBLOCK: without it, the open of a FIFO that has no writer does not return.
        descriptor = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError as error:
        if error.errno in _CANNOT_BE_OPENED:
            raise _not_regular(path, os.stat(name).st_mode) from error
        raise
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        raise _not_regular(path, mode)
    return open(descriptor, "rb")


def open_arrow(file: BinaryIO, *, mapped: bool) -> pa.NativeFile:
    """Open the file of a descriptor as an Arrow file with its own position.

    The caller closes `file`; the Arrow file stays open.
    """
    name = f"{_DESCRIPTORS}/{file.fileno()}"
    try:
        return pa.memory_map(name) if mapped else pa.OSFile(name)
    except FileNotFoundError:  # a container without /proc
        return pa.PythonFile(open(os.dup(file.fileno()), "rb"), mode="r")


def _not_regular(path: str, mode: int) -> CorruptTable:
    kind = _KINDS.get(stat.S_IFMT(mode), "of an unknown kind")
    return CorruptTable(path, f"is {kind}, not a regular file", hint=_HINT)
