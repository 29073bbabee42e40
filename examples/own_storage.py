"""Keep tables in a storage of your own: a FileIO in the rows of a SQLite database.

python examples/own_storage.py
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Sequence

import pyarrow as pa

from paimon.domain.errors import NotFound
from paimon.embed import BufferedOutput, make_catalog, make_engine
from paimon.ports.files import WHOLE_BYTES, FileStatus, PutOutcome, check_whole


class SqliteFiles:
    """A FileIO whose files are the rows of a table. SQLite makes each statement one step."""

    def __init__(self, database: str) -> None:
        self._database = database
        self._run("CREATE TABLE IF NOT EXISTS files (path TEXT PRIMARY KEY, data BLOB)")

    def _run(self, sql: str, *values: object) -> list[tuple]:
        connection = sqlite3.connect(self._database, timeout=60, isolation_level=None)
        try:
            return connection.execute(sql, values).fetchall()
        finally:
            connection.close()

    def read(self, path: str, max_bytes: int = WHOLE_BYTES) -> bytes:
        found = self._run("SELECT data FROM files WHERE path = ?", path)
        if not found:
            raise NotFound("file", path)
        check_whole(path, len(found[0][0]), max_bytes)
        return found[0][0]

    def open(self, path: str) -> pa.NativeFile:
        return pa.BufferReader(self.read(path))

    def create(self, path: str) -> BufferedOutput:
        return BufferedOutput(path, self.replace)

    def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
        added = self._run("INSERT INTO files VALUES (?, ?) ON CONFLICT DO NOTHING RETURNING 1", path, bytes(data))
        return PutOutcome.CREATED if added else PutOutcome.EXISTS

    def replace(self, path: str, data: bytes) -> None:
        self._run("INSERT OR REPLACE INTO files VALUES (?, ?)", path, bytes(data))

    def list(self, path: str) -> Sequence[FileStatus]:
        root = path.rstrip("/") + "/"
        below = self._run("SELECT path, length(data) FROM files WHERE path > ? AND path < ?", root, root[:-1] + "0")
        sizes = {name.removeprefix(root): size for name, size in below}
        names = {name.split("/", 1)[0]: "/" in name for name in sizes}
        return [FileStatus(root + n, 0 if is_dir else sizes[n], is_dir) for n, is_dir in sorted(names.items())]

    def status(self, path: str) -> FileStatus | None:
        found = self._run("SELECT length(data) FROM files WHERE path = ?", path)
        if found:
            return FileStatus(path, found[0][0], False)
        return FileStatus(path, 0, True) if self.list(path) else None

    def delete(self, paths: Sequence[str]) -> None:
        for path in paths:
            self._run("DELETE FROM files WHERE path = ?", path)


def main() -> None:
    """Write a table into the database, and read it from there."""
    database = tempfile.mkdtemp(prefix="paimon-embedding-") + "/lake.sqlite"
    catalog = make_catalog(make_engine(SqliteFiles(database)), "/lake")
    catalog.create_database("db")
    table = catalog.create_table("db.t", "a INT, b STRING")
    table.write({"a": [1, 2, 3], "b": ["x", "y", "z"]})
    again = make_catalog(make_engine(SqliteFiles(database)), "/lake").table("db.t")
    print(again.scan(where="a >= 2").to_arrow().to_pylist())


if __name__ == "__main__":
    main()
