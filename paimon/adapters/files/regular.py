"""Open local files for reading, and only regular ones: a FIFO, a device, a socket or a directory never blocks a reader.

Invariant: the kind is read from the open descriptor, and whatever reads the file reads that descriptor. Another process
that replaces the file between the check and the read changes nothing.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from typing import BinaryIO

import pyarrow as pa

from paimon.domain.errors import CorruptTable

_HINT = "remove it, and restore the file from a copy"
_CANNOT_BE_OPENED = {errno.ENXIO, errno.ENODEV, errno.EOPNOTSUPP}
"""What opening a socket, or a device without a driver, ends with."""
_DESCRIPTORS = "/proc/self/fd" if sys.platform == "linux" else "/dev/fd"
_KINDS = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFCHR: "a character device",
    stat.S_IFBLK: "a block device",
    stat.S_IFSOCK: "a socket",
    stat.S_IFDIR: "a directory",
}


def open_regular(name: str, path: str) -> BinaryIO:
    """Open a regular file for reading.

    Parameters
    ----------
    name : str
        The file on this disk.
    path : str
        What errors call it.

    Raises
    ------
    OSError
        The file is missing or may not be read.
    CorruptTable
        Something other than a regular file has this name.
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
    """Open what a descriptor refers to as an Arrow file of its own.

    Parameters
    ----------
    file : BinaryIO
        A regular file that is open. The caller closes it; the Arrow file stays open.
    mapped : bool
        Whether the file is mapped into memory.
    """
    name = f"{_DESCRIPTORS}/{file.fileno()}"
    try:
        return pa.memory_map(name) if mapped else pa.OSFile(name)
    except FileNotFoundError:  # a container without /proc
        return pa.PythonFile(open(os.dup(file.fileno()), "rb"), mode="r")


def _not_regular(path: str, mode: int) -> CorruptTable:
    kind = _KINDS.get(stat.S_IFMT(mode), "of an unknown kind")
    return CorruptTable(path, f"is {kind}, not a regular file", hint=_HINT)
