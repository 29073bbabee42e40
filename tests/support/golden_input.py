"""The rows that golden cases write, as Arrow tables with row kinds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from paimon.domain.row.kinds import KIND_TEXTS
from paimon.domain.types.data_types import DataField
from paimon.testing.conformance.golden import rows_to_arrow

KIND = "_ROW_KIND"
"""The member of an input row that holds its kind; an insert where it is missing."""


def parse_input(text: str) -> list[dict[str, Any]]:
    """Rows in JSON. Java read the number -0.0 as 0.0. Only the text "-0.0" preserves the sign."""
    return [json.loads(line, parse_float=lambda number: float(number) + 0.0) for line in text.splitlines()]


def read_input(path: Path) -> list[dict[str, Any]]:
    """The rows of a step in JSON."""
    return parse_input(path.read_text("utf8"))


def input_rows(path: Path, fields: Sequence[DataField]) -> tuple[pa.Table, pa.Int8Array]:
    """The rows of a step, and their kinds."""
    rows = read_input(path)
    return rows_to_arrow(rows, fields), pa.array([KIND_TEXTS.index(row.get(KIND, "+I")) for row in rows], pa.int8())
