"""A type that holds all values between two bounds changes none of them when they are cast."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from paimon.domain.columns.cast import cast_column
from paimon.domain.errors import PaimonError
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.manifest.type_fit import (
    find_type_changes,
    find_unsafe_cast,
    find_wider_types,
    holds_all,
    holds_between,
)
from paimon.domain.row.values import to_array, to_values
from paimon.domain.stats.simple_stats import ColumnStats, to_simple_stats
from paimon.domain.types.casting import can_cast
from paimon.domain.types.data_types import DataType
from paimon.domain.types.ddl import parse_columns
from paimon.domain.types.type_text import parse_type

HOLDING = [
    ("TINYINT", "SMALLINT"), ("INT", "BIGINT"), ("INT", "DOUBLE"), ("SMALLINT", "FLOAT"), ("INT", "DECIMAL(10, 0)"),
    ("FLOAT", "DOUBLE"), ("DECIMAL(10, 2)", "DECIMAL(12, 4)"), ("DECIMAL(10, 2)", "DOUBLE"), ("BOOLEAN", "INT"),
    ("CHAR(3)", "VARCHAR(3)"), ("VARCHAR(3)", "STRING"), ("BINARY(3)", "BYTES"), ("STRING", "BYTES"),
    ("INT", "STRING"), ("INT", "VARCHAR(11)"), ("DOUBLE", "STRING"), ("DATE", "TIMESTAMP(3)"),
    ("TIMESTAMP(3)", "TIMESTAMP(6)"), ("INT", "TIMESTAMP(9)"), ("TIMESTAMP(9)", "STRING"),
    ("TIMESTAMP(0)", "BIGINT"), ("ROW<a INT>", "ROW<a BIGINT>"), ("ARRAY<INT>", "ARRAY<BIGINT>"),
    ("MAP<INT, INT>", "MAP<INT, BIGINT>"),
]  # fmt: skip
LOSING = [
    ("BIGINT", "INT"), ("BIGINT", "DOUBLE"), ("INT", "FLOAT"), ("INT", "DECIMAL(9, 0)"), ("DOUBLE", "FLOAT"),
    ("DOUBLE", "INT"), ("DECIMAL(10, 2)", "DECIMAL(10, 4)"), ("DECIMAL(10, 4)", "DECIMAL(10, 2)"),
    ("DECIMAL(10, 2)", "INT"), ("INT", "BOOLEAN"), ("STRING", "INT"), ("STRING", "VARCHAR(3)"), ("BYTES", "STRING"),
    ("VARCHAR(3)", "CHAR(5)"), ("BINARY(3)", "BINARY(5)"), ("INT", "VARCHAR(10)"), ("TIMESTAMP(6)", "TIMESTAMP(3)"),
    ("TIMESTAMP(6)", "TIMESTAMP(9)"), ("DATE", "TIMESTAMP(9)"), ("TIMESTAMP(6)", "DATE"), ("TIMESTAMP(3)", "BIGINT"),
    ("BIGINT", "TIMESTAMP(6)"), ("DATE", "STRING"), ("TIMESTAMP(6)", "STRING"), ("ARRAY<INT>", "STRING"),
    ("ROW<a BIGINT>", "ROW<a INT>"),
]  # fmt: skip


@pytest.mark.parametrize(("held", "wanted"), HOLDING)
def test_types_that_hold_all_values(held: str, wanted: str) -> None:
    assert holds_all(parse_type(held), parse_type(wanted))


@pytest.mark.parametrize(("held", "wanted"), LOSING)
def test_types_that_may_lose_values(held: str, wanted: str) -> None:
    assert not holds_all(parse_type(held), parse_type(wanted))


@pytest.mark.parametrize(
    ("stored", "given", "wider", "cast"),
    [
        ("INT", "BIGINT", True, True),
        ("BIGINT", "INT", False, False),
        ("BIGINT", "DOUBLE", False, False),
        ("FLOAT", "DOUBLE", True, True),
        ("DECIMAL(10, 2)", "DECIMAL(12, 2)", True, True),
        ("DECIMAL(10, 2)", "DECIMAL(10, 4)", False, False),
        ("DECIMAL(10, 2)", "DOUBLE", False, True),
        ("INT", "STRING", False, True),
        ("STRING", "INT", False, False),
        ("VARCHAR(3)", "STRING", False, False),
        ("TIMESTAMP(3)", "TIMESTAMP(6)", False, False),
        ("DATE", "TIMESTAMP(6)", False, True),
        ("INT NOT NULL", "INT", False, False),
    ],
)
def test_types_of_data_that_are_wider(stored: str, given: str, wider: bool, cast: bool) -> None:
    columns, data = parse_columns(f"a {stored}"), parse_columns(f"b BIGINT, a {given}")
    wanted = {"a": data[1].type}
    assert find_wider_types(columns, data, allows_casts=False) == (wanted if wider else {})
    assert find_wider_types(columns, data, allows_casts=True) == (wanted if cast else {})


NUMBERS = [
    "TINYINT",
    "SMALLINT",
    "INT",
    "BIGINT",
    "FLOAT",
    "DOUBLE",
    "DECIMAL(5, 2)",
    "DECIMAL(12, 0)",
    "DECIMAL(38, 6)",
]


@given(st.sampled_from(NUMBERS), st.sampled_from(NUMBERS), st.data())
def test_numbers_within_proven_bounds_stay_equal(held: str, wanted: str, data: st.DataObject) -> None:
    source, target = parse_type(held), parse_type(wanted)
    low, value, high = sorted(data.draw(st.lists(draw_numbers(source), min_size=3, max_size=3)))
    assume(can_cast(source, target) and holds_between(source, target, low, high))
    (made,) = cast_values([value], source, target)
    if "DECIMAL" in held and wanted in ("FLOAT", "DOUBLE"):
        assert Decimal(f"{made:.{6 if wanted == 'FLOAT' else 15}g}") == value
    else:
        assert Decimal(made) == Decimal(value)


def draw_numbers(data_type: DataType) -> st.SearchStrategy[Any]:
    wide = st.integers(-300, 300) | st.integers(-(2**63), 2**63 - 1)
    name = type(data_type).__name__
    if name in ("FloatType", "DoubleType"):
        return st.floats(allow_nan=False, width=32 if name == "FloatType" else 64)
    if name == "DecimalType":
        limit = 10**data_type.precision - 1
        return st.integers(-limit, limit).map(lambda n: Decimal(f"{n}e-{data_type.scale}"))
    bits = {"TinyIntType": 8, "SmallIntType": 16, "IntType": 32, "BigIntType": 64}[name]
    return wide.filter(lambda n: -(2 ** (bits - 1)) <= n < 2 ** (bits - 1))


def cast_values(values: list[Any], source: DataType, target: DataType) -> list[Any]:
    return to_values(cast_column(to_array(values, source), source, target), target)


@pytest.mark.parametrize(
    ("held", "wanted", "low", "high", "fits"),
    [
        ("BIGINT", "INT", 1, 2**31 - 1, True),
        ("BIGINT", "INT", 1, 2**31, False),
        ("BIGINT", "INT", -(2**31) - 1, 1, False),
        ("BIGINT", "DOUBLE", 0, 2**53, True),
        ("BIGINT", "DOUBLE", 0, 2**53 + 1, False),
        ("DOUBLE", "INT", 1.0, 2.0, False),
        ("DOUBLE", "INT", 2.0, 2.0, True),
        ("DECIMAL(10, 2)", "DECIMAL(5, 2)", Decimal("1.00"), Decimal("999.99"), True),
        ("DECIMAL(10, 2)", "DECIMAL(5, 2)", Decimal("1.00"), Decimal("1000.00"), False),
        ("DECIMAL(10, 2)", "INT", Decimal("1.00"), Decimal("3.00"), False),
        ("INT", "BOOLEAN", 0, 1, True),
        ("INT", "BOOLEAN", 0, 2, False),
        ("INT", "VARCHAR(3)", -99, 999, True),
        ("INT", "VARCHAR(3)", -100, 999, False),
        ("STRING", "INT", "1", "3", False),
        ("STRING", "INT", "12", "12", True),
        ("STRING", "INT", "1.5", "1.5", False),
        ("STRING", "INT", "abc", "abc", False),
        ("STRING", "VARCHAR(3)", "abc", "abc", True),
        ("STRING", "VARCHAR(3)", "abcd", "abcd", False),
        ("DATE", "TIMESTAMP(9)", 0, 20_000, True),
        ("DATE", "TIMESTAMP(9)", 0, 2_932_896, False),
        ("TIMESTAMP(6)", "TIMESTAMP(9)", 0, 2**63 - 808, True),
        ("TIMESTAMP(6)", "TIMESTAMP(9)", 0, 253_402_300_799 * 10**9, False),
        ("DATE", "STRING", -719_528, 2_932_896, True),
        ("DATE", "STRING", 0, 2_932_897, False),
        ("TIMESTAMP(6)", "DATE", 0, 86_400 * 10**9, False),
        ("TIMESTAMP(6)", "DATE", 86_400 * 10**9, 86_400 * 10**9, True),
        ("TIMESTAMP(6)", "TIMESTAMP(3)", 1_000, 1_000, False),
        ("TIMESTAMP(6)", "TIMESTAMP(3)", 1_000_000, 1_000_000, True),
        ("BIGINT", "TIMESTAMP(6)", 0, 2_000_000_000, True),
        ("BIGINT", "TIMESTAMP(6)", 0, 2**62, False),
    ],
)
def test_bounds_prove_or_do_not(held: str, wanted: str, low: Any, high: Any, fits: bool) -> None:
    assert holds_between(parse_type(held), parse_type(wanted), low, high) is fits


def test_a_single_value_that_cannot_be_cast_does_not_fit() -> None:
    with pytest.raises(PaimonError):
        cast_values(["abc"], parse_type("STRING"), parse_type("INT"))
    assert not holds_between(parse_type("STRING"), parse_type("BOOLEAN"), "maybe", "maybe")


def test_a_file_proves_its_columns_by_its_own_statistics() -> None:
    written = parse_columns("k INT, v BIGINT, w BIGINT")
    current = parse_columns("k INT, v INT, w INT")
    changes = find_type_changes(written, current)
    assert [c.name for c in changes] == ["v", "w"]
    types = [f.type for f in written]

    def find(v: ColumnStats, w: ColumnStats, **more: Any) -> str | None:
        stats = to_simple_stats([ColumnStats(1, 2, 0), v, w], types)
        cast = find_unsafe_cast(DataFileMeta("f", 1, 4, value_stats=stats, **more), written, changes)
        return None if cast is None else f"{cast.change.name}: {cast.bound}"

    small, large, nulls, unknown = ColumnStats(1, 5, 0), ColumnStats(1, 3 * 10**9, 0), ColumnStats(None, None, 4), None
    assert find(small, nulls) is None
    assert find(small, large) == "w: 3000000000"
    assert find(ColumnStats(None, None, 3), small) == "v: None"
    assert find(small, large, write_cols=["k", "v", "w"]) == "w: 3000000000"
    empty = DataFileMeta("f", 1, 4, value_stats_cols=[])
    assert find_unsafe_cast(empty, written, changes) is not None and unknown is None
