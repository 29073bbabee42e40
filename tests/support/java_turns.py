"""One table that we and Java write in turns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from java_paimon import canonical

import paimon

DDL = "id BIGINT NOT NULL, p STRING NOT NULL, s INT, v STRING"


def created(home: Path, **more: Any) -> tuple[paimon.Table, Path]:
    """A new table, and where it lies."""
    catalog = paimon.connect(home)
    catalog.create_database("db")
    table = catalog.create_table("db.t", DDL, **more)
    return table, Path(table.location)


def ours(directory: Path) -> list[Any]:
    """What we read now."""
    table = paimon.open_table(directory)
    assert isinstance(table, paimon.Table)
    return canonical(table.scan().to_arrow().to_pylist())
