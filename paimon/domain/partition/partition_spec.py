"""Partition specs of users: mappings from partition column to value.

Invariant: a name that is not a partition column is refused. Text is read as the column's type, and the default name
means null.
Source: `InternalRowPartitionComputer.convertSpecToInternal`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paimon.domain.errors import InvalidRequest, did_you_mean
from paimon.domain.row.literals import parse_literal
from paimon.domain.row.values import to_array
from paimon.domain.text_checks import check_text
from paimon.domain.types.data_types import DataField, DataType, FloatType


def parse_partition_spec(
    spec: Mapping[str, object], fields: Sequence[DataField], default_name: str
) -> Mapping[str, Any]:
    """Parse a partition spec to internal values in column order; `default_name` means null."""
    spec = _mapping(spec)
    names = [f.name for f in fields]
    for name in spec:
        check_text(name, "partition column")
        if name not in names:
            raise InvalidRequest(
                f"Column {name!r} is not a partition column",
                subject=name,
                hint=did_you_mean(name, names) or "the table has no partitions; {} selects all of it",
            )
    return {
        f.name: None if spec[f.name] == default_name else _parse_value(spec[f.name], f.type)
        for f in fields
        if f.name in spec
    }


def _parse_value(given: object, data_type: DataType) -> Any:
    """Parse a value; a FLOAT is the nearest one that can be stored."""
    value = parse_literal(given, data_type)
    return value if not isinstance(data_type, FloatType) else to_array([value], data_type)[0].as_py()


def _mapping(spec: object) -> Mapping[Any, object]:
    if not isinstance(spec, Mapping):
        hint = "pass a mapping of column to value, such as {'day': '2026-01-01'}"
        raise InvalidRequest(f"Partition {spec!r} is not a mapping", subject="partition", hint=hint)
    return spec
