"""What Java's system tables show of golden tables: a sample of cases, by case and system table."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import pyarrow as pa
from rendering import render, text

from paimon.domain.row.values import to_values
from paimon.domain.types.data_types import DataField

ARCHIVE = Path(__file__).resolve().parents[1] / "data" / "system_tables.tar.xz"


def expected_tables() -> dict[tuple[str, str], list[str]]:
    """The lines of each system table of each case."""
    found = {}
    with tarfile.open(ARCHIVE) as archive:
        for member in archive.getmembers():
            file = archive.extractfile(member) if member.isfile() else None
            if file is not None:
                path = Path(member.name)
                found[path.parent.name, path.stem] = file.read().decode("utf-8").splitlines()
    return found


def shown(rows: pa.Table, fields: tuple[DataField, ...], table_path: Path) -> list[dict[str, Any]]:
    """The rows as Java's are rendered, sorted as text; ``TABLE`` stands for the table's path."""
    columns = {f.name: [render(v, f.type) for v in to_values(rows[f.name], f.type)] for f in fields}
    lines = [text({name: values[i] for name, values in columns.items()}) for i in range(rows.num_rows)]
    return normal([line.replace(str(table_path), "TABLE") for line in lines])


def normal(lines: list[str]) -> list[dict[str, Any]]:
    """Rows without what depends on Java's hash order, or on when a file was unpacked."""
    rows = [json.loads(line) for line in lines]
    for row in rows:
        if "primary_keys" in row:
            row["options"] = json.loads(row["options"])
        if "branch_name" in row:
            row["create_time"] = None
        if "function_options" in row:
            row["function_options"], row["function"] = sorted(row["function_options"]), sorted(row["function"])
    return sorted(rows, key=text)
