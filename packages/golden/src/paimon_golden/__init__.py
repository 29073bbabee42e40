"""Tables that Java's Paimon wrote, with the rows that Java reads of them, as one archive."""

from __future__ import annotations

import tarfile
from pathlib import Path

__all__ = ["ARCHIVE", "unpack"]

ARCHIVE = Path(__file__).with_name("golden.tar.xz")
"""The archive; its README.md describes the files."""


def unpack(directory: str | Path) -> Path:
    """Unpack the tables to a directory, one folder each, and return the directory.

    Parameters
    ----------
    directory : str or Path
        It is created if it does not exist.

    Returns
    -------
    Path
        The directory.
    """
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(directory, filter="data")
    return Path(directory)
