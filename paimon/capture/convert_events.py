"""Events of change data capture as rows of tables: the function that embedded code and Spark's tasks call.

Invariant: each event is in exactly one of these: the rows of one table, the rejected events, the skipped and ignored
ones. An event that cannot be read does not affect others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from attrs import evolve, frozen

from paimon.capture.event_formats import (
    COLUMNS_FORMAT,
    SKIPPED,
    EventFormat,
    Routes,
    TargetTable,
    build_dead_letters,
    find_keys,
    find_texts,
)
from paimon.capture.json_formats import find_plain_operations, read_canal, read_debezium, read_maxwell, read_plain
from paimon.capture.json_index import index_objects
from paimon.capture.row_changes import IGNORED, Changes, Operation, Rejections, SourceChanges
from paimon.capture.rows_columnar import KIND_COLUMN, TableRows, build_rows, conform_isolating
from paimon.domain.errors import InvalidRequest, did_you_mean

_KINDS = ("+I", "+U", "-D")
_BATCH_BYTES = 2 * 1024 * 1024
"""Text that is read at once: the index of a text takes several times its size, and should fit a cache."""


@frozen
class EventCounts:
    """How many events there were."""

    events: int = 0
    # events that cannot be read
    rejected: int = 0
    # events that change no row, or belong to a source table that is skipped
    ignored: int = 0

    def __add__(self, other: EventCounts) -> EventCounts:
        return EventCounts(self.events + other.events, self.rejected + other.rejected, self.ignored + other.ignored)


@frozen(eq=False)
class ConvertedEvents:
    """The rows that the events of a batch write, and the rejected events."""

    # by number of the table, its rows with their row kinds, see `paimon.capture.rows_columnar`
    rows: Mapping[int, pa.Table]
    # the events that cannot be read, with the columns of a dead-letter table
    rejected: pa.Table
    counts: EventCounts


def convert_events(events: pa.Table, event_format: EventFormat, routes: Routes, first_position: int) -> ConvertedEvents:
    """Convert a batch of events to the rows of each table, in the order of the events.

    Events are text in column `value`, next to `key`, `topic`, `partition` and `offset` where these exist. In the format
    `columns`, they are the columns of the rows.
    """
    if event_format.name == COLUMNS_FORMAT:
        rows, reasons, ignored = convert_columns(events, event_format.operation_column, routes.tables[0])
        found = {0: rows} if rows.num_rows else {}
        return _collect(events, found, reasons, ignored, first_position)
    changes = read_changes(events, event_format)
    rejected = changes.rejected
    parts: dict[int, list[TableRows]] = {}
    skipped = 0
    for group in changes.groups:
        numbers = _find_tables(group, routes, rejected)
        skipped += len(np.unique(group.events[numbers == SKIPPED]))
        for number in np.unique(numbers[numbers >= 0]).tolist():
            target = routes.tables[number]
            chosen = group.take(numbers == number)
            made = build_rows(chosen, target, event_format, events, rejected)
            if made.rows.num_rows:
                parts.setdefault(number, []).append(made)
    joined = {number: _join_groups(groups) for number, groups in parts.items()}
    return _collect(events, joined, rejected.reasons, changes.ignored + skipped, first_position)


def convert_columns(
    events: pa.Table, operation_column: str, target: TargetTable
) -> tuple[pa.Table, dict[int, str], int]:
    """Convert rows; return them with row kinds, reasons of rejected rows, and the number of ignored ones."""
    if operation_column not in events.schema.names:
        raise InvalidRequest(
            f"The events have no operation column {operation_column!r}.",
            subject=operation_column,
            hint=did_you_mean(operation_column, events.schema.names) or "pass operation_column='…'",
        )
    names = events[operation_column].combine_chunks().cast(pa.string())
    operations = find_plain_operations(names)
    rejected, numbers = Rejections(), np.arange(events.num_rows)
    rejected.add(numbers[operations < 0], f"Column {operation_column!r} is not a known operation.")
    is_change = (operations >= 0) & (operations < IGNORED)
    if target.is_insert_only:
        rejected.add(numbers[is_change & (operations != Operation.INSERT)], target.refusal)
        is_change &= operations == Operation.INSERT
    rows = events.drop_columns([operation_column]).filter(pa.array(is_change))
    made = conform_isolating(rows, numbers[is_change], target, rejected)
    kept = is_change & ~rejected.contains(numbers)
    kinds = pa.array(_KINDS).take(pa.array(operations[kept].astype(np.int64)))
    ignored = int((operations == IGNORED).sum())
    return made.append_column(KIND_COLUMN, pc.cast(kinds, pa.string())), rejected.reasons, ignored


def _collect(
    events: pa.Table, rows: Mapping[int, pa.Table], reasons: dict[int, str], ignored: int, first_position: int
) -> ConvertedEvents:
    letters = build_dead_letters(events, reasons, first_position)
    return ConvertedEvents(rows, letters, EventCounts(events.num_rows, len(reasons), ignored))


def read_changes(events: pa.Table, event_format: EventFormat) -> SourceChanges:
    """Read the changes that events describe; events without a text are ignored."""
    texts = _trim(find_texts(events))
    present = np.flatnonzero(np.asarray(pc.fill_null(pc.greater(pc.binary_length(texts), 0), False)))
    index, good = index_objects(texts.take(pa.array(present)))
    rejected = Rejections()
    rejected.add(present[~good], "The event is not a JSON object.")
    numbers = present[good]
    match event_format.name:
        case "debezium-json":
            found = read_debezium(index, numbers, find_keys(events))
        case "canal-json":
            found = read_canal(index, numbers)
        case "maxwell-json":
            found = read_maxwell(index, numbers)
        case _:
            found = read_plain(index, numbers, event_format.operation_column)
    found.rejected.reasons.update(rejected.reasons)
    return evolve(found, ignored=found.ignored + events.num_rows - len(present))


def _trim(texts: pa.Array) -> pa.Array:
    """Return texts without blanks and line breaks around them."""
    data = texts.cast(pa.binary())
    padded = pc.or_(pc.match_substring_regex(data, r"^[ \t\r\n]"), pc.match_substring_regex(data, r"[ \t\r\n]$"))
    if not pc.any(padded).as_py():
        return data
    return pc.replace_substring_regex(data, r"^[ \t\r\n]+|[ \t\r\n]+$", "")


def _find_tables(group: Changes, routes: Routes, rejected: Rejections) -> npt.NDArray[np.int64]:
    """Return for each change the number of its table."""
    if routes.numbers is None:
        return np.zeros(len(group), np.int64)
    names = list(routes.numbers)
    known = np.append(np.fromiter(routes.numbers.values(), np.int64, len(names)), SKIPPED - 1)
    found = np.asarray(pc.fill_null(pc.index_in(group.sources, pa.array(names, pa.string())), -1))
    numbers = known[found]
    for source in pc.unique(group.sources.filter(pa.array(numbers < SKIPPED))).to_pylist():
        chosen = np.asarray(pc.equal(group.sources, source))
        rejected.add(np.unique(group.events[chosen]), f"No table is given for the source table {source!r}.")
    return np.asarray(numbers)


def _join_groups(groups: list[TableRows]) -> pa.Table:
    """Return the rows of several groups in the order of their events."""
    if len(groups) == 1:
        return groups[0].rows
    order = np.argsort(np.concatenate([group.events for group in groups]), kind="stable")
    return pa.concat_tables([group.rows for group in groups]).take(pa.array(order))


def split_events(events: pa.Table) -> Iterator[pa.Table]:
    """Yield events in parts that are small enough to be read at once."""
    if not events.num_rows:
        return
    rows = max(1, events.num_rows * _BATCH_BYTES // max(events.nbytes, 1))
    for start in range(0, events.num_rows, rows):
        yield events.slice(start, rows)
