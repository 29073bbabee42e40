"""Events of Canal and Maxwell, and plain JSON objects with a member for the operation.

The row before an update of Canal and Maxwell contains only the columns that changed.

Source: the documentation of Canal's flat messages, and of Maxwell's output.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon.domain.cdc.changes import (
    IGNORED,
    REFUSED,
    Changes,
    Flags,
    Integers,
    Operation,
    Operations,
    Rejections,
    SourceChanges,
    check_rows,
    find_operations,
    join_names,
)
from paimon.domain.cdc.json_index import ARRAY, OBJECT, STRING, JsonIndex, Members, Spans
from paimon.domain.cdc.source_types import Encoding, SourceTypes, parse_mysql_types

_CANAL_OPERATIONS = {
    "INSERT": Operation.INSERT, "UPDATE": Operation.UPDATE, "DELETE": Operation.DELETE, "TRUNCATE": REFUSED,
    **dict.fromkeys(("CREATE", "ALTER", "ERASE", "QUERY", "RENAME", "CINDEX", "DINDEX"), IGNORED),
}  # fmt: skip
_MAXWELL_OPERATIONS = {
    "insert": Operation.INSERT, "bootstrap-insert": Operation.INSERT,
    "update": Operation.UPDATE, "delete": Operation.DELETE,
    **dict.fromkeys(("bootstrap-start", "bootstrap-complete", "heartbeat"), IGNORED),
    **dict.fromkeys(("table-create", "table-alter", "table-drop"), IGNORED),
    **dict.fromkeys(("database-create", "database-alter", "database-drop"), IGNORED),
}  # fmt: skip
PLAIN_OPERATIONS = {
    **dict.fromkeys(("+I", "i", "insert", "c", "create", "r", "read"), Operation.INSERT),
    **dict.fromkeys(("+U", "u", "update", "upsert"), Operation.UPDATE),
    **dict.fromkeys(("-D", "d", "delete"), Operation.DELETE),
    "-U": IGNORED,
}  # fmt: skip
"""The texts of a plain operation column, without regard to the case of letters."""
_CANAL_TYPES = SourceTypes(byte_encoding=Encoding.LATIN1)


def read_canal(index: JsonIndex, events: Integers) -> SourceChanges:
    """Read Canal events by their numbers; each has the rows of one statement."""
    root, rejected = index.members(index.roots), Rejections()
    is_ddl = np.asarray(pc.fill_null(pc.equal(index.texts(root.find("isDdl")), "true"), False))
    operations = _read_type(index, root, _CANAL_OPERATIONS, is_ddl)
    _reject_unknown(events, operations, "type", rejected)
    data, old = (index.keep(root.find(name), ARRAY) for name in ("data", "old"))
    owners, rows = index.elements(data)
    old_owners, old_rows = index.elements(old)
    counts, old_counts = (np.bincount(o, minlength=len(events)) for o in (owners, old_owners))
    is_change = (operations >= 0) & (operations <= Operation.DELETE)
    is_update = operations == Operation.UPDATE
    rejected.add(events[is_change & (counts == 0)], "Member 'data' is not a list of rows.")
    has_old = old.starts >= 0
    uneven = is_update & has_old & (counts != old_counts)
    rejected.add(events[uneven], "Members 'data' and 'old' have different numbers of rows.")
    kept = is_change & ~rejected.contains(events)
    before = Spans.absent(len(rows))
    paired = (kept & is_update & has_old)[owners]
    pairs = old_rows.take((kept & is_update & has_old)[old_owners])
    before.starts[paired], before.ends[paired] = pairs.starts, pairs.ends
    before = index.keep(before, OBJECT)
    types, codes = _read_mysql_types(index, root)
    sources = join_names(index.texts(root.find("database")), index.texts(root.find("table")))
    parts = (events[owners], sources.take(pa.array(owners)), operations[owners])
    made = _make_changes(index, parts, (before, rows), index.roots.take(owners), (types, codes[owners]))
    return _finish(made.take(kept[owners]), rejected, operations)


def _read_mysql_types(index: JsonIndex, root: Members) -> tuple[tuple[SourceTypes, ...], Integers]:
    texts = index.texts(index.keep(root.find("mysqlType"), OBJECT)).dictionary_encode("encode")
    types = [
        _CANAL_TYPES if text is None else SourceTypes(parse_mysql_types(text), byte_encoding=Encoding.LATIN1)
        for text in texts.dictionary.to_pylist()
    ]
    return tuple(types), np.asarray(texts.indices).astype(np.int64)


def read_maxwell(index: JsonIndex, events: Integers) -> SourceChanges:
    """Read Maxwell events by their numbers; each has one row."""
    root, rejected = index.members(index.roots), Rejections()
    operations = _read_type(index, root, _MAXWELL_OPERATIONS, np.zeros(len(events), bool))
    _reject_unknown(events, operations, "type", rejected)
    is_change = (operations >= 0) & (operations <= Operation.DELETE)
    data, old = (root.find(name) for name in ("data", "old"))
    sources = join_names(index.texts(root.find("database")), index.texts(root.find("table")))
    made = _make_changes(index, (events, sources, operations), (index.keep(old, OBJECT), data), index.roots)
    return _finish(made.take(is_change), rejected, operations)


def read_plain(index: JsonIndex, events: Integers, operation_column: str) -> SourceChanges:
    """Read JSON objects, by event number, that have the columns of a row and a member for the operation."""
    root, rejected = index.members(index.roots), Rejections()
    operations = find_plain_operations(index.texts(root.find(operation_column)))
    _reject_unknown(events, operations, operation_column, rejected)
    is_change = (operations >= 0) & (operations <= Operation.DELETE)
    sources = pa.array([""] * len(events), pa.string())
    none = Spans.absent(len(events))
    made = _make_changes(index, (events, sources, operations), (none, index.roots), index.roots, None, operation_column)
    return _finish(made.take(is_change), rejected, operations)


def find_plain_operations(texts: pa.StringArray) -> Operations:
    """Return the operations of a plain operation column."""
    known = {name.lower(): operation for name, operation in PLAIN_OPERATIONS.items()}
    return find_operations(pc.utf8_lower(texts), known)


def _read_type(index: JsonIndex, root: Members, known: dict[str, int], is_ddl: Flags) -> Operations:
    names = index.texts(index.keep(root.find("type"), STRING))
    operations = find_operations(names, known)
    return np.where(is_ddl & (operations != REFUSED), IGNORED, operations).astype(np.int8)


def _reject_unknown(events: Integers, operations: Operations, member: str, rejected: Rejections) -> None:
    rejected.add(events[operations == REFUSED], "TRUNCATE is not applied to a table.")
    rejected.add(events[operations < 0], f"Member {member!r} is not a known operation.")


def _make_changes(
    index: JsonIndex,
    parts: tuple[Integers, pa.StringArray, Operations],
    rows: tuple[Spans, Spans],
    bodies: Spans,
    types: tuple[tuple[SourceTypes, ...], Integers] | None = None,
    operation_column: str | None = None,
) -> Changes:
    """Return changes; the row of a delete is the one before it."""
    events, sources, operations = parts
    is_delete = operations == Operation.DELETE
    old, data = rows
    before = Spans(np.where(is_delete, data.starts, old.starts), np.where(is_delete, data.ends, old.ends))
    after = Spans(np.where(is_delete, -1, data.starts), np.where(is_delete, -1, data.ends))
    known, codes = types or ((SourceTypes(),), np.zeros(len(events), np.int64))
    omitted = frozenset() if operation_column is None else frozenset([operation_column])
    return Changes(
        index, events, sources, operations, before, after, index, bodies, True, known, codes, omitted
    )  # fmt: skip


def _finish(changes: Changes, rejected: Rejections, operations: Operations) -> SourceChanges:
    bad = check_rows(changes.index, changes.events, changes.operations, (changes.before, changes.after))
    rejected.reasons.update(bad.reasons)
    kept = changes.take(~rejected.contains(changes.events))
    return SourceChanges((kept,) if len(kept) else (), rejected, int((operations == IGNORED).sum()))
