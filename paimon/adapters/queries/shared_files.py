"""The files of running queries as a file system of DuckDB.

DuckDB opens files by name only, and its settings cannot allow single files later. So it may open names of this file
system only, and these names contain a random token for each query.

Invariant: a name is valid while its query runs, and no other query knows it. Nothing can be written or listed.
"""

from __future__ import annotations

import datetime
import re
import threading
import uuid
from collections.abc import Iterable, Sequence
from typing import Any

from fsspec import AbstractFileSystem

from paimon.domain.errors import PaimonError
from paimon.ports.queries import SharedFile

PROTOCOL = "paimon-query"
ROOT = f"{PROTOCOL}://"
FILE_NAME = re.compile(rf"{PROTOCOL}://[0-9a-f]{{32}}/\d+")
_ANY_TIME = datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC)
"""Files do not change while they can be opened."""


class OpenFile:
    """A file as DuckDB reads it: it sets the position and reads, and each thread has a position of its own."""

    mode = "rb"

    def __init__(self, file: SharedFile, errors: list[PaimonError]) -> None:
        self._file = file
        self._errors = errors
        self._local = threading.local()
        self.size = file.size

    def seek(self, offset: int, whence: int = 0) -> int:
        """Set the position of this thread. Only offsets from the beginning are allowed."""
        if whence:
            raise ValueError("offsets count from the beginning")
        self._local.position = offset
        return offset

    def tell(self) -> int:
        """Return the position of this thread."""
        return int(getattr(self._local, "position", 0))

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes. A PaimonError is also recorded, because DuckDB reports a part of it only."""
        start = self.tell()
        try:
            data = self._file.read_at(self.size - start if size < 0 else size, start)
        except PaimonError as error:
            self._errors.append(error)
            raise
        self._local.position = start + len(data)
        return data

    def close(self) -> None:
        """Do nothing: the file stays open while its query runs."""


class QueryFileSystem(AbstractFileSystem):  # type: ignore[misc]  # fsspec has no types
    """The files of all running queries of one database. All methods are safe to call from several threads."""

    protocol = PROTOCOL
    cachable = False

    def __init__(self) -> None:
        super().__init__()
        self._files: dict[str, tuple[SharedFile, list[PaimonError]]] = {}

    def add(self, files: Sequence[SharedFile], errors: list[PaimonError]) -> list[str]:
        """Allow files, and return their names, which cannot be guessed.

        Errors of the files are appended to `errors`, because DuckDB reports a part of them only.
        """
        token = uuid.uuid4().hex
        names = [f"{ROOT}{token}/{number}" for number in range(len(files))]
        self._files.update({name: (file, errors) for name, file in zip(names, files, strict=True)})
        return names

    def remove(self, names: Iterable[str]) -> None:
        """Forget files."""
        for name in names:
            self._files.pop(name, None)

    def open(self, path: str, mode: str = "rb", **_: Any) -> OpenFile:
        """Open a file of a running query by its name, for reading only."""
        if mode != "rb":
            raise PermissionError(path)
        return OpenFile(*self._find(path))

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        """Return the size of a file."""
        return {"name": path, "size": self._find(path)[0].size, "type": "file"}

    def glob(self, path: str, **_: Any) -> list[str]:
        """Return the name itself: files cannot be listed."""
        return [path] if path in self._files else []

    def exists(self, path: str, **_: Any) -> bool:
        """Return whether a running query has the file."""
        return path in self._files

    isfile = exists

    def modified(self, path: str) -> datetime.datetime:
        """Return a time that never changes."""
        return _ANY_TIME

    def _find(self, name: str) -> tuple[SharedFile, list[PaimonError]]:
        found = self._files.get(name)
        if found is None:
            raise FileNotFoundError(name)
        return found
