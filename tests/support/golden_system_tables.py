"""The system tables of golden tables as Java returns them: a sample of cases, by case and system table."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import pyarrow as pa

from paimon.domain.row.values import to_values
from paimon.domain.types.data_types import DataField
from support.canonical_rows import render, text

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


def render_rows(rows: pa.Table, fields: tuple[DataField, ...], table_path: Path) -> list[dict[str, Any]]:
    """The rows in Java's text form, sorted as text. ``TABLE`` replaces the table's path."""
    columns = {f.name: [render(v, f.type) for v in to_values(rows[f.name], f.type)] for f in fields}
    lines = [text({name: values[i] for name, values in columns.items()}) for i in range(rows.num_rows)]
    return normalize_rows([line.replace(str(table_path), "TABLE") for line in lines])


def normalize_rows(lines: list[str]) -> list[dict[str, Any]]:
    """Rows without columns that depend on Java's hash order, or on the time of unpacking."""
    rows = [json.loads(line) for line in lines]
    for row in rows:
        if "primary_keys" in row:
            row["options"] = json.loads(row["options"])
        if "branch_name" in row:
            row["create_time"] = None
        if "function_options" in row:
            row["function_options"], row["function"] = sorted(row["function_options"]), sorted(row["function"])
    return sorted(rows, key=text)
