"""Create the table of a test in a warehouse of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import paimon


def create_table(home: Path | str, columns: str, name: str = "db.t", **layout: Any) -> paimon.Table:
    """Create a table, and its database if it is the first one."""
    catalog = paimon.connect(home)
    catalog.create_database(name.partition(".")[0], exist_ok=True)
    return catalog.create_table(name, columns, **layout)
