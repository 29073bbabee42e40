"""Changes of rows, as all formats of events describe them: an operation, and the row before and after it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from attrs import evolve, field, frozen

from paimon.capture.json_index import OBJECT, JsonIndex, Spans
from paimon.capture.source_types import SourceTypes

Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Operations = npt.NDArray[np.int8]


class Operation(IntEnum):
    """What a source did to a row."""

    INSERT = 0
    UPDATE = 1
    DELETE = 2


IGNORED = 3
"""Represents an event that changes no row."""
REFUSED = 4
"""Represents an event that cannot be applied to a table, such as TRUNCATE."""
UNKNOWN = -1


@frozen(eq=False)
class Changes:
    """Row changes in the order of their events. Arrays have one value for each change."""

    # the text with the rows
    index: JsonIndex
    # the number of the event of each change
    events: Integers
    # the source table of each change; empty if the format has none
    sources: pa.StringArray
    # the values of `Operation`
    operations: Operations
    # the rows before each change; absent if the event has none
    before: Spans
    # the rows after each change; absent if the event has none
    after: Spans
    # the text with the events
    body_index: JsonIndex
    # the event of each change, in `body_index`
    bodies: Spans
    # whether `before` has only the columns that an update changed
    is_overlay: bool
    types: tuple[SourceTypes, ...]
    # the position of the types of each change in `types`
    type_codes: Integers
    # members of the rows that are not columns
    omitted: frozenset[str] = frozenset()

    def __len__(self) -> int:
        return len(self.events)

    @property
    def is_extended_json(self) -> bool:
        """Whether the rows are documents in MongoDB's extended JSON."""
        return self.types[0].is_extended_json

    def take(self, chosen: Flags) -> Changes:
        """Return some changes."""
        return evolve(
            self,
            events=self.events[chosen],
            sources=self.sources.filter(pa.array(chosen)),
            operations=self.operations[chosen],
            before=self.before.take(chosen),
            after=self.after.take(chosen),
            bodies=self.bodies.take(chosen),
            type_codes=self.type_codes[chosen],
        )


@frozen(eq=False)
class Rejections:
    """Why events cannot be read, by event; the first reason of an event counts. A state that readers add to."""

    reasons: dict[int, str] = field(factory=dict)

    def add(self, events: Iterable[int], reason: str) -> None:
        """Add events with one reason."""
        for event in events:
            self.reasons.setdefault(int(event), reason)

    def contains(self, events: Integers) -> Flags:
        """Return which events are rejected."""
        return np.isin(events, np.fromiter(self.reasons, np.int64, len(self.reasons)))


@frozen(eq=False)
class SourceChanges:
    """The changes and the rejected events of one batch."""

    # the changes of one group lie in one text
    groups: tuple[Changes, ...]
    # the events that cannot be read
    rejected: Rejections
    # the number of events that change no row, such as heartbeats
    ignored: int


def find_operations(names: pa.StringArray, known: Mapping[str, int]) -> Operations:
    """Return the operation of each name; `UNKNOWN` for null and for other names."""
    found = np.asarray(pc.fill_null(pc.index_in(names, pa.array(known, pa.string())), -1))
    codes = np.append(np.fromiter(known.values(), np.int8, len(known)), np.int8(UNKNOWN))
    return np.asarray(codes[found])


def join_names(*parts: pa.StringArray) -> pa.StringArray:
    """Return ``database.table`` of texts, without the parts that are null."""
    joined = pc.fill_null(parts[0], "")
    for part in parts[1:]:  # the join of Arrow that skips nulls leaves out elements without any part
        both = pc.binary_join_element_wise(joined, part, ".")
        joined = pc.if_else(part.is_null(), joined, pc.if_else(pc.equal(joined, ""), part, both))
    return joined


def has_object(index: JsonIndex, spans: Spans) -> Flags:
    """Return which values are objects."""
    return np.asarray(index.kinds(spans) == OBJECT)


def check_rows(index: JsonIndex, events: Integers, operations: Operations, rows: tuple[Spans, Spans]) -> Rejections:
    """Return the events to reject because their operation lacks its row, before or after the change."""
    before, after = (has_object(index, spans) for spans in rows)
    rejected = Rejections()
    needs_after = (operations == Operation.INSERT) | (operations == Operation.UPDATE)
    rejected.add(events[needs_after & ~after], "The event has no row after the change.")
    rejected.add(events[(operations == Operation.DELETE) & ~before], "The delete has no row before the change.")
    return rejected
