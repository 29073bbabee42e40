"""Partitions as users name them: a mapping from column to value.

Law: a name that is no partition column is refused; text is read as the column's type, and the default name means null.
Source: `InternalRowPartitionComputer.convertSpecToInternal`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paimon.domain.errors import InvalidRequest, did_you_mean
from paimon.domain.row.literals import literal
from paimon.domain.texts import check_text
from paimon.domain.types.data_types import DataField


def parse_spec(spec: Mapping[str, object], fields: Sequence[DataField], default_name: str) -> Mapping[str, Any]:
    """The internal values of a partition spec, in the order of the partition columns.

    Parameters
    ----------
    spec : mapping
        Partition column to Python value or text; may name some of the columns only.
    fields : sequence of DataField
        The partition columns.
    default_name : str
        `partition.default-name`: this text means null.
    """
    spec = _mapping(spec)
    names = [f.name for f in fields]
    for name in spec:
        check_text(name, "partition column")
        if name not in names:
            raise InvalidRequest(
                f"{name!r} is no partition column",
                subject=name,
                hint=did_you_mean(name, names) or "the table has no partitions; {} stands for all of it",
            )
    return {
        f.name: None if spec[f.name] == default_name else literal(spec[f.name], f.type)
        for f in fields
        if f.name in spec
    }


def _mapping(spec: object) -> Mapping[Any, object]:
    if not isinstance(spec, Mapping):
        hint = "give a mapping of column to value, such as {'day': '2026-01-01'}"
        raise InvalidRequest(f"{spec!r} names no partition", subject="partition", hint=hint)
    return spec
