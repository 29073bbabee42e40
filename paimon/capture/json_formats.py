"""Events as JSON: Debezium's, Canal's and Maxwell's, and plain objects with a member for the operation.

The relational connectors of Debezium write rows as objects, with and without the schema of Kafka Connect. That of
MongoDB writes documents as texts in extended JSON. A delete without a row is read from the key of the message. The row
before an update of Canal and Maxwell contains only the columns that changed.

Source: the documentation of Debezium's connectors for MySQL, PostgreSQL and MongoDB on change events, of Canal's flat
messages, and of Maxwell's output.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from attrs import frozen

from paimon.capture.json_index import ABSENT, ARRAY, NULL, OBJECT, STRING, JsonIndex, Members, Spans, index_objects
from paimon.capture.row_changes import (
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
from paimon.capture.source_types import Encoding, SourceTypes, parse_connect_types, parse_mysql_types

_DEBEZIUM_OPERATIONS = {
    "c": Operation.INSERT, "r": Operation.INSERT, "u": Operation.UPDATE, "d": Operation.DELETE,
    "t": REFUSED, "m": IGNORED,
}  # fmt: skip
_WITHOUT_OPERATION = ("ddl", "tableChanges", "status", "ts_ms")
"""Members of events that change no row: changes of schemas, transactions, heartbeats."""
_MICROS_CONNECTORS = ("mysql", "mariadb")
_DOCUMENT_TYPES = SourceTypes(is_extended_json=True)


@frozen(eq=False)
class _Envelopes:
    """The events of a batch, with what all connectors write."""

    index: JsonIndex
    events: Integers
    root: Members
    bodies: Spans
    members: Members
    source: Members

    @classmethod
    def of(cls, index: JsonIndex, events: Integers) -> _Envelopes:
        root = index.members(index.roots)
        bodies = index.keep(root.find("payload"), OBJECT).replace_absent(index.roots)
        members = index.members(bodies)
        return cls(index, events, root, bodies, members, index.members(members.find("source")))

    def text(self, name: str) -> pa.StringArray:
        """Return a member of the description of the source."""
        return self.index.texts(self.source.find(name))


def read_debezium(index: JsonIndex, events: Integers, keys: pa.Array | None) -> SourceChanges:
    """Read Debezium events by their numbers; `keys` has the message keys of all events by number."""
    found = _Envelopes.of(index, events)
    operations, rejected, is_ignored = _read_operations(found)
    before, after = (found.members.find(name) for name in ("before", "after"))
    is_change = (operations >= 0) & (operations <= Operation.DELETE)
    kinds = (index.kinds(before), index.kinds(after))
    is_document = is_change & ((kinds[0] == STRING) | (kinds[1] == STRING) | _has_collection(found))
    by_key = is_change & ~is_document & (operations == Operation.DELETE) & (kinds[0] <= NULL)
    by_key &= _have_keys(events, keys)
    is_row = is_change & ~is_document & ~by_key
    bad_rows = check_rows(index, events[is_row], operations[is_row], (before.take(is_row), after.take(is_row)))
    rejected.reasons.update(bad_rows.reasons)
    is_row &= ~rejected.contains(events)
    rows = _to_changes(found, operations, index.keep(before, OBJECT), after).take(is_row)
    groups = [rows]
    if by_key.any():
        assert keys is not None
        groups.append(_read_keys(_to_changes(found, operations, before, after).take(by_key), keys, rejected))
    if is_document.any():
        groups.append(_read_documents(_to_changes(found, operations, before, after).take(is_document), keys, rejected))
    return SourceChanges(tuple(g for g in groups if len(g)), rejected, int(is_ignored.sum()))


def _has_collection(found: _Envelopes) -> Flags:
    return np.asarray(found.index.kinds(found.source.find("collection")) == STRING)


def _have_keys(events: Integers, keys: pa.Array | None) -> Flags:
    return np.zeros(len(events), bool) if keys is None else np.asarray(keys.is_valid())[events]


def _read_operations(found: _Envelopes) -> tuple[Operations, Rejections, Flags]:
    """Return the operations, the events without a known one, and those that change no row."""
    index, events, rejected = found.index, found.events, Rejections()
    op = found.members.find("op")
    operations = find_operations(index.texts(index.keep(op, STRING)), _DEBEZIUM_OPERATIONS)
    lacks_operation = index.kinds(op) == ABSENT
    is_marker = np.zeros(len(events), bool)
    for name in _WITHOUT_OPERATION:
        is_marker |= found.members.find(name).starts >= 0
    is_marker &= (found.members.find("after").starts < 0) & (found.members.find("before").starts < 0)
    is_marker |= index.kinds(found.root.find("payload")) == NULL
    is_ignored = (lacks_operation & is_marker) | (operations == IGNORED)
    rejected.add(events[operations == REFUSED], "TRUNCATE is not applied to a table.")
    rejected.add(events[lacks_operation & ~is_marker], "The event has no member 'op'.")
    rejected.add(events[~lacks_operation & (operations < 0)], "Member 'op' is not one of c, r, u, d.")
    return operations, rejected, np.asarray(is_ignored)


def _to_changes(found: _Envelopes, operations: Operations, before: Spans, after: Spans) -> Changes:
    """Return all events as changes."""
    tables = pc.coalesce(found.text("table"), found.text("collection"))
    types, codes = _read_connect_types(found)
    return Changes(
        found.index, found.events, join_names(found.text("db"), found.text("schema"), tables), operations,
        before, found.index.keep(after, OBJECT, STRING), found.index, found.bodies, False, types, codes,
    )  # fmt: skip


def _read_connect_types(found: _Envelopes) -> tuple[tuple[SourceTypes, ...], Integers]:
    """Return the different types, and for each event the position of its own."""
    schemas = found.index.texts(found.index.keep(found.root.find("schema"), OBJECT)).dictionary_encode("encode")
    by_micros = np.asarray(pc.is_in(found.text("connector"), pa.array(_MICROS_CONNECTORS)))
    columns = [{} if text is None else parse_connect_types(text) for text in schemas.dictionary.to_pylist()]
    codes = np.asarray(schemas.indices).astype(np.int64) * 2 + by_micros
    types = [SourceTypes(c, time) for c in columns for time in (Encoding.PLAIN, Encoding.MICROS)]
    return tuple(types), codes


def _read_keys(changes: Changes, keys: pa.Array, rejected: Rejections) -> Changes:
    """Return deletes whose rows are the keys of their messages."""
    index, good = index_objects(keys.take(pa.array(changes.events)))
    rejected.add(changes.events[~good], "The delete has no row before the change, and its key is not a JSON object.")
    root = index.members(index.roots)
    rows = index.keep(root.find("payload"), OBJECT).replace_absent(index.roots)
    return _replace_rows(changes.take(good), index, rows, Spans.absent(len(rows)))


def _replace_rows(changes: Changes, index: JsonIndex, before: Spans, after: Spans) -> Changes:
    return Changes(
        index, changes.events, changes.sources, changes.operations, before, after, changes.body_index, changes.bodies,
        False, changes.types, changes.type_codes,
    )  # fmt: skip


def _read_documents(changes: Changes, keys: pa.Array | None, rejected: Rejections) -> Changes:
    """Return changes of documents, which are texts in the event."""
    index, events = changes.index, changes.events
    before, after = (index.texts(index.keep(s, STRING)) for s in (changes.before, changes.after))
    if keys is not None:
        before = _fill_from_keys(before, changes, keys)
    is_delete = changes.operations == Operation.DELETE
    lacks_row = np.where(is_delete, before.is_null(), after.is_null())
    updates = "set capture.mode to change_streams_update_full"
    rejected.add(events[lacks_row & ~is_delete], f"The event has no document after the change: {updates}.")
    rejected.add(events[lacks_row & is_delete], "The delete has no document and no key.")
    texts = pa.concat_arrays([before, after])
    present = np.asarray(texts.is_valid())
    documents, good = index_objects(texts.filter(pa.array(present)))
    is_good = np.ones(len(texts), bool)
    is_good[np.flatnonzero(present)[~good]] = False
    spans = Spans.absent(len(texts))
    filled = np.flatnonzero(present)[good]
    spans.starts[filled], spans.ends[filled] = documents.roots.starts, documents.roots.ends
    count = len(events)
    kept = is_good[:count] & is_good[count:]
    rejected.add(events[~kept], "The document is not a JSON object.")
    kept &= ~lacks_row
    old, new = (Spans(spans.starts[part], spans.ends[part]).take(kept) for part in (slice(count), slice(count, None)))
    chosen = changes.take(kept)
    return Changes(
        documents, chosen.events, chosen.sources, chosen.operations, old, new, chosen.body_index, chosen.bodies,
        False, (_DOCUMENT_TYPES,), np.zeros(len(chosen), np.int64),
    )  # fmt: skip


def _fill_from_keys(before: pa.StringArray, changes: Changes, keys: pa.Array) -> pa.StringArray:
    """Return the documents before the changes; for deletes without one, a document with the id of the message's key."""
    lacks = np.asarray(before.is_null()) & (changes.operations == Operation.DELETE) & _have_keys(changes.events, keys)
    positions = np.flatnonzero(lacks)
    index, good = index_objects(keys.take(pa.array(changes.events[positions])))
    root = index.members(index.roots)
    rows = index.keep(root.find("payload"), OBJECT).replace_absent(index.roots)
    ids = index.texts(index.keep(index.members(rows).find("id"), STRING))
    made = pc.binary_join_element_wise('{"_id":', ids, "}", "")
    chosen = np.zeros(len(before), bool)
    chosen[positions[good]] = True
    return pc.replace_with_mask(before, pa.array(chosen), made)


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
    operations = _read_type_member(index, root, _CANAL_OPERATIONS, is_ddl)
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
    return _finish_changes(made.take(kept[owners]), rejected, operations)


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
    operations = _read_type_member(index, root, _MAXWELL_OPERATIONS, np.zeros(len(events), bool))
    _reject_unknown(events, operations, "type", rejected)
    is_change = (operations >= 0) & (operations <= Operation.DELETE)
    data, old = (root.find(name) for name in ("data", "old"))
    sources = join_names(index.texts(root.find("database")), index.texts(root.find("table")))
    made = _make_changes(index, (events, sources, operations), (index.keep(old, OBJECT), data), index.roots)
    return _finish_changes(made.take(is_change), rejected, operations)


def read_plain(index: JsonIndex, events: Integers, operation_column: str) -> SourceChanges:
    """Read JSON objects, by event number, that have the columns of a row and a member for the operation."""
    root, rejected = index.members(index.roots), Rejections()
    operations = find_plain_operations(index.texts(root.find(operation_column)))
    _reject_unknown(events, operations, operation_column, rejected)
    is_change = (operations >= 0) & (operations <= Operation.DELETE)
    sources = pa.array([""] * len(events), pa.string())
    none = Spans.absent(len(events))
    made = _make_changes(index, (events, sources, operations), (none, index.roots), index.roots, None, operation_column)
    return _finish_changes(made.take(is_change), rejected, operations)


def find_plain_operations(texts: pa.StringArray) -> Operations:
    """Return the operations of a plain operation column."""
    known = {name.lower(): operation for name, operation in PLAIN_OPERATIONS.items()}
    return find_operations(pc.utf8_lower(texts), known)


def _read_type_member(index: JsonIndex, root: Members, known: dict[str, int], is_ddl: Flags) -> Operations:
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


def _finish_changes(changes: Changes, rejected: Rejections, operations: Operations) -> SourceChanges:
    bad = check_rows(changes.index, changes.events, changes.operations, (changes.before, changes.after))
    rejected.reasons.update(bad.reasons)
    kept = changes.take(~rejected.contains(changes.events))
    return SourceChanges((kept,) if len(kept) else (), rejected, int((operations == IGNORED).sum()))
