"""Rows are cast to their columns as INSERT casts them, and completed by a static partition."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal
from math import inf, isnan, nan
from typing import Any

import pyarrow as pa
import pytest

from paimon.domain.assignment.store_assignment import StoreAssignment
from paimon.domain.errors import InvalidRequest
from paimon.domain.types.data_types import DataField
from paimon.domain.types.type_text import parse_type

BERLIN = "Europe/Berlin"
TYPES = {
    "f": "FLOAT", "d": "DECIMAL(5, 2)", "i": "INT", "s": "STRING", "day": "DATE", "n": "TIMESTAMP(6)",
    "z": "TIMESTAMP_LTZ(6)", "t": "TIME(3)", "ar": "ARRAY<FLOAT>", "m": "MAP<STRING, INT>", "r": "ROW<x INT, y STRING>",
    "b": "BOOLEAN",
}  # fmt: skip


def make(zone: str = BERLIN, **partition: Any) -> StoreAssignment:
    fields = [DataField(n, name, parse_type(text)) for n, (name, text) in enumerate(TYPES.items())]
    return StoreAssignment(fields, zone, partition)


def store(name: str, values: Any, kind: pa.DataType | None = None, zone: str = BERLIN) -> list[Any]:
    stored: list[Any] = make(zone).assign_rows(pa.table({name: pa.array(values, kind)}))[name].to_pylist()
    return stored


def test_numbers_lose_digits() -> None:
    given = pa.record_batch({"f": [0.1, None, inf, nan], "d": [Decimal("1.255"), Decimal("-1.255"), None, Decimal(1)]})
    (rows,) = make()([given])
    assert rows.schema.types == [pa.float32(), pa.decimal128(5, 2)]
    assert rows["d"].to_pylist() == [Decimal("1.26"), Decimal("-1.26"), None, Decimal("1.00")]
    singles = rows["f"].to_pylist()
    assert singles[:3] == [0.10000000149011612, None, inf] and isnan(singles[3])
    assert store("f", [Decimal("0.5")]) == [0.5]
    assert store("f", [2**24 + 1]) == [2.0**24]
    assert store("i", [2.9, -2.9, None]) == [2, -2, None]
    assert store("i", [Decimal("0.9"), Decimal("-0.9")], pa.decimal128(1, 1)) == [0, 0]
    assert store("d", [0.125, -0.125, None]) == [Decimal("0.13"), Decimal("-0.13"), None]


@pytest.mark.parametrize("values", [pa.array(["0.1"]), pa.array([0.5], pa.float32()), pa.array([True])])
def test_values_that_are_not_cast_are_left_to_the_writer(values: pa.Array) -> None:
    given = pa.table({"f": values, "other": values})
    assert make().assign_rows(given) is given


@pytest.mark.parametrize(
    ("name", "value"),
    [("f", 1e39), ("f", -1e300), ("d", Decimal("999.995")), ("d", 1e3), ("d", nan), ("i", 2.0**31), ("i", nan),
     ("i", Decimal(2**31)), ("m", [("a", 1e10)])],
)  # fmt: skip
def test_values_that_are_too_large_are_refused(name: str, value: object) -> None:
    kind = pa.map_(pa.string(), pa.float64()) if name == "m" else None
    with pytest.raises(InvalidRequest, match=f"Column '{name}"):
        store(name, [value], kind)


def test_texts_are_those_of_spark() -> None:
    assert store("s", [True, None]) == ["true", None]
    assert store("s", [1.0, 1e10, nan]) == ["1.0", "1.0E10", "NaN"]
    assert store("s", [Decimal("0.0000001000")]) == ["0.0000001000"]
    assert store("s", [b"ab"]) == ["ab"]
    assert store("s", [date(2026, 1, 2)]) == ["2026-01-02"]
    assert store("s", [2_932_897], pa.date32()) == ["+10000-01-01"]
    assert store("s", [time(1, 2, 3, 40_000)]) == ["01:02:03.04"]
    moments = [datetime(2026, 1, 2, 3, 4, 10), datetime(2026, 1, 2, 0, 0, 0, 120_000)]
    assert store("s", moments) == ["2026-01-02 03:04:10", "2026-01-02 00:00:00.12"]
    instants = [moment.replace(tzinfo=UTC) for moment in moments]
    assert store("s", instants) == ["2026-01-02 04:04:10", "2026-01-02 01:00:00.12"]


def test_dates_and_times_of_day_are_those_of_the_time_zone() -> None:
    late = datetime(2026, 1, 1, 23, 30, tzinfo=UTC)
    assert store("day", [late, None]) == [date(2026, 1, 2), None]
    assert store("n", [late]) == [datetime(2026, 1, 2, 0, 30)]
    assert store("n", [date(1969, 12, 31)]) == [datetime(1969, 12, 31)]
    assert store("t", [late]) == [time(0, 30)]
    instants = store("z", [date(2026, 1, 2), None])
    assert instants[0] == datetime(2026, 1, 1, 23, tzinfo=UTC) and instants[1] is None
    # 02:30 does not exist on 29 March, and exists twice on 25 October.
    twice = store("z", [datetime(2026, 3, 29, 2, 30), datetime(2026, 10, 25, 2, 30)])
    assert twice == [datetime(2026, 3, 29, 1, 30, tzinfo=UTC), datetime(2026, 10, 25, 0, 30, tzinfo=UTC)]


def test_an_unknown_time_zone_is_refused_where_it_matters() -> None:
    assert store("n", [date(2026, 1, 2)], zone="") == [datetime(2026, 1, 2)]
    with pytest.raises(InvalidRequest, match="time zone of the session is unknown"):
        store("z", [date(2026, 1, 2)], zone="")
    with pytest.raises(InvalidRequest, match=r"Column 'z'.*Mars/Olympus"):
        store("z", [date(2026, 1, 2)], zone="Mars/Olympus")


def test_values_in_nested_types_are_cast() -> None:
    assert store("ar", [[0.1, None], None]) == [[0.10000000149011612, None], None]
    assert store("m", [{1: 2.9}, None], pa.map_(pa.int32(), pa.float64())) == [[("1", 2)], None]
    assert store("r", [{"y": 1, "x": 2.5}, None]) == [{"y": "1", "x": 2}, None]


def test_a_static_partition_completes_rows() -> None:
    day = date(2026, 1, 2)
    assign = make(day=(day - date(1970, 1, 1)).days, s=None)
    rows = assign.assign_rows(pa.table({"i": [1, 2]}))
    assert rows.to_pylist() == [{"i": 1, "day": day, "s": None}, {"i": 2, "day": day, "s": None}]
    assert assign.assign_rows(rows).equals(rows)
    with pytest.raises(
        InvalidRequest, match="'day' contains '2026-01-03', but the rows belong to the partition with '2026-01-02'"
    ):
        assign.assign_rows(pa.table({"day": [day, date(2026, 1, 3)]}))
    with pytest.raises(InvalidRequest, match="'day' contains 'None'"):
        assign.assign_rows(pa.table({"day": pa.array([day, None])}))
    with pytest.raises(InvalidRequest, match="'s' contains 'a'"):
        assign.assign_rows(pa.table({"s": [None, "a"]}))
