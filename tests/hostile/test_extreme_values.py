"""Values at and beyond the ends of their types: infinities, years of any length, thousands of digits."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from math import inf, nan
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import paimon
from paimon.cli.main import main
from paimon.domain.columns.cast import cast_column
from paimon.domain.columns.time_text import format_times
from paimon.domain.errors import InvalidRequest, PaimonError
from paimon.domain.row.values import to_array
from paimon.domain.types.type_text import parse_type
from paimon.table import Table

INFINITY = 9_223_372_036_825_200_000
"""PostgreSQL's timestamp 'infinity' as Debezium sends it."""
LARGE = 10**5000


@pytest.fixture
def table(catalog: paimon.Catalog) -> Table:
    columns = (
        "k BIGINT, f FLOAT, g DOUBLE, a ARRAY<FLOAT>, r ROW<x FLOAT>, m MAP<STRING, FLOAT>, c DECIMAL(10, 2), s STRING"
    )
    return catalog.create_table("d.t", columns)


@pytest.mark.parametrize(
    "row",
    [{"f": 1e300}, {"f": -1e300}, {"f": 3.5e38}, {"f": "1e300"}, {"f": np.float64(1e300)}, {"g": "1e999"},
     {"g": 10**400}, {"a": [1.0, 1e300]}, {"r": {"x": -1e300}}, {"m": {"k": 1e39}}],
)  # fmt: skip
def test_a_number_beyond_its_type_does_not_become_infinite(table: Table, row: dict[str, Any]) -> None:
    (name,) = row
    for data in ([row], {name: [row[name]]}):
        with pytest.raises(InvalidRequest, match=f"Column '{name}'"):
            table.write(data)
    assert table.snapshot() is None


def test_infinities_and_rounded_numbers_are_stored(table: Table) -> None:
    rows = [{"f": inf}, {"f": -inf}, {"f": "Infinity"}, {"f": 3.4028235e38}, {"f": nan}, {"f": 0.1}, {"a": [inf, None]}]
    table.write([{"k": i, **row} for i, row in enumerate(rows)])
    stored = table.scan().to_arrow().sort_by("k")
    assert stored["f"].to_pylist()[:4] == [inf, -inf, inf, float(np.float32(3.4028235e38))]
    assert str(stored["f"][4]) == "nan" and stored["a"].to_pylist()[6] == [inf, None]


DAYS = {
    35_804_357: "9999-01-01", 2_932_897: "0000-01-01", 2_932_896: "9999-12-31", -719_528: "0000-01-01",
    -719_529: "000/-12-31", -723_180: "00/0-01-01", -1_084_405: "0'''-01-01", -4_371_587: "'''(-/0-.-",
    -5_228_446: ".-,,-/0-.+", -106_639_853: "0000-01-02", 1_073_741_824: "1775-04-07", -1_000_000: "0)*(-02-04",
    -1_073_741_824: ")(-+-0/-.(", 5_000_000: "5659-07-15",
}  # fmt: skip
MICROS = {
    253_402_300_800_000_000: "0000-01-01 00:00:00.000000",
    INFINITY: "4247-01-10 04:00:25.200000",
    2**63 - 1: "4247-01-10 04:00:54.775807",
    -(2**63) + 1: "0-0(-12-21 19:59:05.224193",
    -62_135_596_800_000_001: "0000-12-31 23:59:59.999999",
    -1: "1969-12-31 23:59:59.999999",
}


@pytest.mark.parametrize("kind", ["DATE", "TIMESTAMP(6)", "TIMESTAMP(6) WITH LOCAL TIME ZONE"])
def test_times_of_any_year_are_cast_to_the_text_that_java_reads(kind: str) -> None:
    expected = DAYS if kind == "DATE" else MICROS
    unit = 1 if kind == "DATE" else 1000
    array = to_array([None, *(value * unit for value in expected)], parse_type(kind))
    assert cast_column(array, parse_type(kind), parse_type("STRING")).to_pylist() == [None, *expected.values()]


@given(st.integers(-(2**63) + 1, 2**63 - 1), st.sampled_from(["s", "ms", "us", "ns"]))
def test_a_printed_time_is_the_time_in_full(value: int, unit: str) -> None:
    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    if abs(value) // per_second // 86_400 > 2**40:
        value //= 10**6
    array = pa.array([value]).cast(pa.timestamp(unit))
    text = format_times(array)[0].as_py()
    printed = np.datetime_as_string(np.datetime64(value, unit)).replace("T", " ").lstrip("+")
    # numpy counts the sign as one of four digits
    assert re.sub(r"^-(?=\d{3}-)", "-0", printed) == text.lstrip("+")


def test_no_text_of_arrow_s_is_shown_or_stored(catalog: paimon.Catalog, capsys: pytest.CaptureFixture[str]) -> None:
    table = catalog.create_table("d.t", "id INT NOT NULL, c TIMESTAMP(6), s STRING", primary_keys=["id"])
    times = pa.array([INFINITY], pa.int64()).cast(pa.timestamp("us"))
    table.write(pa.table({"id": pa.array([1], pa.int32()), "c": times}), missing_columns="null")
    for arguments in ([], ["--output", "json"]):
        assert main(["cat", table.location, *arguments]) == 0
        assert "294247-01-10" in capsys.readouterr().out
    assert main(["cat", table.location, "--output", "csv"]) != 0
    assert "Column 'c' has a year of more than four digits" in capsys.readouterr().err
    with pytest.raises(InvalidRequest, match="cannot become STRING"):
        table.alter_column_type("c", "STRING")


@pytest.mark.parametrize(
    ("kind", "number"),
    [("MicroTimestamp", INFINITY), ("MicroTimestamp", -9_223_372_036_832_400_000), ("Timestamp", 253_402_300_800_000),
     ("Date", 2_932_897), ("Date", -719_163)],
)  # fmt: skip
def test_an_event_with_a_time_that_has_no_text_is_a_dead_letter(
    catalog: paimon.Catalog, kind: str, number: int
) -> None:
    table = catalog.create_table("d.t", "id INT NOT NULL, c STRING", primary_keys=["id"])
    letters = catalog.create_table("d.letters", paimon.DEAD_LETTER_SCHEMA)
    events = [make_event(1, 0, kind), make_event(2, number, kind), make_event(3, None, kind)]
    with pytest.raises(InvalidRequest):
        paimon.cdc(events, table, "debezium-json")
    paimon.cdc(events, table, "debezium-json", dead_letters=letters)
    assert sorted(table.scan(["id"]).to_arrow()["id"].to_pylist()) == [1, 3]
    assert letters.scan().count() == 1


def make_event(key: int, value: int | None, kind: str) -> str:
    described = {"field": "c", "type": "int64", "optional": True, "name": f"io.debezium.time.{kind}"}
    after = {"field": "after", "type": "struct", "fields": [{"field": "id", "type": "int32"}, described]}
    payload = {"after": {"id": key, "c": value}, "op": "c", "source": {"db": "d", "table": "t"}}
    return json.dumps({"schema": {"type": "struct", "fields": [after]}, "payload": payload})


DIGITS = "9" * 5000
REFUSED: dict[str, Callable[[paimon.Catalog, Table], object]] = {
    "call": lambda c, t: c.sql(f"CALL sys.rollback('d.t', {DIGITS})"),
    "call by name": lambda c, t: c.sql(f"CALL sys.expire_snapshots(table => 'd.t', retain_max => {DIGITS})"),
    "call text": lambda c, t: c.sql(f"CALL sys.rollback_to_timestamp('d.t', '{DIGITS}')"),
    "write": lambda c, t: t.write([{"k": LARGE}]),
    "write double": lambda c, t: t.write([{"g": LARGE}]),
    "write decimal": lambda c, t: t.write([{"c": LARGE}]),
    "write text": lambda c, t: t.write([{"s": LARGE}]),
    "write digits": lambda c, t: t.write([{"k": DIGITS}]),
    "text condition": lambda c, t: t.scan(where=paimon.col("s") == LARGE).count(),
    "snapshot": lambda c, t: t.scan(snapshot=LARGE).count(),
    "default": lambda c, t: t.alter_column_default("k", LARGE),
    "update": lambda c, t: c.sql(f"UPDATE d.t SET k = {DIGITS}"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_integer_of_5000_digits_is_refused(catalog: paimon.Catalog, table: Table, name: str) -> None:
    table.write([{"k": 1}])
    with pytest.raises(PaimonError):
        REFUSED[name](catalog, table)


def test_an_integer_of_5000_digits_is_compared(catalog: paimon.Catalog, table: Table) -> None:
    table.write([{"k": 1, "c": 1, "g": 1.0}])
    for name in ("k", "c", "g"):
        assert table.scan(where=paimon.col(name) < LARGE).count() == 1
        assert table.scan(where=paimon.col(name) > -LARGE).count() == 1
        assert table.scan(where=paimon.col(name) == LARGE).count() == 0
    assert catalog.sql(f"SELECT * FROM d.t WHERE k = {DIGITS}").to_arrow().num_rows == 0


@pytest.mark.parametrize("zone", ["+00", " +00", "+00:00", "+0000", "Z", " UTC"])
def test_offsets_of_whole_hours_are_read(catalog: paimon.Catalog, zone: str) -> None:
    table = catalog.create_table("d.z", "z TIMESTAMP(6) WITH LOCAL TIME ZONE")
    table.write([{"z": f"2024-01-01 00:00:00{zone}"}])
    assert table.scan(where=f"z = TIMESTAMPTZ '2024-01-01 00:00:00{zone}'").count() == 1
    assert table.scan(where="z = TIMESTAMPTZ '2024-01-01 02:00:00+02'").count() == 1
    assert table.scan(where="z = '2023-12-31 19:00:00-05'").count() == 1


def test_zeros_and_nan_are_partitions_of_their_own(catalog: paimon.Catalog) -> None:
    made = catalog.create_table("d.parts", "p DOUBLE, v INT", partition_keys=["p"])
    made.write({"p": [0.0, -0.0, nan], "v": [1, 2, 3]})
    made.overwrite({"p": [0.0], "v": [10]}, partition={"p": 0.0})
    made.overwrite({"p": [nan], "v": [30]}, partition={"p": nan})
    assert sorted(made.to_arrow()["v"].to_pylist()) == [2, 10, 30]
    made.drop_partitions({"p": -0.0}, {"p": nan}, missing_ok=False)
    assert made.to_arrow()["v"].to_pylist() == [10]


def test_a_day_after_the_year_9999_is_queried_and_named(catalog: paimon.Catalog) -> None:
    days = pa.array([0, 2_932_902], pa.int32()).cast(pa.date32())
    made = catalog.create_table("d.days", "k DATE, p DATE NOT NULL", partition_keys=["p"])
    made.write(pa.table({"k": days, "p": days}))
    for condition in ("k > DATE '10000-01-01'", "p > DATE '10000-01-01'"):
        assert catalog.sql(f"SELECT k, p FROM d.days WHERE {condition}").to_arrow().num_rows == 1
        assert catalog.sql(f"SELECT count(*) AS n FROM d.days WHERE {condition}").to_arrow()["n"].to_pylist() == [1]
    twice = pa.table({"k": pa.concat_arrays([days, days])})
    with pytest.raises(paimon.InvalidRequest, match="match the same row of"):
        made.merge(twice, on=["k"]).when_matched_delete().execute()
    with pytest.raises(paimon.InvalidRequest, match="cannot show"):
        made.drop_partitions({"p": days[1]})
    with pytest.raises(paimon.InvalidRequest, match="date_as_object=False"):
        made.to_pandas()
    assert len(made.to_pandas(date_as_object=False)) == 2
