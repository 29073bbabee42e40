"""One table that this library and Java write alternately."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import paimon
from support.java_paimon import canonical

DDL = "id BIGINT NOT NULL, p STRING NOT NULL, s INT, v STRING"


def create_table(home: Path, **more: Any) -> tuple[paimon.Table, Path]:
    """A new table, and its path."""
    catalog = paimon.connect(home)
    catalog.create_database("db")
    table = catalog.create_table("db.t", DDL, **more)
    return table, Path(table.location)


def read_rows(directory: Path) -> list[Any]:
    """The rows that we read now."""
    table = paimon.open_table(directory)
    assert isinstance(table, paimon.Table)
    return canonical(table.scan().to_arrow().to_pylist())
