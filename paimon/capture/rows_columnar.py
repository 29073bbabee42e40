"""The rows that changes write to a table, with their kinds.

Invariant: an event is written as a whole or rejected as a whole.

Source: the documentation of Debezium's connector for PostgreSQL on toasted values.
"""

# An image is one row to write: the row before a change, or the row after it. `_Images` numbers the images of all
# changes once, in the order of the events; then each column is converted for all images at once.
#
#     operation   before            after             written
#     INSERT                        {id: 1, v: 5}     +I {1, 5}
#     UPDATE      {id: 1, v: 5}     {id: 1, v: 6}     -U {1, 5}, +U {1, 6}
#     UPDATE                        {id: 1, v: 7}     +U {1, 7}
#     UPDATE      {id: 1}           {id: 1, v: 8}     +U {1, 8}                (the row before is partial)
#     UPDATE      {id: 1, v: 8}     {id: 2, v: 8}     -D {1, 8}, +I {2, 8}     (the primary key changes)
#     DELETE      {id: 2}                             -D {2, null}
#
# A row before an update is whole if it has the columns of the row after it, and values for NOT NULL columns. Canal and
# Maxwell write only the columns that changed (`is_overlay`): the others are taken from the row after it. Of a delete
# only the key has a meaning, so its other NOT NULL columns get any value.
#
# A value that does not fit raises nothing: the converter returns null and a flag, and the event goes to `rejected` with
# the reason. All columns are converted, and the images of rejected events are left out last, also those whose own
# values are good. What only the conversion of whole rows finds is isolated by halves (`conform_isolating`).

from __future__ import annotations

import base64
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from attrs import frozen

from paimon.capture.event_formats import FRAME_PREFIX, EventFormat, TargetTable
from paimon.capture.json_index import ARRAY, NULL, OBJECT, STRING, JsonIndex, Members, Spans, unwrap_values
from paimon.capture.row_changes import Changes, Flags, Integers, Operation, Rejections
from paimon.capture.source_types import SourceType, SourceTypes
from paimon.capture.values_columnar import convert_values
from paimon.domain.columns.conform import conform_to_fields, fill_nulls
from paimon.domain.columns.convert import convert_array
from paimon.domain.errors import InvalidRequest, did_you_mean
from paimon.domain.row.kinds import KIND_TEXTS, RowKind
from paimon.domain.row.literals import parse_literal
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.types import data_types as dt
from paimon.domain.types.arrow import arrow_schema, arrow_type
from paimon.domain.types.data_types import DataField, DataType
from paimon.domain.types.type_text import format_type

KIND_COLUMN = "__paimon_row_kind"
"""The column with the row kinds of converted rows."""
_SHOWN_CHARACTERS = 60
_EPOCH = "1970-01-01"
UNAVAILABLE = "__debezium_unavailable_value"
_UNAVAILABLE_BYTES = UNAVAILABLE.encode()
_UNAVAILABLE_TEXTS = pa.array([UNAVAILABLE, base64.b64encode(_UNAVAILABLE_BYTES).decode()])
_UNAVAILABLE_NUMBERS = f"[{','.join(map(str, _UNAVAILABLE_BYTES))}]"
"""The placeholder that Debezium writes for a large value that an update in PostgreSQL did not change."""


@frozen(eq=False)
class TableRows:
    """The rows that changes write to a table."""

    # the columns of the table, and `KIND_COLUMN`
    rows: pa.Table
    # the event number of each row
    events: Integers


@frozen(eq=False)
class _Images:
    """The rows before and after changes, in the order in which they are written."""

    changes: Changes
    change_codes: Integers
    is_before: Flags
    before: Members
    after: Members

    @classmethod
    def of(cls, changes: Changes) -> _Images:
        has_before = changes.before.starts >= 0
        is_update = changes.operations == Operation.UPDATE
        writes_before = (changes.operations == Operation.DELETE) | (is_update & has_before)
        writes_after = changes.operations != Operation.DELETE
        places = np.flatnonzero(np.stack([writes_before, writes_after], axis=1).ravel())
        members = (changes.index.members(spans) for spans in (changes.before, changes.after))
        return cls(changes, places // 2, places % 2 == 0, *members)

    @property
    def events(self) -> Integers:
        """For each row the number of its event."""
        return self.changes.events[self.change_codes]

    @property
    def pairs(self) -> Integers:
        """The positions of rows before an update, which its row after it follows."""
        return np.flatnonzero(self.is_before & (self.changes.operations[self.change_codes] == Operation.UPDATE))

    @property
    def names(self) -> list[str]:
        """The names of the columns, in the order of their first occurrence."""
        found = dict.fromkeys((*self.after.names, *self.before.names))
        return [name for name in found if name not in self.changes.omitted]

    def values(self, name: str) -> tuple[Spans, Flags]:
        """Return the values of a column, and which rows before updates lack it although those after have it."""
        before, after = self.before.find(name), self.after.find(name)
        if self.changes.is_overlay:
            before = before.replace_absent(after)
        lacks = (before.starts < 0) & (after.starts >= 0)
        spans = Spans(
            np.where(self.is_before, before.starts[self.change_codes], after.starts[self.change_codes]),
            np.where(self.is_before, before.ends[self.change_codes], after.ends[self.change_codes]),
        )
        return spans, lacks[self.change_codes] & self.is_before


def build_rows(
    changes: Changes, target: TargetTable, event_format: EventFormat, events: pa.Table, rejected: Rejections
) -> TableRows:
    """Convert the changes of one table to rows to write; events that do not fit go to `rejected`."""
    images, schema = _Images.of(changes), target.schema
    fields = schema.fields_by_name
    columns: dict[str, pa.Array] = {}
    is_partial = np.zeros(len(images.events), bool)
    omitted = event_format.metadata.keys() | (event_format.list_omitted(changes.omitted) - fields.keys())
    is_undecided = True
    for name in images.names:
        if name in omitted or (name not in fields and not is_undecided):
            continue
        spans, lacks = images.values(name)
        if name not in fields:
            if changes.is_extended_json:
                spans = unwrap_values(changes.index, spans)
            if _reject_unknown_column(images, spans, name, target.name, rejected):
                is_undecided = not rejected.contains(images.events).all()
            continue
        columns[name] = _convert_column(images, spans, fields[name], rejected)
        is_partial |= lacks
        if not fields[name].type.nullable:
            is_partial |= images.is_before & np.asarray(columns[name].is_null())
    for name, path in event_format.metadata.items():
        if path.startswith(FRAME_PREFIX):
            columns[name] = _take_frame_column(images, events, path.removeprefix(FRAME_PREFIX), fields[name])
        else:
            columns[name] = _convert_metadata(images, path, fields[name], rejected)
    if target.is_insert_only:
        rejected.add(changes.events[changes.operations != Operation.INSERT], target.refusal)
    kinds, written = _find_kinds(images, [columns[k] for k in schema.primary_keys if k in columns], is_partial)
    columns = {name: values.filter(pa.array(written)) for name, values in columns.items()}
    return _finish_rows(columns, target, kinds[written], images.events[written], rejected)


def _finish_rows(
    columns: dict[str, pa.Array],
    target: TargetTable,
    kinds: npt.NDArray[np.int8],
    events: Integers,
    rejected: Rejections,
) -> TableRows:
    """Check the rows, and return those of events that are not rejected."""
    _fill_deletes(columns, target.schema, kinds)
    rows = _check_rows(columns, target.schema, events, rejected)
    good = ~rejected.contains(events)
    made = conform_isolating(rows.filter(pa.array(good)), events[good], target, rejected)
    kept = ~rejected.contains(events)
    texts = pa.array(KIND_TEXTS).take(pa.array(kinds[kept]))
    return TableRows(made.append_column(KIND_COLUMN, texts), events[kept])


def _reject_unknown_column(images: _Images, spans: Spans, name: str, table_name: str, rejected: Rejections) -> bool:
    """Reject the events with a value for an unknown column; return whether there are any."""
    has_value = images.changes.index.kinds(spans) > NULL
    reason = f"Table {table_name!r} has no column {name!r}: add it, or pass merge_schema=True."
    rejected.add(np.unique(images.events[has_value]), reason)
    return bool(has_value.any())


def _convert_column(images: _Images, spans: Spans, column: DataField, rejected: Rejections) -> pa.Array:
    made = _convert_by_type(images, spans, column)
    return _reject_bad(images, images.changes.index, spans, made, column, rejected)


def _convert_by_type(images: _Images, spans: Spans, column: DataField) -> tuple[pa.Array, Flags]:
    """Convert the values of each source type; a batch rarely has more than one."""
    changes, codes = images.changes, images.changes.type_codes[images.change_codes]
    kind = arrow_type(column.type)
    if not len(codes):
        return pa.nulls(0, kind), np.zeros(0, bool)
    parts, good, order = [], np.zeros(len(codes), bool), []
    for source, positions in _group_types(changes.types, codes, column):
        found = convert_values(changes.index, spans.take(positions), source, column.type)
        parts.append(found.values)
        good[positions] = found.good
        order.append(positions)
    if len(parts) == 1:
        return parts[0], good
    return pa.concat_arrays(parts).take(pa.array(np.argsort(np.concatenate(order), kind="stable"))), good


def _group_types(
    types: tuple[SourceTypes, ...], codes: Integers, column: DataField
) -> Iterator[tuple[SourceType, Integers]]:
    found: dict[SourceType, list[int]] = {}
    for code in np.unique(codes).tolist():
        found.setdefault(types[code].of_column(column.name, column.type), []).append(code)
    for source, group in found.items():
        yield source, np.flatnonzero(np.isin(codes, group))


def _reject_bad(
    images: _Images,
    index: JsonIndex,
    spans: Spans,
    made: tuple[pa.Array, Flags],
    column: DataField,
    rejected: Rejections,
) -> pa.Array:
    values, good = made
    bad = np.flatnonzero(~good)
    if index is images.changes.index:
        unknown = find_unavailable(index, spans, column.type)
        reason = f"Column {column.name!r} has no value in the event: set REPLICA IDENTITY FULL in PostgreSQL."
        rejected.add(images.events[unknown], reason)
    if len(bad):
        texts = index.texts(spans.take(bad)).to_pylist()
        for event, text in zip(images.events[bad].tolist(), texts, strict=True):
            shown = str(text)[:_SHOWN_CHARACTERS]
            reason = f"Value {shown!r} of column {column.name!r} does not fit {format_type(column.type)}."
            rejected.add([event], reason)
    return values


def find_unavailable(index: JsonIndex, spans: Spans, target: DataType) -> npt.NDArray[np.bool_]:
    """Mark values that are the placeholder as text or base64, or an array or object of it alone."""
    if isinstance(target, (*dt.CHARACTER_TYPES, *dt.BYTES_TYPES)):
        known = _UNAVAILABLE_TEXTS[:1] if isinstance(target, dt.CHARACTER_TYPES) else _UNAVAILABLE_TEXTS
        return np.asarray(pc.is_in(index.texts(index.keep(spans, STRING)), known))
    if not isinstance(target, (dt.ArrayType, dt.MapType)):
        return np.zeros(len(spans), bool)
    texts = pc.replace_substring_regex(index.texts(index.keep(spans, ARRAY, OBJECT)), r"\s", "")
    single = pc.match_substring_regex(texts, rf'^[\[{{]"{UNAVAILABLE}"(:"{UNAVAILABLE}")?[\]}}]$')
    return np.asarray(pc.fill_null(pc.or_(single, pc.equal(texts, _UNAVAILABLE_NUMBERS)), False))


def _convert_metadata(images: _Images, path: str, column: DataField, rejected: Rejections) -> pa.Array:
    """Return the member of the event at a path, for each row."""
    index = images.changes.body_index
    spans = images.changes.bodies
    for name in path.split("."):
        spans = index.members(index.keep(spans, OBJECT)).find(name)
    spans = spans.take(images.change_codes)
    found = convert_values(index, spans, SourceType(), column.type)
    return _reject_bad(images, index, spans, (found.values, found.good), column, rejected)


def _take_frame_column(images: _Images, events: pa.Table, name: str, column: DataField) -> pa.Array:
    """Return a column of the events, for each row."""
    if name not in events.schema.names:
        raise InvalidRequest(
            f"The events have no column {name!r} for metadata.",
            subject="metadata",
            hint=did_you_mean(name, events.schema.names) or "use another column",
        )
    chunks = [convert_array(chunk, column.type, column.name) for chunk in events[name].chunks]
    return pa.chunked_array(chunks, arrow_type(column.type)).combine_chunks().take(pa.array(images.events))


def _find_kinds(images: _Images, keys: list[pa.Array], is_partial: Flags) -> tuple[npt.NDArray[np.int8], Flags]:
    """Return the kinds of the rows, and which rows are written."""
    by_operation = np.array([RowKind.INSERT, RowKind.UPDATE_AFTER, RowKind.DELETE], np.int8)
    kinds = by_operation[images.changes.operations[images.change_codes]]
    pairs = images.pairs
    kinds[pairs] = RowKind.UPDATE_BEFORE
    moved = np.zeros(len(pairs), bool)
    for key in keys:
        old, new = key.take(pa.array(pairs)), key.take(pa.array(pairs + 1))
        moved |= np.asarray(pc.fill_null(pc.not_equal(old, new), False))
    kinds[pairs[moved]] = RowKind.DELETE
    kinds[pairs[moved] + 1] = RowKind.INSERT
    written = np.ones(len(kinds), bool)
    written[pairs[~moved & is_partial[pairs]]] = False
    return kinds, written


def _fill_deletes(columns: dict[str, pa.Array], schema: TableSchema, kinds: npt.NDArray[np.int8]) -> None:
    """Give deletes a value for NOT NULL columns that the event lacks; only the key of a delete has a meaning."""
    is_delete = kinds == RowKind.DELETE
    if not schema.primary_keys or not is_delete.any():
        return
    for column in schema.fields:
        values = columns.get(column.name)
        if column.type.nullable or column.name in schema.primary_keys:
            continue
        kind = arrow_type(column.type)
        values = pa.nulls(len(kinds), kind) if values is None else values
        filler = make_filler(column.type)
        if filler is not None and values.null_count:
            filled = fill_nulls(values, filler, column.type)
            columns[column.name] = pc.if_else(pa.array(is_delete), filled, values)


def _check_rows(columns: dict[str, pa.Array], schema: TableSchema, events: Integers, rejected: Rejections) -> pa.Table:
    """Reject rows with nulls in NOT NULL columns and with texts that are too long, and return all rows."""
    for column in schema.fields:
        values = columns.get(column.name)
        if not _may_lack(column):
            missing = np.ones(len(events), bool) if values is None else np.asarray(values.is_null())
            rejected.add(events[missing], f"Column {column.name!r} is NOT NULL, and the event has no value for it.")
        if values is not None and isinstance(column.type, (*dt.CHARACTER_TYPES, *dt.BYTES_TYPES)):
            _reject_long(column, column.type.length, values, events, rejected)
    needed = [f for f in schema.fields if f.name in columns or not _may_lack(f)] or list(schema.fields[:1])
    return pa.table({f.name: columns.get(f.name, pa.nulls(len(events), arrow_type(f.type))) for f in needed})


def _may_lack(column: DataField) -> bool:
    return column.type.nullable or column.default_value is not None


def _reject_long(column: DataField, length: int, values: pa.Array, events: Integers, rejected: Rejections) -> None:
    is_text = isinstance(column.type, dt.CHARACTER_TYPES)
    lengths = pc.utf8_length(values) if is_text else pc.binary_length(values)
    long = np.asarray(pc.fill_null(pc.greater(lengths, length), False))
    rejected.add(events[long], f"A value of column {column.name!r} is longer than {format_type(column.type)}.")


def conform_isolating(rows: pa.Table, events: Integers, target: TargetTable, rejected: Rejections) -> pa.Table:
    """Conform rows to a table, and add misfits to `rejected` by halving; `events` numbers the rows."""
    fields, what = target.schema.fields, f"table {target.name}"
    try:
        return conform_to_fields(rows, fields, what)
    except InvalidRequest as error:
        different = np.unique(events)
        if len(different) == 1:
            rejected.add(different, error.message)
            return arrow_schema(fields).empty_table()
    half = int(np.searchsorted(events, different[len(different) // 2]))
    parts = (slice(0, half), slice(half, len(events)))
    return pa.concat_tables(conform_isolating(rows[part], events[part], target, rejected) for part in parts)


def make_filler(data_type: DataType) -> object | None:
    """Return a value of a type, for columns of deletes that have no meaning; None for nested types."""
    if isinstance(data_type, dt.CHARACTER_TYPES):
        return ""
    if isinstance(data_type, (*dt.BYTES_TYPES, dt.BlobType)):
        return b""
    if isinstance(data_type, (*dt.NESTED_TYPES, dt.VariantType)):
        return None
    texts = {dt.BooleanType: "false", dt.TimeType: "00:00", **dict.fromkeys((dt.DateType, *dt.TIMESTAMP_TYPES), _EPOCH)}
    value: object = parse_literal(texts.get(type(data_type), "0"), data_type)
    return value
