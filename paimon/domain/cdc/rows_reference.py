"""The rows that events write, one event at a time: the reference of the columnar readers and of `rows_columnar`.

It reads the rows of relational sources; columns have the types of Kafka Connect or of MySQL where the event has them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from paimon.domain.cdc.source_types import Encoding, SourceTypes, parse_connect_types, parse_mysql_types
from paimon.domain.cdc.values_reference import Misfit, Number, convert_value
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.types import data_types as dt

Row = Mapping[str, Any]
Change = tuple[str, Row | None, Row | None]
"""An operation (``insert``, ``update``, ``delete``), and the rows before and after it."""
_DEBEZIUM = {"c": "insert", "r": "insert", "u": "update", "d": "delete"}
_PLAIN = {
    **dict.fromkeys(("+i", "i", "insert", "c", "create", "r", "read"), "insert"),
    **dict.fromkeys(("+u", "u", "update", "upsert"), "update"),
    **dict.fromkeys(("-d", "d", "delete"), "delete"),
}


class Rejected(Exception):
    """An event that cannot be read."""


def convert_event(text: str, format_name: str, schema: TableSchema) -> list[tuple[str, dict[str, Any]]] | None:
    """Convert an event to row kinds and rows; None for an event that changes no row.

    `format_name` is ``debezium-json``, ``canal-json``, ``maxwell-json`` or ``json``. Raises `Rejected` if the event
    cannot be read.
    """
    event = _parse(text)
    read = {"debezium-json": _read_debezium, "canal-json": _read_canal, "maxwell-json": _read_maxwell}
    changes, types, is_overlay = read.get(format_name, _read_plain)(event)
    if changes is None:
        return None
    return [row for change in changes for row in _to_rows(change, types, is_overlay, schema)]


def _parse(text: str) -> dict[str, Any]:
    try:
        event = json.loads(text, parse_int=Number, parse_float=Number, parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise Rejected from None
    if not isinstance(event, dict):
        raise Rejected
    return event


def _refuse(word: str) -> None:
    raise ValueError(word)


_Read = tuple[list[Change] | None, SourceTypes, bool]


def _read_debezium(event: dict[str, Any]) -> _Read:
    body = event["payload"] if isinstance(event.get("payload"), dict) else event
    op, before, after = (body.get(name) for name in ("op", "before", "after"))
    source = body.get("source")
    is_mysql = isinstance(source, dict) and source.get("connector") in ("mysql", "mariadb")
    columns = (
        parse_connect_types(json.dumps(event["schema"], default=str)) if isinstance(event.get("schema"), dict) else {}
    )
    types = SourceTypes(columns, Encoding.MICROS if is_mysql else Encoding.PLAIN)
    if "op" not in body:
        is_marker = any(name in body for name in ("ddl", "tableChanges", "status", "ts_ms"))
        if "payload" in event and event["payload"] is None:
            return None, types, False
        if is_marker and "after" not in body and "before" not in body:
            return None, types, False
        raise Rejected
    if op == "m":
        return None, types, False
    if not isinstance(op, str) or op not in _DEBEZIUM:
        raise Rejected
    return _check_change(_DEBEZIUM[op], before, after), types, False


def _check_change(operation: str, before: Any, after: Any) -> list[Change]:
    old, new = (row if isinstance(row, dict) else None for row in (before, after))
    if (operation == "delete" and old is None) or (operation != "delete" and new is None):
        raise Rejected
    return [(operation, None if operation == "insert" else old, None if operation == "delete" else new)]


def _read_canal(event: dict[str, Any]) -> _Read:
    mysql = event.get("mysqlType")
    columns = parse_mysql_types(json.dumps(mysql, default=str)) if isinstance(mysql, dict) else {}
    types = SourceTypes(columns, byte_encoding=Encoding.LATIN1)
    kind = event.get("type")
    if kind == "TRUNCATE":
        raise Rejected
    if event.get("isDdl") is True or kind in ("CREATE", "ALTER", "ERASE", "QUERY", "RENAME", "CINDEX", "DINDEX"):
        return None, types, True
    data, old = event.get("data"), event.get("old")
    if kind not in ("INSERT", "UPDATE", "DELETE") or not isinstance(data, list) or not data:
        raise Rejected
    if kind == "UPDATE" and isinstance(old, list) and len(old) != len(data):
        raise Rejected
    olds = old if kind == "UPDATE" and isinstance(old, list) else [None] * len(data)
    return _pair_rows(kind.lower(), data, olds), types, True


def _pair_rows(operation: str, data: list[Any], olds: list[Any]) -> list[Change]:
    changes: list[Change] = []
    for row, old in zip(data, olds, strict=True):
        before, after = (row, None) if operation == "delete" else (old, row)
        changes += _check_change(operation, before, after)
    return changes


def _read_maxwell(event: dict[str, Any]) -> _Read:
    kind = event.get("type")
    kind = "insert" if kind == "bootstrap-insert" else kind
    ignored = ("bootstrap-start", "bootstrap-complete", "heartbeat", *_list_maxwell_ddl())
    if kind in ignored:
        return None, SourceTypes(), True
    if kind not in ("insert", "update", "delete"):
        raise Rejected
    return _pair_rows(kind, [event.get("data")], [event.get("old")]), SourceTypes(), True


def _list_maxwell_ddl() -> list[str]:
    return [f"{kind}-{verb}" for kind in ("table", "database") for verb in ("create", "alter", "drop")]


def _read_plain(event: dict[str, Any]) -> _Read:
    op = event.get("op")
    if isinstance(op, str) and op.lower() == "-u":
        return None, SourceTypes(), True
    if not isinstance(op, str) or op.lower() not in _PLAIN:
        raise Rejected
    row = {name: value for name, value in event.items() if name != "op"}
    return _pair_rows(_PLAIN[op.lower()], [row], [None]), SourceTypes(), True


def _to_rows(
    change: Change, types: SourceTypes, is_overlay: bool, schema: TableSchema
) -> list[tuple[str, dict[str, Any]]]:
    operation, before, after = change
    if is_overlay and before is not None and after is not None:
        before = {**after, **before}
    new = None if after is None else _convert_row(after, types, schema, False)
    if operation == "insert" or before is None:
        assert new is not None
        return [("+I" if operation == "insert" else "+U", new)]
    old = _convert_row(before, types, schema, True)
    if new is None:
        return [("-D", _check_row(old, schema, True))]
    keys = [name for name in schema.primary_keys if old[name] is not None and new[name] is not None]
    if any(old[name] != new[name] for name in keys):
        return [("-D", _check_row(old, schema, True)), ("+I", new)]
    if after is not None and any(name in after and name not in before for name in schema.fields_by_name):
        return [("+U", new)]
    if any(f.name in before and old[f.name] is None and not f.type.nullable for f in schema.fields):
        return [("+U", new)]
    return [("-U", _check_row(old, schema, False)), ("+U", new)]


def _convert_row(row: Row, types: SourceTypes, schema: TableSchema, is_before: bool) -> dict[str, Any]:
    if any(value is not None and name not in schema.fields_by_name for name, value in row.items()):
        raise Rejected
    try:
        made = {f.name: convert_value(row.get(f.name), types.of_column(f.name, f.type), f.type) for f in schema.fields}
    except Misfit:
        raise Rejected from None
    return made if is_before else _check_row(made, schema, False)


def _check_row(row: dict[str, Any], schema: TableSchema, is_delete: bool) -> dict[str, Any]:
    for column in schema.fields:
        value = row[column.name]
        may_be_filled = is_delete and column.name not in schema.primary_keys
        if value is None and not column.type.nullable and not may_be_filled:
            raise Rejected
        is_text = isinstance(value, str | bytes) and isinstance(column.type, (*dt.CHARACTER_TYPES, *dt.BYTES_TYPES))
        if is_text and len(value) > column.type.length:  # type: ignore[attr-defined]
            raise Rejected
    return row
