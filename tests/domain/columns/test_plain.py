"""Encoded arrays: every encoding of every value type, also nested, sliced and with nulls, has the same plain values."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, time
from decimal import Decimal
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from support.case_lists import check_each, mark_products

from paimon.domain.columns.conform import conform_to_fields
from paimon.domain.columns.plain import decode_array, plain_type, to_plain_schema, to_plain_table
from paimon.domain.types import data_types as dt
from paimon.domain.types.data_types import DataField, DataType

DAY, MOMENT, CLOCK = date(2026, 1, 2), datetime(2026, 1, 2, 3, 4, 5), time(3, 4, 5)
VALUES: dict[str, tuple[DataType, pa.Array]] = {
    "boolean": (dt.BooleanType(), pa.array([True, None, False])),
    "tinyint": (dt.TinyIntType(), pa.array([1, None, -1], pa.int8())),
    "unsigned": (dt.IntType(), pa.array([1, None, 3], pa.uint16())),
    "bigint": (dt.BigIntType(), pa.array([1, None, -(2**62)])),
    "half": (dt.FloatType(), pa.array([1.5, None, -2.0], pa.float16())),
    "float": (dt.FloatType(), pa.array([1.5, None, float("inf")], pa.float32())),
    "double": (dt.DoubleType(), pa.array([1.5, None, -0.1])),
    "text": (dt.VarCharType(), pa.array(["a", None, "bé"])),
    "large text": (dt.VarCharType(), pa.array(["a", None, "b"], pa.large_string())),
    "text view": (dt.VarCharType(), pa.array(["a" * 20, None, "b"], pa.string_view())),
    "bytes": (dt.VarBinaryType(), pa.array([b"a", None, b""])),
    "large bytes": (dt.VarBinaryType(), pa.array([b"a", None, b"b"], pa.large_binary())),
    "bytes view": (dt.VarBinaryType(), pa.array([b"a" * 20, None, b"b"], pa.binary_view())),
    "fixed bytes": (dt.BinaryType(2), pa.array([b"ab", None, b"cd"], pa.binary(2))),
    "uuid": (dt.BinaryType(16), pa.array([b"x" * 16, None, b"y" * 16], pa.uuid())),
    "bool8": (dt.BooleanType(), pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, None, 0], pa.int8()))),
    "decimal32": (dt.DecimalType(7, 2), pa.array([Decimal("1.25"), None, Decimal("-3.00")], pa.decimal32(7, 2))),
    "decimal64": (dt.DecimalType(12, 2), pa.array([Decimal("1.25"), None, Decimal("-3.00")], pa.decimal64(12, 2))),
    "decimal128": (dt.DecimalType(20, 2), pa.array([Decimal("1.25"), None, Decimal("-3.00")], pa.decimal128(20, 2))),
    "decimal256": (dt.DecimalType(20, 2), pa.array([Decimal("1.25"), None, Decimal("-3.00")], pa.decimal256(40, 2))),
    "date": (dt.DateType(), pa.array([DAY, None, DAY])),
    "date64": (dt.DateType(), pa.array([DAY, None, DAY], pa.date64())),
    "time": (dt.TimeType(3), pa.array([CLOCK, None, CLOCK], pa.time64("us"))),
    "timestamp": (dt.TimestampType(6), pa.array([MOMENT, None, MOMENT], pa.timestamp("ms"))),
    "local timestamp": (dt.LocalZonedTimestampType(9), pa.array([MOMENT, None, MOMENT], pa.timestamp("us", "Asia/Tokyo"))),  # noqa: E501
    "null": (dt.IntType(), pa.nulls(3)),
}  # fmt: skip


Encode = tuple[Callable[[pa.Array], pa.Array], Callable[[list[Any]], list[Any]]]
"""An encoding of three values as five, and the five values."""


def make_dictionary(values: pa.Array, indices: list[int | None]) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(indices, pa.uint8()), values)


def make_runs(values: pa.Array) -> pa.Array:
    return pa.RunEndEncodedArray.from_arrays(pa.array([2, 3, 5], pa.int16()), values)


ENCODINGS: dict[str, Encode] = {
    "plain": (lambda a: pa.concat_arrays([a, a.slice(0, 2)]), lambda v: [*v, *v[:2]]),
    "dictionary": (lambda a: make_dictionary(a, [0, None, 2, 0, 1]), lambda v: [v[0], None, v[2], v[0], v[1]]),
    "run ends": (make_runs, lambda v: [v[0], v[0], v[1], v[2], v[2]]),
    "run ends of a dictionary": (
        lambda a: make_runs(make_dictionary(a, [2, None, 0])), lambda v: [v[2], v[2], None, v[0], v[0]],
    ),
}  # fmt: skip
KEYS = make_dictionary(pa.array(["u", "v", "w"], pa.string_view()), [0, 1, 2, 0, 1])
NULLS = pa.array([False, True, False, False, False])
Wrap = tuple[Callable[[pa.Array], pa.Array], Callable[[list[Any]], list[Any]], Callable[..., DataType]]
WRAPPERS: dict[str, Wrap] = {
    "list": (
        lambda a: pa.ListArray.from_arrays(pa.array([0, 2, None, 3, 5], pa.int32()), a),
        lambda v: [v[:2], v[2:3], None, v[3:]],
        lambda kind: dt.ArrayType(element=kind),
    ),
    "large list": (
        lambda a: pa.LargeListArray.from_arrays(pa.array([0, 2, None, 3, 5], pa.int64()), a),
        lambda v: [v[:2], v[2:3], None, v[3:]],
        lambda kind: dt.ArrayType(element=kind),
    ),
    "list view": (
        lambda a: pa.ListViewArray.from_arrays(
            pa.array([3, 0, 0, 2], pa.int32()), pa.array([2, 2, 4, 1], pa.int32()), a,
            mask=pa.array([False, False, True, False]),
        ),
        lambda v: [v[3:], v[:2], None, v[2:3]],
        lambda kind: dt.ArrayType(element=kind),
    ),
    "fixed list": (
        lambda a: pa.FixedSizeListArray.from_arrays(a, 1, mask=NULLS),
        lambda v: [[v[0]], None, [v[2]], [v[3]], [v[4]]],
        lambda kind: dt.ArrayType(element=kind),
    ),
    "map": (
        lambda a: pa.MapArray.from_arrays(pa.array([0, 2, None, 2, 5], pa.int32()), KEYS, a),
        lambda v: [[("u", v[0]), ("v", v[1])], [], None, [("w", v[2]), ("u", v[3]), ("v", v[4])]],
        lambda kind: dt.MapType(dt.VarCharType(nullable=False), kind),
    ),
    "struct": (
        lambda a: pa.StructArray.from_arrays([a, pa.array([1, 2, 3, 4, 5])], ["x", "y"], mask=NULLS),
        lambda v: [None if i == 1 else {"x": value, "y": i + 1} for i, value in enumerate(v)],
        lambda kind: dt.RowType((DataField(0, "x", kind), DataField(1, "y", dt.BigIntType()))),
    ),
}  # fmt: skip


def check_parts(array: pa.Array, expected: list[Any], data_type: DataType) -> None:
    """Slices are decoded and conform to the table, too."""
    for start, length in ((0, len(array)), (1, len(array)), (1, 2), (2, 1), (0, 0)):
        part = array.slice(start, length)
        made = decode_array(part)
        made.validate(full=True)
        assert made.type == plain_type(part.type) == plain_type(made.type)
        assert made.to_pylist() == expected[start : start + length]
        column = conform_to_fields(pa.table({"c": part}), [DataField(0, "c", data_type)], "table t")["c"]
        assert column.null_count == made.null_count and len(column) == len(made)


def list_values(values: pa.Array) -> list[Any]:
    return decode_array(values).to_pylist()


@pytest.mark.parametrize(("name", "encoding"), mark_products(VALUES, ENCODINGS))
def test_encoded_values_are_the_plain_ones(name: str, encoding: str) -> None:
    data_type, values = VALUES[name]
    encode, repeat = ENCODINGS[encoding]
    check_parts(encode(values), repeat(list_values(values)), data_type)


@pytest.mark.parametrize("name", VALUES)
def test_nested_values_are_the_plain_ones(name: str) -> None:
    data_type, values = VALUES[name]

    def check(case: tuple[str, str]) -> None:
        encoding, wrapper = case
        (encode, repeat), (wrap, nest, to_type) = ENCODINGS[encoding], WRAPPERS[wrapper]
        check_parts(wrap(encode(values)), nest(repeat(list_values(values))), to_type(data_type))

    check_each(product(ENCODINGS, WRAPPERS), check)


def test_dictionaries_of_nested_values() -> None:
    views = pa.array([["a", None], [], ["b"]], pa.list_(pa.string_view()))
    for encode, repeat in ENCODINGS.values():
        check_parts(encode(views), repeat(views.to_pylist()), dt.ArrayType(element=dt.VarCharType()))


def test_plain_tables_are_returned_as_they_are_and_metadata_stays() -> None:
    table = pa.table({"a": [1], "s": ["x"], "l": [[1]], "big": pa.array(["x"], pa.large_string())})
    assert to_plain_table(table) is table
    field = pa.field("c", pa.dictionary(pa.int8(), pa.string_view()), metadata={"paimon.type": "VARCHAR(3)"})
    encoded = pa.table([pa.array(["x"]).dictionary_encode().cast(field.type)], schema=pa.schema([field]))
    made = to_plain_table(encoded).schema.field("c")
    assert made.type == pa.string() and made.metadata == field.metadata


def test_a_schema_becomes_plain_even_if_no_array_of_its_types_can_be_made() -> None:
    union = pa.dense_union([pa.field("a", pa.int64())])
    assert to_plain_schema(pa.schema({"u": union, "s": pa.string_view()})) == pa.schema({"u": union, "s": pa.string()})


def test_long_encoded_columns_become_several_chunks() -> None:
    indices = pa.array(np.zeros(3_000_000, np.int8))
    column = pa.DictionaryArray.from_arrays(indices, pa.array(["x"], pa.string_view()))
    made = to_plain_table(pa.table({"c": column}))["c"]
    assert len(made) == 3_000_000 and made.num_chunks == 3 and made[2_999_999].as_py() == "x"
