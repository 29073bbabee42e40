"""Find the source tables of change events, and the types of their columns, before rows are written.

New tables and new columns get these types.
"""

# The type of a column comes from the event where the event describes it (Debezium with a schema). Otherwise the values
# of all rows, before and after the changes, show it:
#
#     {"id": 7, "price": 1.5, "note": null}         id BIGINT, price DOUBLE; note is left out: it has no value yet
#     {"id": 8, "price": 2, "note": "x"}            note STRING; price stays DOUBLE (`_merge_types`)
#     {"at": {"$date": 0}, "n": {"$numberInt": "1"}}   extended JSON of MongoDB: at TIMESTAMP(3), n BIGINT
#
# A value in extended JSON may be wrapped in an object; the member of the wrapper names the type. Rows are not decoded:
# a `Spans` says where the values of a column begin and end in the text of all events.

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon.capture.convert_events import read_changes
from paimon.capture.event_formats import COLUMNS_FORMAT, EventFormat
from paimon.capture.json_index import BOOLEAN, NULL, NUMBER, Spans, unwrap_values
from paimon.capture.row_changes import Changes
from paimon.domain.types import data_types as dt
from paimon.domain.types.arrow import fields_from_arrow
from paimon.domain.types.data_types import DataType

_NUMBERS = (*dt.INTEGER_TYPES, dt.FloatType, dt.DoubleType)
_INTEGER_DIGITS, _MOST_DIGITS = 19, 38
_WRAPPED_TYPES: Mapping[str, DataType] = {
    "$date": dt.TimestampType(3),
    "$numberInt": dt.BigIntType(),
    "$numberLong": dt.BigIntType(),
    "$numberDouble": dt.DoubleType(),
    "$binary": dt.VarBinaryType(),
    "$type": dt.VarBinaryType(),  # next to "$binary" in its older form
}
SourceColumns = dict[str, dict[str, DataType]]
"""By name of the source table, empty if the format has none: the types of its columns."""


def survey_events(events: pa.Table, event_format: EventFormat) -> SourceColumns:
    """Return column types by source table: those of the source if described, else by value."""
    if event_format.name == COLUMNS_FORMAT:
        named = [f for f in events.schema if f.name != event_format.operation_column and not pa.types.is_null(f.type)]
        return {"": {f.name: f.type.with_nullable(True) for f in fields_from_arrow(pa.schema(named))}}
    found: SourceColumns = {}
    for group in read_changes(events, event_format).groups:
        for source in pc.unique(group.sources).to_pylist():
            chosen = group.take(np.asarray(pc.equal(group.sources, source)))
            found = merge_surveys(found, {source: _survey_columns(chosen, event_format)})
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
    """Return the smallest type that holds the values of both; STRING holds those of any two."""
    if first == second:
        return first
    both = (first, second)
    if all(isinstance(kind, dt.INTEGER_TYPES) for kind in both):
        return max(both, key=lambda kind: dt.INTEGER_TYPES.index(type(kind)))
    if all(isinstance(kind, _NUMBERS) for kind in both):
        return dt.DoubleType()
    if all(isinstance(kind, (dt.DecimalType, *dt.INTEGER_TYPES)) for kind in both):
        return _merge_decimals(first, second)
    for kind in (dt.TimestampType, dt.LocalZonedTimestampType):
        if isinstance(first, kind) and isinstance(second, kind):
            return kind(precision=max(first.precision, second.precision))
    return dt.VarCharType()


def _merge_decimals(*kinds: DataType) -> DataType:
    digits = [(k.precision, k.scale) if isinstance(k, dt.DecimalType) else (_INTEGER_DIGITS, 0) for k in kinds]
    scale = max(scale for _, scale in digits)
    precision = scale + max(precision - scale for precision, scale in digits)
    return dt.DecimalType(precision, scale) if precision <= _MOST_DIGITS else dt.VarCharType()


def _survey_columns(changes: Changes, event_format: EventFormat) -> dict[str, DataType]:
    found: dict[str, DataType] = {}
    omitted = event_format.list_omitted(changes.omitted)
    for rows in (changes.after, changes.before):
        members = changes.index.members(rows)
        for name in members.names:
            kind = None if name in omitted else _find_type(changes, name, members.find(name))
            if kind is not None:
                found[name] = _merge_types(found.get(name, kind), kind)
    return found


def _find_type(changes: Changes, name: str, spans: Spans) -> DataType | None:
    """Return the type of a column; None if it has neither a type nor a value."""
    types = [changes.types[code] for code in np.unique(changes.type_codes).tolist()]
    known = [t.columns[name].data_type for t in types if name in t.columns]
    declared: list[DataType] = [data_type for data_type in known if data_type is not None]
    if declared:
        return reduce(_merge_types, declared)
    if changes.is_extended_json:
        return _find_document_type(changes, spans)
    return _find_plain_type(changes, spans)


def _find_plain_type(changes: Changes, spans: Spans) -> DataType | None:
    """Return the type that the values show."""
    kinds = changes.index.kinds(spans)
    present = set(np.unique(kinds[kinds > NULL]).tolist())
    if not present:
        return None
    if present == {BOOLEAN}:
        return dt.BooleanType()
    if present == {NUMBER}:
        is_whole = pc.all(pc.match_substring_regex(changes.index.texts(spans), r"^-?[0-9]{1,18}$")).as_py()
        return dt.BigIntType() if is_whole else dt.DoubleType()
    return dt.VarCharType()


def _find_document_type(changes: Changes, spans: Spans) -> DataType | None:
    """Return the type of values of which some may be wrapped in extended JSON."""
    values = unwrap_values(changes.index, spans)
    is_wrapped = values.starts != spans.starts
    wrappers = set(changes.index.members(spans.take(is_wrapped)).names) - {"$undefined"}
    plain = _find_plain_type(changes, spans.take(~is_wrapped))
    wrapped = [_WRAPPED_TYPES.get(name, dt.VarCharType()) for name in wrappers]
    found = wrapped if plain is None else [*wrapped, plain]
    return reduce(_merge_types, found) if found else None
