"""Partition directories and specs."""

import datetime
import json
import pathlib
from decimal import Decimal
from urllib.parse import unquote

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon.domain.columns.java_text import format_java_float
from paimon.domain.errors import InvalidRequest, Unsupported
from paimon.domain.partition.partition_text import escape, format_date, format_partition_path, parse_partition_spec
from paimon.domain.types import data_types as dt
from paimon.domain.types.data_types import DataField
from paimon.domain.whitespace import JAVA_WHITESPACE, is_blank

WHITESPACE = pathlib.Path(__file__).parents[2] / "data" / "vectors" / "java_whitespace.txt"
VECTORS = pathlib.Path(__file__).parents[2] / "data" / "vectors" / "partition_path.jsonl"
DAY_NANOS = 86_400 * 10**9


@pytest.mark.parametrize("line", VECTORS.read_text().splitlines())
def test_paths_equal_java(line):
    vector = json.loads(line)
    assert "".join(f"{escape(k)}={escape(v)}/" for k, v in vector["spec"]) == vector["path"]


@given(st.text())
def test_escaping_is_reversible(text):
    assert unquote(escape(text)) == text
    assert not set(escape(text)) & set('/\\:*?"\0')


@pytest.mark.parametrize(
    ("data_type", "value", "legacy", "plain"),
    [
        (dt.BooleanType(), True, "true", "true"),
        (dt.IntType(), -7, "-7", "-7"),
        (dt.VarCharType(), "a b", "a b", "a b"),
        (dt.VarCharType(), " \t", "NONE", "NONE"),
        (dt.VarCharType(), None, "NONE", "NONE"),
        (dt.DecimalType(20, 2), Decimal("12345678901234.50"), "12345678901234.50", "12345678901234.50"),
        (dt.DecimalType(9, 9), Decimal("0.000000001"), "0.000000001", "0.000000001"),
        (dt.DateType(), 19_723, "19723", "2024-01-01"),
        (dt.TimeType(3), 45_296_120, "45296120", "12%3A34%3A56.12"),
        (dt.TimeType(0), 45_296_120, "45296120", "12%3A34%3A56"),
        (dt.TimestampType(3), 19_723 * DAY_NANOS, "2024-01-01T00%3A00", "2024-01-01 00%3A00%3A00.000"),
        (dt.TimestampType(6), 19_723 * DAY_NANOS + 10**9 + 5000, "2024-01-01T00%3A00%3A01.000005",
         "2024-01-01 00%3A00%3A01.000005"),
        (dt.TimestampType(0), -1, "1969-12-31T23%3A59%3A59.999999999", "1969-12-31 23%3A59%3A59.999999999"),
        (dt.LocalZonedTimestampType(3), 60 * 10**9, "1970-01-01T00%3A01", "1970-01-01 00%3A01%3A00.000"),
        (dt.DoubleType(), 1e10, "1.0E10", "1.0E10"),
        (dt.FloatType(), 0.10000000149011612, "0.1", "0.1"),
    ],
)  # fmt: skip
def test_renderings(data_type, value, legacy, plain):
    fields = [DataField(0, "p", data_type)]
    assert format_partition_path([value], fields, "NONE") == f"p={legacy}"
    assert format_partition_path([value], fields, "NONE", legacy_name=False) == f"p={plain}"


def test_white_space_is_that_of_java():
    listed = [chr(int(line, 16)) for line in WHITESPACE.read_text().split()]
    assert list(JAVA_WHITESPACE) == listed
    every = [chr(code) for code in range(0x110000)]
    assert [c for c in every if is_blank(c)] == listed


def test_only_blank_values_go_to_the_default_directory():
    fields = [DataField(0, "p", dt.VarCharType())]
    for code in [*range(0x3100), *range(0xE000, 0x110000, 257)]:  # all blanks of Java are below
        expected = "NONE" if chr(code) in JAVA_WHITESPACE else escape(chr(code))
        assert format_partition_path([chr(code)], fields, "NONE") == f"p={expected}"
    assert format_partition_path(["\u3000\u2003 "], fields, "NONE") == "p=NONE"
    assert format_partition_path(["\u3000\x01"], fields, "NONE") == "p=\u3000%01"


def test_binary_partitions_need_plain_names():
    fields = [DataField(0, "p", dt.VarBinaryType())]
    assert format_partition_path([b"ab"], fields, "NONE", legacy_name=False) == "p=ab"
    with pytest.raises(Unsupported):
        format_partition_path([b"ab"], fields, "NONE")


@given(st.dates())
def test_dates_equal_the_calendar(day):
    assert format_date(day.toordinal() - datetime.date(1970, 1, 1).toordinal()) == day.isoformat()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.001, "0.001"), (0.00099, "9.9E-4"), (9_999_999.0, "9999999.0"), (1e7, "1.0E7"), (-1.5, "-1.5"), (0.0, "0.0"),
        (-0.0, "-0.0"), (float("nan"), "NaN"), (float("inf"), "Infinity"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
    ],
)  # fmt: skip
def test_floating_numbers_print_as_in_java(value, text):
    assert format_java_float(np.float64(value)) == text


def test_specs_are_cast_and_ordered():
    fields = [DataField(0, "d", dt.DateType()), DataField(1, "n", dt.IntType()), DataField(2, "s", dt.VarCharType())]
    spec = parse_partition_spec({"s": "__NONE__", "d": "2024-01-01"}, fields, "__NONE__")
    assert list(spec.items()) == [("d", 19_723), ("s", None)]
    with pytest.raises(InvalidRequest, match="'m' is not a partition column"):
        parse_partition_spec({"m": 1}, fields, "__NONE__")
    with pytest.raises(InvalidRequest, match="'x' is not a valid INT"):
        parse_partition_spec({"n": "x"}, fields, "__NONE__")


@pytest.mark.parametrize("value", [0.1, "0.1"])
def test_a_float_is_the_value_that_rows_store(value):
    spec = parse_partition_spec({"g": value}, [DataField(0, "g", dt.FloatType())], "__NONE__")
    assert spec == {"g": float(np.float32(0.1))}
