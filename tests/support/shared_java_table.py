"""One table that this library and Java write alternately."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import paimon
from support.java_paimon import canonical
from support.tables import create_table

DDL = "id BIGINT NOT NULL, p STRING NOT NULL, s INT, v STRING"


def create_shared_table(home: Path, **more: Any) -> tuple[paimon.Table, Path]:
    """A new table, and its path."""
    table = create_table(home, DDL, **more)
    return table, Path(table.location)


def read_rows(directory: Path) -> list[Any]:
    """The rows that we read now."""
    table = paimon.open_table(directory)
    assert isinstance(table, paimon.Table)
    return canonical(table.scan().to_arrow().to_pylist())
