"""The source tables of events and their columns, which decide on tables and on new columns before rows are written."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon.domain.cdc.changes import Changes
from paimon.domain.cdc.convert_events import read_changes
from paimon.domain.cdc.event_formats import COLUMNS_FORMAT, EventFormat
from paimon.domain.cdc.json_index import BOOLEAN, NULL, NUMBER, Spans
from paimon.domain.types import data_types as dt
from paimon.domain.types.arrow import fields_from_arrow
from paimon.domain.types.data_types import DataType

SourceColumns = dict[str, dict[str, DataType]]
"""By name of the source table: the types of its columns. A column without any value is left out."""


def survey_events(events: pa.Table, event_format: EventFormat) -> SourceColumns:
    """Return the source tables of events, and the types of their columns.

    Parameters
    ----------
    events : pyarrow.Table
        The events, as in `convert_events`.
    event_format : EventFormat
        How to read them.

    Returns
    -------
    dict of str to (dict of str to DataType)
        By source table and column, the type of the source if the events describe it, otherwise BIGINT, DOUBLE, BOOLEAN
        or STRING, as the values are.
    """
    if event_format.name == COLUMNS_FORMAT:
        named = [f for f in events.schema if f.name != event_format.operation_column and not pa.types.is_null(f.type)]
        return {"": {f.name: f.type.with_nullable(True) for f in fields_from_arrow(pa.schema(named))}}
    found: SourceColumns = {}
    for group in read_changes(events, event_format).groups:
        for source in pc.unique(group.sources).to_pylist():
            chosen = group.take(np.asarray(pc.equal(group.sources, source)))
            found = merge_surveys(found, {source: _survey_columns(chosen)})
    return found


def merge_surveys(first: SourceColumns, second: Mapping[str, Mapping[str, DataType]]) -> SourceColumns:
    """Return the source tables of both, with types that hold the values of both."""
    merged = {source: dict(columns) for source, columns in first.items()}
    for source, columns in second.items():
        known = merged.setdefault(source, {})
        for name, data_type in columns.items():
            known[name] = _merge_types(known.get(name, data_type), data_type)
    return merged


def _merge_types(first: DataType, second: DataType) -> DataType:
    if first == second:
        return first
    numbers = (*dt.INTEGER_TYPES, dt.FloatType, dt.DoubleType)
    if isinstance(first, dt.INTEGER_TYPES) and isinstance(second, dt.INTEGER_TYPES):
        return dt.BigIntType()
    if isinstance(first, numbers) and isinstance(second, numbers):
        return dt.DoubleType()
    return dt.VarCharType()


def _survey_columns(changes: Changes) -> dict[str, DataType]:
    found: dict[str, DataType] = {}
    for rows in (changes.after, changes.before):
        members = changes.index.members(rows)
        for name in members.names:
            if name not in changes.omitted:
                column = {name: _find_type(changes, name, members.find(name))}
                found = {**found, **{k: _merge_types(found.get(k, t), t) for k, t in column.items() if t is not None}}
    return found


def _find_type(changes: Changes, name: str, spans: Spans) -> DataType | None:
    """Return the type of a column; None if it has neither a type nor a value."""
    for code in np.unique(changes.type_codes).tolist():
        known = changes.types[code].columns.get(name)
        data_type: DataType | None = None if known is None else known.data_type
        if data_type is not None:
            return data_type
    values = changes.unwrap(spans)
    kinds = changes.index.kinds(values)
    present = set(np.unique(kinds[kinds > NULL]).tolist())
    if not present:
        return None
    if changes.is_extended_json and np.any(values.starts != spans.starts):
        return _find_wrapped_type(changes, spans)
    if present == {BOOLEAN}:
        return dt.BooleanType()
    if present == {NUMBER}:
        texts = changes.index.texts(values)
        is_whole = pc.all(pc.match_substring_regex(texts, r"^-?[0-9]{1,18}$")).as_py()
        return dt.BigIntType() if is_whole else dt.DoubleType()
    return dt.VarCharType()


def _find_wrapped_type(changes: Changes, spans: Spans) -> DataType:
    """Return the type of a column whose values are wrapped in extended JSON."""
    names = set(changes.index.members(spans).names)
    if names == {"$date"}:
        return dt.TimestampType(3)
    if names <= {"$numberLong", "$numberInt"}:
        return dt.BigIntType()
    return dt.DoubleType() if names <= {"$numberLong", "$numberInt", "$numberDouble"} else dt.VarCharType()
