"""Use the library on a storage of your own, by an implementation of the FileIO port.

Here the storage is a FileIO in a wrapper that counts calls. A cache or a tracer has the same form.

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
    """A FileIO that counts each call and passes it on."""

    def __init__(self, files: FileIO) -> None:
        self._files = files
        self.calls: Counter[str] = Counter()

    def __getattr__(self, verb: str) -> Any:
        self.calls[verb] += 1
        return getattr(self._files, verb)


def main() -> None:
    """Write a table, and read it through the wrapper."""
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
    print("calls of the storage:", dict(counting.calls))


if __name__ == "__main__":
    main()
