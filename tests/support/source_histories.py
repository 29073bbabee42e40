"""Drawn histories of source tables, and their events as Debezium, Canal and Maxwell write them.

A history inserts, updates and deletes rows of several tables, changes keys, and adds columns.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import field, frozen
from hypothesis import strategies as st

Row = dict[str, Any]
KEYS = range(1, 5)
_ADDED = {"size": st.integers(-9, 9), "note": st.text('ab"\\é\n', max_size=3)}


@frozen
class Change:
    """A change of a row.

    Parameters
    ----------
    table : str
        The table.
    before, after : dict of str to object, optional
        The rows before and after it, with the columns of the table at that time.
    """

    table: str
    before: Row | None
    after: Row | None


@frozen
class EventWriter:
    """How a tool writes changes.

    Parameters
    ----------
    format : str
        The format of its events.
    write : callable
        Returns the events of a change with a position: the texts of their keys and values.
    position : str
        The path of the position in an event.
    prefix : str
        What the name of a source table begins with.
    key_column : str
        The column of the key.
    moves_keys : bool
        Whether the key of a row may change.
    """

    format: str
    write: Callable[[Change, int], list[tuple[str | None, str]]]
    position: str
    prefix: str = "shop."
    key_column: str = "id"
    moves_keys: bool = True


@frozen
class _Source:
    """The tables of a source, while a history is drawn."""

    rows: Mapping[str, dict[int, Row]]
    added: Mapping[str, set[str]] = field()

    @added.default
    def _no_columns(self) -> dict[str, set[str]]:
        return {table: set() for table in self.rows}


@st.composite
def histories(draw: st.DrawFn, tables: Sequence[str], moves_keys: bool = True) -> list[Change]:
    """Draw the changes of a source."""
    source = _Source({table: {} for table in tables})
    changes: list[Change] = []
    for _ in range(draw(st.integers(1, 14))):
        table = draw(st.sampled_from(tables))
        if not draw(st.integers(0, 4)):
            _add_column(draw, source, table)
        changes.append(_draw_change(draw, source, table, moves_keys))
    return changes


def _add_column(draw: st.DrawFn, source: _Source, table: str) -> None:
    name = draw(st.sampled_from(list(_ADDED)))
    if name not in source.added[table]:
        source.added[table].add(name)
        for key, row in source.rows[table].items():
            source.rows[table][key] = {**row, name: None}


def _draw_change(draw: st.DrawFn, source: _Source, table: str, moves_keys: bool) -> Change:
    rows = source.rows[table]
    key = draw(st.sampled_from(KEYS))
    before = rows.pop(key, None)
    if before is not None and not draw(st.integers(0, 2)):
        return Change(table, before, None)
    free = [k for k in KEYS if k not in rows and k != key]
    if before is not None and moves_keys and free and draw(st.booleans()):
        key = free[0]
    after = {"id": key, "name": draw(st.text('ab"\\é\n', max_size=3)), "amount": draw(st.none() | st.integers(0, 9))}
    after.update({name: draw(st.none() | _ADDED[name]) for name in sorted(source.added[table])})
    rows[key] = after
    return Change(table, before, after)


def replay(changes: Sequence[Change], table: str) -> list[Row]:
    """Return the rows of a source table after some changes, by key and without nulls."""
    state: dict[int, Row] = {}
    for change in changes:
        if change.table == table and change.before is not None:
            del state[change.before["id"]]
        if change.table == table and change.after is not None:
            state[change.after["id"]] = change.after
    return [{name: value for name, value in state[key].items() if value is not None} for key in sorted(state)]


def _operation(change: Change) -> str:
    return "c" if change.before is None else "d" if change.after is None else "u"


def _envelope(change: Change, source: Row) -> Row:
    return {"before": change.before, "after": change.after, "source": source, "op": _operation(change), "ts_ms": 1}


def _key_of(change: Change) -> int:
    return int((change.before or change.after or {})["id"])


def write_mysql(change: Change, position: int) -> list[tuple[str | None, str]]:
    """Write the event of Debezium's connector for MySQL, without a schema."""
    source = {"connector": "mysql", "db": "shop", "table": change.table, "pos": position}
    return [(json.dumps({"id": _key_of(change)}), json.dumps(_envelope(change, source)))]


def write_mysql_schema(change: Change, position: int) -> list[tuple[str | None, str]]:
    """Write the same event with its schema."""
    types = {"id": "int32", "name": "string", "amount": "int32", "size": "int64", "note": "string"}
    fields = [{"field": name, "type": types[name]} for name in change.after or change.before or {}]
    sides = [{"field": side, "type": "struct", "fields": fields} for side in ("before", "after")]
    source = {"connector": "mysql", "db": "shop", "table": change.table, "pos": position}
    event = {"schema": {"type": "struct", "fields": sides}, "payload": _envelope(change, source)}
    return [(json.dumps({"schema": {}, "payload": {"id": _key_of(change)}}), json.dumps(event, indent=1))]


def write_postgresql(change: Change, position: int) -> list[tuple[str | None, str]]:
    """Write the events of the connector for PostgreSQL with the default replica identity: rows before are missing."""
    source = {"connector": "postgresql", "db": "shop", "schema": "public", "table": change.table, "lsn": position}
    before, after = change.before, change.after
    if before is not None and after is not None and before["id"] != after["id"]:
        parts = [Change(change.table, before, None), Change(change.table, None, after)]
        return [event for part in parts for event in write_postgresql(part, position)]
    event = _envelope(change, source)
    event["before"] = None if after is not None else {**dict.fromkeys(before or {}), "id": _key_of(change)}
    return [(None, json.dumps(event))]


def write_mongodb(change: Change, position: int) -> list[tuple[str | None, str]]:
    """Write the event of the connector for MongoDB; a delete has only the key of the message."""
    source = {"connector": "mongodb", "db": "shop", "collection": change.table, "ord": position}
    event = {**_envelope(change, source), "before": None}
    if change.after is not None:
        wrapped = {"_id": change.after["id"], **change.after, "amount": {"$numberLong": str(change.after["amount"])}}
        del wrapped["id"]
        if change.after["amount"] is None:
            del wrapped["amount"]
        event["after"] = json.dumps(wrapped)
    return [(json.dumps({"id": str(_key_of(change))}), json.dumps(event))]


def write_maxwell(change: Change, position: int) -> list[tuple[str | None, str]]:
    """Write the event of Maxwell."""
    return [(None, json.dumps(_describe_maxwell(change, position)))]


def _describe_maxwell(change: Change, position: int) -> Row:
    kind = {"c": "insert", "u": "update", "d": "delete"}[_operation(change)]
    data = change.after or change.before
    event = {"database": "shop", "table": change.table, "type": kind, "ts": 1, "xid": position, "data": data}
    if change.before is not None and change.after is not None:
        event["old"] = {name: value for name, value in change.before.items() if value != change.after[name]}
    return event


def write_canal(change: Change, position: int) -> list[tuple[str | None, str]]:
    """Write the event of Canal, in which all values are texts."""
    event = _describe_maxwell(change, position)
    data, old = (_to_texts(event.get(name)) for name in ("data", "old"))
    types = {"id": "int", "name": "varchar(20)", "amount": "int unsigned", "size": "bigint", "note": "text"}
    types = {name: types[name] for name in event["data"]}
    described = {"database": "shop", "table": change.table, "id": position, "isDdl": False, "mysqlType": types}
    return [(None, json.dumps({**described, "type": event["type"].upper(), "data": data, "old": old}))]


def _to_texts(row: Row | None) -> list[Row] | None:
    return None if row is None else [{k: None if v is None else str(v) for k, v in row.items()}]


def write_plain(change: Change, position: int) -> list[tuple[str | None, str]]:
    """Write the columns of the row next to an operation."""
    return [(None, json.dumps({"op": _operation(change), **(change.after or change.before or {}), "pos": position}))]


WRITERS = {
    "mysql": EventWriter("debezium-json", write_mysql, "source.pos"),
    "mysql-schema": EventWriter("debezium-json", write_mysql_schema, "source.pos"),
    "postgresql": EventWriter("debezium-json", write_postgresql, "source.lsn", "shop.public."),
    "mongodb": EventWriter("debezium-json", write_mongodb, "source.ord", key_column="_id", moves_keys=False),
    "canal": EventWriter("canal-json", write_canal, "id"),
    "maxwell": EventWriter("maxwell-json", write_maxwell, "xid"),
    "plain": EventWriter("json", write_plain, "pos", moves_keys=False),
}
