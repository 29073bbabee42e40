"""The rows that events write, one event and one value at a time: the reference of the columnar readers.

It reads the rows of relational sources; columns have the types of Kafka Connect or of MySQL where the event has them.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
import struct
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Context, Decimal, InvalidOperation
from typing import Any

from attrs import frozen

from paimon.capture.source_types import Encoding, SourceType, SourceTypes, parse_connect_types, parse_mysql_types
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.types import data_types as dt
from paimon.domain.types.data_types import DataType

_RANGES = {dt.TinyIntType: 8, dt.SmallIntType: 16, dt.IntType: 32, dt.BigIntType: 64}
_PER_SECOND = {Encoding.MILLIS: 10**3, Encoding.MICROS: 10**6, Encoding.NANOS: 10**9}
_COUNTED = (*_PER_SECOND, Encoding.DAYS)
_EPOCH = datetime(1970, 1, 1)
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,4})?")
_CLOCK = r"(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?(?:Z|([+-])(\d\d)(?::?(\d\d))?)?"
_TIME = re.compile(_CLOCK, re.ASCII)
_TIMESTAMP = re.compile(rf"(\d{{4}}-\d\d-\d\d)(?:[ T]{_CLOCK})?", re.ASCII)


@frozen
class Number:
    """A JSON number, as it is written."""

    text: str

    def __str__(self) -> str:
        return self.text


class Misfit(Exception):
    """A value that is not of the type of its column."""


def convert_value(value: Any, source: SourceType, target: DataType) -> Any:
    """Convert a JSON value to a type; `Misfit` if it does not fit. Timestamps are nanoseconds since 1970."""
    if value is None:
        return None
    if source.encoding is Encoding.DECIMAL and isinstance(value, str):
        value = str(_read_decimal(_read_base64(value), source.scale))
    if source.encoding is Encoding.VARIABLE_DECIMAL and isinstance(value, dict):
        value = str(_read_decimal(_read_base64(value.get("value")), int(str(value["scale"]))))
    if isinstance(target, (*dt.BYTES_TYPES, dt.BlobType)):
        return _read_bytes(value, source)
    if isinstance(target, (dt.DateType, dt.TimeType, *dt.TIMESTAMP_TYPES)):
        return _read_moment(value, source, target)
    if isinstance(value, dict | list):
        raise Misfit
    is_counted = source.encoding in _COUNTED and isinstance(value, Number)
    if is_counted and source.data_type is not None and isinstance(target, dt.CHARACTER_TYPES):
        return _format_moment(_read_moment(value, source, source.data_type), source.data_type)
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return text if isinstance(target, dt.CHARACTER_TYPES) else _read_number(text, target)


def _format_moment(value: Any, kind: DataType) -> str:
    try:
        return _format_datetime(value, kind)
    except OverflowError as error:  # another year than 1 to 9999
        raise Misfit from error


def _format_datetime(value: Any, kind: DataType) -> str:
    if isinstance(kind, dt.DateType):
        return str(date(1970, 1, 1) + timedelta(days=value))
    if isinstance(kind, dt.TimeType):
        return f"{value:%H:%M:%S}" + (f".{value.microsecond // 1000:03}" if kind.precision else "")
    assert isinstance(kind, dt.TimestampType)
    seconds, nanos = divmod(value, 10**9)
    return f"{_EPOCH + timedelta(seconds=seconds)}" + (f".{nanos:09}"[: 1 + kind.precision] if kind.precision else "")


def _read_number(text: str, target: DataType) -> Any:
    if isinstance(target, dt.BooleanType):
        known: Mapping[str, bool] = {"true": True, "1": True, "false": False, "0": False}
        if text.lower() not in known:
            raise Misfit
        return known[text.lower()]
    if isinstance(target, dt.FloatType | dt.DoubleType):
        return _read_float(text, target)
    return _fit_decimal(text, target) if isinstance(target, dt.DecimalType) else _read_integer(text, target)


def _read_float(text: str, target: dt.FloatType | dt.DoubleType) -> float:
    try:
        value = float(text)
        if isinstance(target, dt.FloatType):
            struct.pack("f", value)
    except (ValueError, OverflowError):
        raise Misfit from None
    if math.isinf(value) and any(character.isdigit() for character in text):
        raise Misfit
    return value


def _fit_decimal(text: str, target: dt.DecimalType) -> Decimal:
    if not _DECIMAL.fullmatch(text):
        raise Misfit
    number = Decimal(text)
    try:
        made = number.quantize(Decimal(1).scaleb(-target.scale), context=Context(prec=target.precision))
    except InvalidOperation:
        raise Misfit from None
    if made != number:
        raise Misfit
    return made


def _read_integer(text: str, target: DataType) -> int:
    text = {"true": "1", "false": "0"}.get(text, text)
    if not re.fullmatch(r"[+-]?[0-9]+(\.0*)?", text, re.ASCII):
        raise Misfit
    whole = int(text.partition(".")[0])
    limit = 2 ** (_RANGES[type(target)] - 1)
    if not -limit <= whole < limit:
        raise Misfit
    return whole


def _read_base64(value: Any) -> bytes:
    if not isinstance(value, str):
        raise Misfit
    try:
        return base64.b64decode(value.encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError):
        raise Misfit from None


def _read_bytes(value: Any, source: SourceType) -> bytes:
    if not isinstance(value, str):
        raise Misfit
    if source.encoding is not Encoding.LATIN1:
        data = _read_base64(value)
        return data[::-1] if source.encoding is Encoding.BITS else data
    try:
        return value.encode("latin-1")
    except UnicodeEncodeError:
        raise Misfit from None


def _read_decimal(data: bytes, scale: int) -> Decimal:
    number = int.from_bytes(data, "big", signed=True)
    if not 0 < len(data) <= 16 or abs(number) >= 10**38 or not 0 <= scale <= 38:
        raise Misfit
    return Decimal(number).scaleb(-scale, Context(prec=40))


def _read_moment(value: Any, source: SourceType, target: DataType) -> Any:
    known = source.encoding in _COUNTED
    is_number = isinstance(value, Number) or (known and isinstance(value, str))
    if is_number and re.fullmatch(r"-?[0-9]{1,19}", str(value), re.ASCII):
        return _count(int(str(value)), source.encoding, target)
    if not isinstance(value, str):
        raise Misfit
    return _parse_moment(value, target)


def _count(number: int, encoding: Encoding, target: DataType) -> Any:
    if not -(2**63) <= number < 2**63:
        raise Misfit
    default = 10**9
    if isinstance(target, dt.TimeType | dt.TimestampType | dt.LocalZonedTimestampType):
        default = 10**3 if target.precision <= 3 else 10**6 if target.precision <= 6 else 10**9
    is_days = encoding is Encoding.DAYS or (isinstance(target, dt.DateType) and encoding not in _PER_SECOND)
    nanos = number * 86_400 * 10**9 if is_days else number * (10**9 // _PER_SECOND.get(encoding, default))
    return _from_nanos(nanos, target)


def _from_nanos(nanos: int, target: DataType) -> Any:
    if isinstance(target, dt.DateType):
        days, rest = divmod(nanos, 86_400 * 10**9)
        if rest or abs(days) >= 2**31:
            raise Misfit
        return days
    if isinstance(target, dt.TimeType):
        if not 0 <= nanos < 86_400 * 10**9 or nanos % 10**6:
            raise Misfit
        return (_EPOCH + timedelta(microseconds=nanos // 1000)).time()
    assert isinstance(target, dt.TimestampType | dt.LocalZonedTimestampType)
    step = 10 ** (9 - (0 if target.precision == 0 else -(-target.precision // 3) * 3))
    if nanos % step or not abs(nanos // 10**9) < (2**63 - 1) // (10**9 // step):
        raise Misfit
    return nanos


def _parse_moment(text: str, target: DataType) -> Any:
    try:
        if isinstance(target, dt.DateType):
            if not re.fullmatch(r"\d{4}-\d\d-\d\dZ?", text, re.ASCII):
                raise Misfit
            return (date.fromisoformat(text.rstrip("Z")) - date(1970, 1, 1)).days
        if isinstance(target, dt.TimeType):
            found = _TIME.fullmatch(text)
            if found is None or _read_offset(found.groups()):
                raise Misfit
            return _from_nanos(_read_clock(found.groups()), target)
        found = _TIMESTAMP.fullmatch(text)
        if found is None:
            raise Misfit
        days = (date.fromisoformat(found[1]) - date(1970, 1, 1)).days
        seconds = days * 86_400 - _read_offset(found.groups()[1:])
        return _from_nanos(seconds * 10**9 + _read_clock(found.groups()[1:]), target)
    except ValueError:
        raise Misfit from None


def _read_clock(parts: tuple[str | None, ...]) -> int:
    hour, minute, second = (int(part or 0) for part in parts[:3])
    clock = time(hour, minute, second)
    whole = (clock.hour * 60 + clock.minute) * 60 + clock.second
    return whole * 10**9 + int((parts[3] or "").ljust(9, "0"))


def _read_offset(parts: tuple[str | None, ...]) -> int:
    seconds = (int(parts[5] or 0) * 60 + int(parts[6] or 0)) * 60
    return -seconds if parts[4] == "-" else seconds


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
