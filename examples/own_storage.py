"""Embedding: the library on a storage of one's own, by binding the FileIO port.

Here the storage is any FileIO behind a wrapper that counts what is asked of it: what a cache, a tracer or a retrying
client would do.

    python examples/own_storage.py
"""

from __future__ import annotations

import tempfile
from collections import Counter
from typing import Any

from attrs import evolve

import paimon
from paimon.domain.identifier import Identifier
from paimon.engines import engine_for
from paimon.ports.files import FileIO
from paimon.table import Table, open_at


class CountingFiles:
    """A FileIO that hands everything on and counts it."""

    def __init__(self, files: FileIO) -> None:
        self._files = files
        self.calls: Counter[str] = Counter()

    def __getattr__(self, verb: str) -> Any:
        self.calls[verb] += 1
        return getattr(self._files, verb)


def main() -> None:
    warehouse = tempfile.mkdtemp(prefix="paimon-embedding-")
    catalog = paimon.connect(warehouse)
    catalog.create_database("db")
    table = catalog.create_table("db.t", "a INT, b STRING")
    table.write({"a": [1, 2, 3], "b": ["x", "y", "z"]})

    engine = engine_for(warehouse, {}, {})
    counting = CountingFiles(engine.files)
    mine = open_at(evolve(engine, files=counting), table.location, Identifier("db", "t"), {})
    assert isinstance(mine, Table)
    print(mine.scan(where="a >= 2").to_arrow().to_pylist())
    print("storage was asked:", dict(counting.calls))


if __name__ == "__main__":
    main()
