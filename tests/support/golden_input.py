"""The rows that golden cases write, as Arrow tables with row kinds."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from paimon.domain.row.kinds import KIND_TEXTS
from paimon.domain.row.literals import parse_literal
from paimon.domain.row.values import to_array
from paimon.domain.types import data_types as dt
from paimon.domain.types.arrow import arrow_schema
from paimon.domain.types.data_types import DataField, DataType

KIND = "_ROW_KIND"
"""The member of an input row that holds its kind; an insert where it is missing."""


def internal(value: Any, data_type: DataType) -> Any:
    """The internal value of one in the cases' JSON rendering."""
    match data_type:
        case _ if value is None:
            return None
        case dt.BinaryType() | dt.VarBinaryType() | dt.BlobType():
            return bytes.fromhex(value)
        case dt.ArrayType(element=element) | dt.VectorType(element=element):
            return [internal(v, element) for v in value]
        case dt.MapType(key=key, value=item):
            return [(internal(k, key), internal(v, item)) for k, v in value]
        case dt.MultisetType(element=element):
            return [(internal(k, element), v) for k, v in value]
        case dt.RowType(fields=fields):
            return tuple(internal(value.get(f.name), f.type) for f in fields)
        case dt.FloatType() | dt.DoubleType() if not isinstance(value, str):
            # Java read the number -0.0 as 0.0. Only the text "-0.0" preserves the sign.
            return parse_literal(value + 0.0, data_type)
        case _:
            return parse_literal(value, data_type)


def input_rows(path: Path, fields: Sequence[DataField]) -> tuple[pa.Table, pa.Int8Array]:
    """The rows of a step, and their kinds."""
    rows = [json.loads(line) for line in path.read_text("utf8").splitlines()]
    return arrow_rows(rows, fields), pa.array([KIND_TEXTS.index(row.get(KIND, "+I")) for row in rows], pa.int8())


def arrow_rows(rows: Sequence[Mapping[str, Any]], fields: Sequence[DataField]) -> pa.Table:
    """Rows in the cases' JSON rendering as Arrow; columns that a row lacks are null."""
    columns = [to_array([internal(row.get(f.name), f.type) for row in rows], f.type) for f in fields]
    return pa.Table.from_arrays(columns, schema=arrow_schema(fields))
