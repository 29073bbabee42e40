"""Python values as columns: values of every depth fit, or are refused; nothing is cut."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from paimon.domain.columns.conform import conform_to_fields
from paimon.domain.columns.python_values import convert_column
from paimon.domain.errors import InvalidRequest
from paimon.domain.types.data_types import DataField
from paimon.domain.types.type_text import parse_type

NOON = datetime.datetime(2026, 1, 31, 12, 0, 0, 5)
DAY = np.datetime64("2026-01-31")
NANOS = pd.Timestamp("2026-01-31 12:00:00.000000005")
RECORD = np.array([("a", 1)], [("y", "U1"), ("x", "i4")])[0]


def store(values: list[Any], type_text: str) -> list[Any]:
    field = DataField(0, "v", parse_type(type_text))
    rows = pa.table({"v": convert_column("v", values, field.type)})
    stored: list[Any] = conform_to_fields(rows, (field,), "table t")["v"].to_pylist()
    return stored


@pytest.mark.parametrize(
    ("type_text", "value"),
    [
        ("ARRAY<INT>", [1.5]),
        ("ARRAY<INT>", np.array([1.5])),
        ("ARRAY<INT>", [Decimal("1.5")]),
        ("ARRAY<INT>", "12"),
        ("ARRAY<INT>", {1: 2}),
        ("ARRAY<DATE>", [NOON]),
        ("ARRAY<TIME>", [NOON.time()]),
        ("ARRAY<TIMESTAMP(3)>", [NOON]),
        ("ARRAY<TIMESTAMP(6)>", [NANOS]),
        ("TIMESTAMP(3)", "2026-01-31 12:00:00.0005"),
        ("TIMESTAMP(6)", NANOS),
        ("ARRAY<INT>", np.array(3)),
        ("MAP<STRING, INT>", {"a": 1.5}),
        ("MAP<STRING, STRING>", ["ab"]),
        ("MAP<INT, STRING>", {1.5: "a"}),
        ("MAP<INT, STRING>", {None: "a"}),
        ("MULTISET<STRING>", {"a": 1.5}),
        ("ROW<x INT, y STRING>", {"x": 1.5, "y": "a"}),
        ("ROW<x STRING, y STRING>", "ab"),
        ("ROW<x INT, y STRING>", {"x": 1, "z": "a"}),
        ("ARRAY<ROW<x MAP<STRING, ARRAY<INT>>>>", [{"x": {"a": [1.5]}}]),
        ("DATE", np.datetime64(NOON)),
        ("INT", DAY),
        ("DOUBLE", np.datetime64(NOON, "ns")),
    ],
)
def test_values_that_do_not_fit_are_refused(type_text: str, value: Any) -> None:
    with pytest.raises(InvalidRequest):
        store([None, value], type_text)


@pytest.mark.parametrize(
    ("type_text", "value", "stored"),
    [
        ("ARRAY<INT>", [1.0, None, "7"], [1, None, 7]),
        ("ARRAY<INT>", np.ma.masked_array([1, 2], [False, True]), [1, None]),
        ("ARRAY<BIGINT>", np.array([1, 2]), [1, 2]),
        ("ARRAY<DATE>", [DAY, pd.NaT], [DAY.item(), None]),
        ("MAP<STRING, INT>", {"a": 1.0, "b": None}, [("a", 1), ("b", None)]),
        ("MAP<STRING, INT>", [("a", 1)], [("a", 1)]),
        ("MULTISET<STRING>", {"a": 2}, [("a", 2)]),
        ("ROW<x INT, y STRING>", (1, "a"), {"x": 1, "y": "a"}),
        ("ROW<x INT, y STRING>", {"y": "a"}, {"x": None, "y": "a"}),
        ("VECTOR<FLOAT, 2>", np.array([1.5, 2.0]), [1.5, 2.0]),
        ("ARRAY<INT>", pd.Series([1, 2]), [1, 2]),
        ("ARRAY<TIMESTAMP(9)>", [NANOS, pd.NaT], [NANOS, None]),
        ("MAP<STRING, INT>", {"a": 1}.items(), [("a", 1)]),
        ("MAP<STRING, INT>", np.array([("a", 1)], object), [("a", 1)]),
        ("ROW<x INT, y STRING>", RECORD, {"x": 1, "y": "a"}),
        ("BIGINT", np.float64(2**60), 2**60),
        ("TIMESTAMP(9)", NANOS, NANOS),
        ("INT", pd.NA, None),
        ("DATE", DAY, DAY.item()),
        ("TIMESTAMP", DAY, datetime.datetime(2026, 1, 31)),
        ("TIMESTAMP", np.datetime64("NaT"), None),
    ],
)
def test_values_that_fit_are_stored(type_text: str, value: Any, stored: Any) -> None:
    assert store([None, value], type_text) == [None, stored]
