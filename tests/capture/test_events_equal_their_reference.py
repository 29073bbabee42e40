"""The columnar readers of events equal the reference that reads one event at a time."""

from __future__ import annotations

import base64
import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paimon.capture.convert_events import convert_events
from paimon.capture.event_formats import EventFormat, Routes, TargetTable
from paimon.capture.rows_columnar import KIND_COLUMN
from paimon.capture.rows_reference import Rejected, convert_event
from paimon.domain.schema.declare import declare_schema
from paimon.domain.types.data_types import DataField
from paimon.domain.types.type_text import parse_type

_TYPES = {
    "id": "INT NOT NULL",
    "name": "VARCHAR(20) NOT NULL",
    "small": "TINYINT",
    "big": "BIGINT",
    "price": "DECIMAL(8, 2)",
    "total": "DECIMAL(20, 0)",
    "ratio": "DOUBLE",
    "flag": "BOOLEAN",
    "day": "DATE",
    "clock": "TIME(3)",
    "at": "TIMESTAMP(6)",
    "seen": "TIMESTAMP(3) WITH LOCAL TIME ZONE",
    "fine": "TIMESTAMP(9)",
    "data": "BYTES",
    "note": "STRING",
    "day_text": "STRING",
    "bits": "BYTES",
}
SCHEMA = declare_schema(
    [DataField(i, name, parse_type(text)) for i, (name, text) in enumerate(_TYPES.items())], ["id"], [], {}, None, 0
)
ROUTES = Routes((TargetTable("db.t", SCHEMA),))
_CONNECT = [
    {"field": "id", "type": "int32"},
    {"field": "name", "type": "string"},
    {"field": "small", "type": "int16"},
    {
        "field": "price", "type": "bytes", "name": "org.apache.kafka.connect.data.Decimal",
        "parameters": {"scale": "2", "connect.decimal.precision": "8"},
    },
    {"field": "day", "type": "int32", "name": "io.debezium.time.Date"},
    {"field": "clock", "type": "int64", "name": "io.debezium.time.MicroTime"},
    {"field": "at", "type": "int64", "name": "io.debezium.time.Timestamp"},
    {"field": "seen", "type": "string", "name": "io.debezium.time.ZonedTimestamp"},
    {"field": "fine", "type": "int64", "name": "io.debezium.time.MicroTimestamp"},
    {"field": "data", "type": "bytes"},
    {"field": "note", "type": "int64", "name": "io.debezium.time.Timestamp"},
    {"field": "day_text", "type": "int32", "name": "io.debezium.time.Date"},
    {"field": "bits", "type": "bytes", "name": "io.debezium.data.Bits", "parameters": {"length": "12"}},
]  # fmt: skip
_MYSQL = {"id": "int(11)", "small": "tinyint(4)", "price": "decimal(8,2)", "data": "varbinary(20)", "at": "datetime(6)"}

texts = st.text(max_size=6) | st.sampled_from(["x" * 21, 'a"b', "\\", "é\n", "{", "__x"])
encoded = st.binary(max_size=18).map(lambda data: base64.b64encode(data).decode())
numbers = st.sampled_from([0, 1, -1, 127, 128, 2**31, 2**63, 1.5, 2.0, 1e3, -0.25]) | st.integers(-(10**6), 10**6)
days = st.dates().map(str) | st.sampled_from(["2020-02-30", "2020-1-1", "0000-00-00", "2020-01-01Z", "2020-01-01ZZ"])
clocks = st.times().map(str) | st.sampled_from(["24:00:00", "12:00", "12:30:00Z", "01:00:00+01:00", "12:00:60"])
zones = st.sampled_from(["", "Z", "+02:00", "-0530", "+01"])
moments = st.builds(
    lambda day, gap, clock, zone: f"{day}{gap}{clock}{zone}", days, st.sampled_from(" T"), clocks, zones
)
scalars: st.SearchStrategy[Any] = st.none() | st.booleans() | numbers | texts
micros = st.integers(0, 86_400_000).map(lambda n: n * 1000)
long_millis = st.integers(-(10**13), 10**13)
BAD: dict[str, st.SearchStrategy[Any]] = {
    "price": numbers | encoded,
    "day": days | st.integers(-1000, 30000),
    "clock": clocks | micros | st.integers(-5, 90_000_000),
    "at": moments | long_millis | days,
    "seen": moments | long_millis,
    "fine": moments | long_millis | st.integers(-(2**63), 2**63),
    "data": encoded | texts,
    "ratio": numbers | st.sampled_from(["1e5", "-2.5", "x"]),
    "note": scalars,
    "bits": encoded | texts,
}
real_clocks = st.times().map(lambda t: t.replace(microsecond=t.microsecond // 1000 * 1000).isoformat())
real_moments = st.builds(lambda day, clock, zone: f"{day} {clock}{zone}", st.dates(), real_clocks, zones)
GOOD: dict[str, st.SearchStrategy[Any]] = {
    "id": st.integers(1, 2),
    "name": st.sampled_from(["a", 'q"\\', "\u00e9", ""]),
    "small": st.integers(-128, 127) | st.booleans(),
    "big": st.integers(-(2**63), 2**63 - 1) | st.integers().map(lambda n: str(n % 100)),
    "price": st.integers(-99999, 99999).map(lambda n: base64.b64encode(n.to_bytes(4, "big", signed=True)).decode())
    | st.decimals(-999, 999, places=2).map(str)
    | st.sampled_from([1.25, 7, "1e2"]),
    "total": st.integers(-(2**64), 2**64) | st.integers(0, 2**64).map(str),
    "ratio": st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(["1e5", "-2.5", 3]),
    "flag": st.booleans() | st.sampled_from(["0", 1, "TRUE"]),
    "day": st.dates().map(str) | st.integers(-1000, 30000),
    "clock": real_clocks | micros,
    "at": real_moments | long_millis,
    "seen": real_moments | long_millis,
    "fine": st.integers(-(2**53), 2**53),
    "data": st.binary(max_size=5).map(lambda data: base64.b64encode(data).decode()),
    "note": long_millis | st.sampled_from(["x", True]),
    "day_text": st.integers(-1000, 30000) | real_moments,
    "bits": st.binary(max_size=2).map(lambda data: base64.b64encode(data).decode()),
}


@st.composite
def rows(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a row; usually its values fit, and the columns that must not be null are there."""
    optional = draw(st.sets(st.sampled_from(list(_TYPES)[2:]), max_size=4))
    row = {name: draw(st.none() | GOOD[name] if name in optional else GOOD[name]) for name in ("id", "name", *optional)}
    match draw(st.integers(0, 9)):
        case 0:
            name = draw(st.sampled_from(list(_TYPES)))
            row[name] = draw(BAD.get(name, scalars))
        case 1:
            row["more"] = draw(st.none() | scalars)
        case 2:
            del row[draw(st.sampled_from(list(row)))]
        case 3:
            row["name"] = None
    return row


optional_rows = st.integers(0, 7).flatmap(lambda n: rows() if n else st.none())


@st.composite
def debezium(draw: st.DrawFn) -> Any:
    body: dict[str, Any] = {
        "before": draw(optional_rows),
        "after": draw(optional_rows),
        "source": {"db": "shop", "table": "t", "connector": draw(st.sampled_from(["mysql", "postgresql"]))},
        "op": draw(st.sampled_from(["c", "u", "d", "r"] * 5 + ["m", "t", "?", 5])),
    }
    for name in draw(st.sets(st.sampled_from(["op", "before", "source"]), max_size=1)) if draw(st.booleans()) else ():
        del body[name]
    if draw(st.booleans()):
        return body
    schema = {"type": "struct", "fields": [{"field": "after", "type": "struct", "fields": _CONNECT}]}
    return {"schema": schema, "payload": draw(st.sampled_from([body] * 9 + [None]))}


@st.composite
def canal(draw: st.DrawFn) -> Any:
    data = draw(st.lists(optional_rows, min_size=draw(st.integers(0, 1)), max_size=3))
    olds = [{name: draw(GOOD[name]) for name in draw(st.sets(st.sampled_from(list(GOOD)), max_size=2))} for _ in data]
    return {
        "data": draw(st.sampled_from([data] * 9 + [None])),
        "old": draw(st.sampled_from([olds] * 7 + [None, olds[1:], [None]])),
        "database": "shop",
        "table": "t",
        "isDdl": draw(st.sampled_from([False] * 9 + [True])),
        "type": draw(st.sampled_from(["INSERT", "UPDATE", "DELETE"] * 6 + ["ALTER", "TRUNCATE", "x", None])),
        "mysqlType": draw(st.sampled_from([_MYSQL, None])),
    }


@st.composite
def maxwell(draw: st.DrawFn) -> Any:
    kinds = ["insert", "update", "delete"] * 5 + ["bootstrap-insert", "bootstrap-start", "table-alter", "x", 1]
    event = {"type": draw(st.sampled_from(kinds)), "data": draw(optional_rows), "database": "shop", "table": "t"}
    return {**event, "old": draw(optional_rows)} if draw(st.booleans()) else event


@st.composite
def plain(draw: st.DrawFn) -> Any:
    return {**draw(rows()), "op": draw(st.sampled_from(["+I", "u", "D", "upsert"] * 3 + ["-U", "?", 1]))}


FORMATS = {"debezium-json": debezium(), "canal-json": canal(), "maxwell-json": maxwell(), "json": plain()}


@st.composite
def event_texts(draw: st.DrawFn, event: st.SearchStrategy[Any]) -> str:
    """Draw the text of an event; some are damaged."""
    indent = draw(st.sampled_from([None, None, 1]))
    text = json.dumps(draw(event), indent=indent, ensure_ascii=draw(st.booleans()))
    match draw(st.integers(0, 40)):
        case 0:
            return text[: draw(st.integers(0, len(text)))]
        case 1:
            return text + draw(st.sampled_from(["{}", "}", ",", "\n{", " x"]))
        case 2:
            place = draw(st.integers(0, len(text)))
            return text[:place] + draw(st.sampled_from(['"', "\\", "NaN", "}{", ",", "\x01"])) + text[place:]
        case 3:
            return draw(st.sampled_from(["[]", "1", "null", '"x"', "{}", "[{}]", '{"a":1}{"b":2}', '{"a":-Infinity}']))
    return text


def read_reference(events: list[str], format_name: str) -> tuple[list[Any], list[int], int]:
    rows, rejected, ignored = [], [], 0
    for number, text in enumerate(events):
        try:
            found = convert_event(text, format_name, SCHEMA) if text.strip(" \t\r\n") else None
        except Rejected:
            rejected.append(number)
            continue
        ignored += found is None
        rows += found or []
    return [(kind, [show(row[name]) for name in _TYPES]) for kind, row in rows], rejected, ignored


def show(value: Any) -> Any:
    return repr(value) if isinstance(value, float) else value


def read_columnar(events: list[str], format_name: str) -> tuple[list[Any], list[int], int]:
    made = convert_events(pa.table({"value": pa.array(events, pa.string())}), EventFormat(format_name), ROUTES, 0)
    rows = []
    if 0 in made.rows:
        table = made.rows[0]
        for name, unit in (("at", 1000), ("seen", 1_000_000), ("fine", 1)):
            whole = [None if v is None else v * unit for v in table[name].cast(pa.int64()).to_pylist()]
            table = table.set_column(table.schema.get_field_index(name), name, pa.array(whole, pa.decimal128(38, 0)))
        table = table.set_column(table.schema.get_field_index("day"), "day", table["day"].cast(pa.int32()))
        for row in table.to_pylist():
            if row[KIND_COLUMN] == "-D" and row["name"] == "":
                row["name"] = None  # the filler of a delete
            rows.append((row[KIND_COLUMN], [show(row[name]) for name in _TYPES]))
    assert made.counts.events == len(events) and made.counts.rejected == made.rejected.num_rows
    return rows, made.rejected["position"].to_pylist(), made.counts.ignored


@pytest.mark.parametrize("format_name", FORMATS)
@settings(max_examples=40)
@given(data=st.data())
def test_events_equal_their_reference(format_name: str, data: st.DataObject) -> None:
    events = data.draw(st.lists(event_texts(FORMATS[format_name]), max_size=8))
    events = [text.encode("utf-8", "replace").decode() for text in events]
    expected, rejected, ignored = read_reference(events, format_name)
    expected = [
        (k, [None if k == "-D" and n == "name" and v == "" else v for n, v in zip(_TYPES, r, strict=True)])
        for k, r in expected
    ]
    assert read_columnar(events, format_name) == (expected, rejected, ignored)
