"""Checks of the columns that a table is sorted by, for a sorted compaction and for incremental clustering."""

from __future__ import annotations

from collections.abc import Sequence

from paimon.domain.errors import InvalidRequest, did_you_mean
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.types import data_types as dt
from paimon.domain.types.type_text import format_type

UNSORTED_TYPES = (*dt.NESTED_TYPES, dt.VariantType, dt.BlobType)
"""Types without an order."""


def check_sort_columns(schema: TableSchema, strategy: str, names: Sequence[str], given_in: str) -> None:
    """Refuse columns without an order, or too few for the strategy; `given_in` is the parameter or option of both."""
    if strategy == "hilbert" and len(names) < 2:
        hint = "name more, or use 'order'"
        raise InvalidRequest(f"A Hilbert curve needs two columns in {given_in}.", subject=given_in, hint=hint)
    for name in names:
        _check_column(schema, name, given_in)


def _check_column(schema: TableSchema, name: str, given_in: str) -> None:
    field = schema.fields_by_name.get(name)
    if field is None:
        raise InvalidRequest(
            f"Column {name!r} of {given_in} does not exist.", subject=name, hint=did_you_mean(name, schema.names)
        )
    if name in schema.partition_keys:
        raise InvalidRequest(
            f"Column {name!r} of {given_in} is a partition column, and all rows of a partition have the same value.",
            subject=name,
            hint="leave it out",
        )
    if isinstance(field.type, UNSORTED_TYPES):
        raise InvalidRequest(
            f"Column {name!r} of {given_in} has type {format_type(field.type)}, which has no order.",
            subject=name,
            hint="name a column of numbers, text, bytes, dates or times",
        )
