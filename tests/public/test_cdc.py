"""`paimon.cdc`: dead letters, several tables, types of new columns, MongoDB and PostgreSQL, and bad arguments."""

from __future__ import annotations

import base64
import json
from datetime import date, datetime, time, timezone
from decimal import Decimal
from math import inf
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import paimon
from paimon.builders import direct_writes
from paimon.operations.table_context import TableContext

Row = dict[str, Any]


@pytest.fixture
def catalog(tmp_path: Path) -> paimon.Catalog:
    made = paimon.connect(tmp_path / "lake")
    made.create_database("shop")
    return made


def debezium(op: str, before: Row | None, after: Row | None, **source: Any) -> str:
    described = {"connector": "mysql", "db": "shop", "table": "orders", **source}
    return json.dumps({"before": before, "after": after, "source": described, "op": op, "ts_ms": 1})


def maxwell(op: str, before: Row | None, after: Row | None, **source: Any) -> str:
    kind = {"c": "insert", "u": "update", "d": "delete"}[op]
    event = {"database": "shop", "table": "orders", "type": kind, "data": after or before, "ts": 1, **source}
    if before is not None and after is not None:
        event["old"] = {name: value for name, value in before.items() if value != after[name]}
    return json.dumps(event)


def canal(op: str, before: Row | None, after: Row | None, **source: Any) -> str:
    event = json.loads(maxwell(op, before, after, **source))
    as_text = [
        {k: v if v is None else str(v) for k, v in event[name].items()} for name in ("data", "old") if name in event
    ]
    event = {**event, "isDdl": False, "type": event["type"].upper(), "mysqlType": None, "data": as_text[:1]}
    return json.dumps({**event, "old": as_text[1:] or None})


DDL = "id BIGINT NOT NULL, name STRING, amount BIGINT"


def create_dead_letters(catalog: paimon.Catalog) -> paimon.Table:
    return catalog.create_table("shop.dead_letters", paimon.DEAD_LETTER_SCHEMA)


def test_events_that_cannot_be_read_are_set_aside_with_their_reason(catalog: paimon.Catalog) -> None:
    table = catalog.create_table("shop.orders", DDL + ", ratio FLOAT", primary_keys=["id"], options={"bucket": 1})
    letters = create_dead_letters(catalog)
    good = debezium("c", None, {"id": 1, "name": "a", "amount": 5, "ratio": "-Infinity"})
    bad = {
        "{broken": "The event is not a JSON object.",
        debezium("c", None, {"id": "x"}): "Value 'x' of column 'id' does not fit BIGINT NOT NULL.",
        debezium(
            "c", None, {"id": 2, "color": "red"}
        ): "Table 'shop.orders' has no column 'color': add it, or pass merge_schema=True.",
        debezium("t", None, None): "TRUNCATE is not applied to a table.",
        debezium("d", None, None): "The delete has no row before the change.",
        debezium("c", None, {"name": "a"}): "Column 'id' is NOT NULL, and the event has no value for it.",
        debezium("c", None, {"id": 3, "ratio": 1e39}): "Value '1e+39' of column 'ratio' does not fit FLOAT.",
    }
    kafka = pa.table(
        {
            "value": pa.array([good, *bad, None], pa.binary()),
            "topic": ["orders"] * 9,
            "partition": pa.array([3] * 9, pa.int32()),
            "offset": list(range(100, 109)),
        }
    )
    with pytest.raises(paimon.InvalidRequest, match=r"offset 101 of partition 3 of topic 'orders' cannot be read: The"):
        paimon.cdc(kafka, table, "debezium-json")
    assert table.snapshots() == []
    for _ in range(2):  # the second call is recognized
        done = paimon.cdc(kafka, table, "debezium-json", dead_letters=letters, commit_user="job", identifier=7)
    assert (done.events, done.rejected, done.ignored) == (9, 7, 1)
    assert table.scan().to_arrow().to_pylist() == [{"id": 1, "name": "a", "amount": 5, "ratio": -inf}]
    found = letters.scan().to_arrow().sort_by("offset").to_pylist()
    assert [(row["value"].decode(), row["reason"]) for row in found] == list(bad.items())
    assert [row["offset"] for row in found] == list(range(101, 108)) and found[0]["position"] == 1


def test_a_stop_between_two_tables_leaves_no_files_of_the_later_ones(catalog: paimon.Catalog) -> None:
    token, names = paimon.CancelToken(), ("a", "b", "c")
    tables = {
        f"shop.{name}": catalog.create_table(f"shop.{name}", "id BIGINT").with_callbacks(
            {"stop": lambda event: token.cancel()}
        )
        for name in names
    }
    events = [debezium("c", None, {"id": 1}, table=name) for name in names]
    with pytest.raises(paimon.Cancelled), token:
        paimon.cdc(events, tables, "debezium-json")
    assert sorted(table.count() for table in tables.values()) == [0, 0, 1]
    assert sum(1 for table in tables.values() for _ in Path(table.location).glob("bucket-*/*")) == 1


def test_several_tables_of_one_stream(catalog: paimon.Catalog) -> None:
    orders, items = (
        catalog.create_table(f"shop.{name}", DDL, primary_keys=["id"], options={"bucket": 1})
        for name in ("orders", "items")
    )
    row = {"id": 1, "name": "a", "amount": 5}
    events = [
        debezium("c", None, row),
        debezium("c", None, {**row, "id": 2}, table="items"),
        debezium("c", None, row, connector="postgresql", schema="public", table="log"),
    ]
    tables = {"shop.orders": orders, "shop.items": items}
    with pytest.raises(paimon.InvalidRequest, match=r"No table is given for the source table 'shop\.public\.log'"):
        paimon.cdc(events, tables, "debezium-json")
    done = paimon.cdc(events, tables.get, "debezium-json")
    assert (done.ignored, {name: result.rows for name, result in done.tables.items()}) == (
        1,
        {"shop.items": 1, "shop.orders": 1},
    )
    assert orders.scan().to_arrow()["id"].to_pylist() == [1] and items.scan().to_arrow()["id"].to_pylist() == [2]
    with pytest.raises(paimon.InvalidRequest, match="do not name their source table"):
        paimon.cdc(["{}"], tables, "json")


CONNECT_FIELDS = [
    {"field": "id", "type": "int64"},
    {"field": "price", "type": "bytes", "name": "org.apache.kafka.connect.data.Decimal",
     "parameters": {"scale": "2", "connect.decimal.precision": "10"}},
    {"field": "any", "type": "struct", "name": "io.debezium.data.VariableScaleDecimal"},
    {"field": "day", "type": "int32", "name": "io.debezium.time.Date"},
    {"field": "clock", "type": "int64", "name": "io.debezium.time.MicroTime"},
    {"field": "made", "type": "int64", "name": "io.debezium.time.MicroTimestamp"},
    {"field": "seen", "type": "string", "name": "io.debezium.time.ZonedTimestamp"},
    {"field": "raw", "type": "bytes"},
]  # fmt: skip


def test_new_columns_get_the_types_of_the_source(catalog: paimon.Catalog) -> None:
    table = catalog.create_table("shop.t", "id BIGINT NOT NULL", primary_keys=["id"], options={"bucket": 1})
    encoded = base64.b64encode((-12345).to_bytes(3, "big", signed=True)).decode()
    row = {
        "id": 1, "price": encoded, "any": {"scale": 3, "value": encoded}, "day": 18262, "clock": 43_200_000_000,
        "made": 1_577_836_800_000_001, "seen": "2020-01-01T02:00:00.5+02:00", "raw": "YWI=",
    }  # fmt: skip
    envelope = {"type": "struct", "fields": [{"field": "after", "type": "struct", "fields": CONNECT_FIELDS}]}
    event = json.dumps({"schema": envelope, "payload": json.loads(debezium("c", None, row))})
    done = paimon.cdc([event], table, "debezium-json", merge_schema=True)
    assert done.rejected == 0
    grown = catalog.table("shop.t")
    assert [str(f.type) for f in grown.arrow_schema] == [
        "int64", "decimal128(10, 2)", "string", "date32[day]", "time32[ms]",
        "timestamp[us]", "timestamp[us, tz=UTC]", "binary",
    ]  # fmt: skip
    assert grown.scan().to_arrow().to_pylist() == [
        {
            "id": 1, "price": Decimal("-123.45"), "any": "-12.345", "day": date(2020, 1, 1), "clock": time(12),
            "made": datetime(2020, 1, 1, 0, 0, 0, 1),
            "seen": datetime(2020, 1, 1, 0, 0, 0, 500_000, timezone.utc),  # noqa: UP017
            "raw": b"ab",
        }
    ]  # fmt: skip
    more = canal("c", None, {"id": 2, "size": 12, "blob": "\u00ff"})
    typed = {**json.loads(more), "mysqlType": {"id": "bigint", "size": "int unsigned", "blob": "blob"}}
    plain_event = maxwell("c", None, {"id": 3, "ratio": 1.5, "size": None, "empty": None})
    paimon.cdc([json.dumps(typed)], grown, "canal-json", merge_schema=True)
    paimon.cdc([plain_event], grown, "maxwell-json", merge_schema=True)
    widest = catalog.table("shop.t")
    assert widest.arrow_schema.field("size").type == pa.int64() and "empty" not in widest.arrow_schema.names
    found = widest.scan(columns=["id", "size", "blob", "ratio"]).to_arrow().sort_by("id").to_pylist()
    assert found[1:] == [
        {"id": 2, "size": 12, "blob": b"\xff", "ratio": None},
        {"id": 3, "size": None, "blob": None, "ratio": 1.5},
    ]


def test_documents_of_mongodb(catalog: paimon.Catalog) -> None:
    ddl = "_id STRING NOT NULL, pieces BIGINT, price DECIMAL(9, 2), at TIMESTAMP(3), tags ARRAY<STRING>, place STRING"
    table = catalog.create_table("shop.docs", ddl, primary_keys=["_id"], options={"bucket": 1})

    def event(op: str, after: Row | None) -> str:
        source = {"connector": "mongodb", "db": "shop", "collection": "docs"}
        return json.dumps({"before": None, "after": after and json.dumps(after), "source": source, "op": op})

    first = {"_id": {"$oid": "5f"}, "pieces": {"$numberLong": "7"}, "price": {"$numberDecimal": "1.50"}}
    second = {"_id": {"$oid": "60"}, "at": {"$date": 1_577_836_800_000}, "tags": ["a", None], "place": {"zip": "1"}}
    texts = [event("c", first), event("c", second), event("u", {**first, "pieces": 8}), event("d", None)]
    keys = [None, None, None, json.dumps({"id": '{"$oid": "60"}'})]
    paimon.cdc(pa.table({"key": keys[:3], "value": texts[:3]}), table, "debezium-json")
    assert table.scan().to_arrow().sort_by("_id").to_pylist() == [
        {"_id": "5f", "pieces": 8, "price": Decimal("1.50"), "at": None, "tags": None, "place": None},
        {"_id": "60", "pieces": None, "price": None, "at": datetime(2020, 1, 1), "tags": ["a", None],
         "place": '{"zip": "1"}'},
    ]  # fmt: skip
    paimon.cdc(pa.table({"key": keys, "value": texts}), table, "debezium-json")
    assert table.scan().to_arrow()["_id"].to_pylist() == ["5f"]
    with pytest.raises(paimon.InvalidRequest, match=r"capture\.mode"):
        paimon.cdc([event("u", None)], table, "debezium-json")


def test_deletes_of_postgresql_have_only_their_key(catalog: paimon.Catalog) -> None:
    """With the default replica identity, updates have no row before, and deletes only the key, or the message's key."""
    ddl = "id BIGINT NOT NULL, name STRING NOT NULL"
    table = catalog.create_table("shop.t", ddl, primary_keys=["id"], options={"bucket": 1})
    source = {"connector": "postgresql", "schema": "public"}
    rows = [{"id": n, "name": "a"} for n in (1, 2, 3)]
    paimon.cdc([debezium("r", None, row, **source) for row in rows], table, "debezium-json")
    values = [
        debezium("u", None, {"id": 1, "name": "b"}, **source),
        debezium("d", {"id": 2, "name": None}, None, **source),
        debezium("d", None, None, **source),
    ]
    keys = [None, None, json.dumps({"schema": {}, "payload": {"id": 3}})]
    paimon.cdc(pa.table({"key": keys, "value": values}), table, "debezium-json")
    assert table.scan().to_arrow().to_pylist() == [{"id": 1, "name": "b"}]
    unchanged = debezium("u", None, {"id": 1, "name": "__debezium_unavailable_value"}, **source)
    with pytest.raises(paimon.InvalidRequest, match="REPLICA IDENTITY FULL"):
        paimon.cdc([unchanged], table, "debezium-json")


@pytest.mark.parametrize("format_name", ["maxwell-json", "columns"])
def test_a_table_without_a_key_accepts_inserts_only(catalog: paimon.Catalog, format_name: str) -> None:
    table = catalog.create_table("shop.log", "id BIGINT, name STRING")
    letters = create_dead_letters(catalog)
    first, second = {"id": 1, "name": "a"}, {"id": 1, "name": "b"}
    changes = [("c", None, first), ("u", first, second), ("d", second, None)]
    events: Any = [maxwell(*change) for change in changes]
    if format_name == "columns":
        events = pa.Table.from_pylist([{"op": op, **(after or before or {})} for op, before, after in changes])
    with pytest.raises(paimon.InvalidRequest, match=r"Event 1 cannot be read: Table 'shop\.log' has no primary key"):
        paimon.cdc(events, table, format_name)
    done = paimon.cdc(events, table, format_name, dead_letters=letters)
    assert (done.rejected, table.scan().to_arrow().to_pylist()) == (2, [first])
    log = table.with_options({"ignore-delete": "true"})
    assert paimon.cdc(events, log, format_name).rejected == 0
    assert table.scan().to_arrow().sort_by("name").to_pylist() == [first, first, second]


def test_new_columns_are_published_with_the_rows_or_not_at_all(
    catalog: paimon.Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = catalog.create_table("shop.t", DDL, primary_keys=["id"], options={"bucket": 1})
    letters = create_dead_letters(catalog)
    good = debezium("c", None, {"id": 1, "name": "a", "amount": 1, "size": 2})
    with pytest.raises(paimon.InvalidRequest, match="cannot be read"):
        paimon.cdc([good, debezium("c", None, {"id": "x", "color": "red"})], table, "debezium-json", merge_schema=True)
    assert len(list((Path(table.location) / "schema").iterdir())) == 1 and table.snapshots() == []
    publish = direct_writes.publish_schema

    def publish_after_another(context: TableContext) -> bool:
        monkeypatch.setattr(direct_writes, "publish_schema", publish)
        catalog.sql("ALTER TABLE shop.t ADD COLUMN other INT")
        return publish(context)

    monkeypatch.setattr(direct_writes, "publish_schema", publish_after_another)
    events = [good, debezium("c", None, {"id": "x"})]
    done = paimon.cdc(events, table, "debezium-json", merge_schema=True, dead_letters=letters)
    assert done.rejected == letters.scan().count() == 1
    wanted = {"id": 1, "name": "a", "amount": 1, "other": None, "size": 2}
    assert catalog.table("shop.t").scan().to_arrow().to_pylist() == [wanted]
    assert len(list(Path(catalog.warehouse).rglob("data-*"))) == 2  # those of the first attempt are deleted


def test_rows_with_an_operation_column(catalog: paimon.Catalog) -> None:
    table = catalog.create_table("shop.t", DDL, primary_keys=["id"], options={"bucket": 1})
    letters = create_dead_letters(catalog)
    rows = {"id": [1, 2, 1, 2, None], "name": ["a", "b", "c", "b", "d"], "amount": [1] * 5, "kind": [*"IIUD", "I"]}
    done = paimon.cdc(
        pa.table({**rows, "note": ["x"] * 5}), table, "columns",
        operation_column="kind", merge_schema=True, dead_letters=letters,
    )  # fmt: skip
    assert done.rejected == 1
    assert catalog.table("shop.t").scan().to_arrow().to_pylist() == [{"id": 1, "name": "c", "amount": 1, "note": "x"}]
    [letter] = letters.scan().to_arrow().to_pylist()
    assert json.loads(letter["value"])["name"] == "d" and "NOT NULL" in letter["reason"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"format": "debezium"}, "Event format 'debezium' is unknown.*debezium-json"),
        ({"metadata": {"versoin": "ts_ms"}}, "no column 'versoin' for metadata"),
        ({"metadata": {"amount": "frame.offset"}}, "no column 'offset' for metadata"),
        ({"format": "columns"}, "no operation column 'op'"),
        ({"format": "columns", "metadata": {"amount": "x"}}, "Format 'columns' has no metadata"),
        ({"events": iter(["{}"]), "merge_schema": True}, "read twice"),
        ({"events": pa.table({"a": [1], "b": [2]})}, "have no text"),
    ],
)
def test_bad_arguments_are_refused_by_name(catalog: paimon.Catalog, arguments: dict[str, Any], message: str) -> None:
    table = catalog.create_table("shop.t", DDL, primary_keys=["id"], options={"bucket": 1})
    given = {"events": [debezium("c", None, {"id": 1})], "table": table, "format": "debezium-json", **arguments}
    with pytest.raises(paimon.InvalidRequest, match=message):
        paimon.cdc(**given)
    assert table.snapshots() == []


@pytest.mark.parametrize("count", [20_000, pytest.param(100_000, marks=pytest.mark.nightly)])
def test_an_event_of_many_members_without_a_column(catalog: paimon.Catalog, count: int) -> None:
    table = catalog.create_table("shop.orders", DDL, primary_keys=["id"], options={"bucket": 1})
    letters = create_dead_letters(catalog)
    many = {f"member_{i}": i for i in range(count)}
    poison, good = debezium("c", None, {**many, "id": 1, "name": "a"}), debezium("c", None, {"id": 2, "name": "b"})
    done = paimon.cdc([poison, good], table, "debezium-json", dead_letters=letters)
    nulls = debezium("c", None, {**dict.fromkeys(many), "id": 3, "name": "c"})
    done_nulls = paimon.cdc([nulls], table, "debezium-json", dead_letters=letters)
    assert (done.rejected, done_nulls.rejected) == (1, 0)
    assert "no column 'member_0'" in letters.scan().to_arrow()["reason"][0].as_py()
    assert table.scan(columns=["id"]).to_arrow()["id"].to_pylist() == [2, 3]
    with pytest.raises(paimon.InvalidRequest, match=f"The events add {count:,} columns to table"):
        paimon.cdc([poison], table, "debezium-json", merge_schema=True)
