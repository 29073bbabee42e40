"""Rows, hashes and buckets equal those of Java, vector by vector."""

import json
import pathlib

import pyarrow as pa
import pytest
from support.case_lists import check_each

from paimon.domain.errors import CorruptTable, InvalidRequest
from paimon.domain.row import binary_row
from paimon.domain.row import row_hash as murmur
from paimon.domain.row.literals import parse_literal
from paimon.domain.row.values import to_array, to_values
from paimon.domain.types import data_types as dt
from paimon.domain.types.type_text import type_from_json

VECTORS = pathlib.Path(__file__).parents[2] / "data" / "vectors"


def vectors(name):
    lines = (VECTORS / name).read_text().splitlines()
    return [json.loads(line) for line in lines]


def internal(value, data_type):
    """The internal value of one in the vectors' JSON rendering."""
    match data_type:
        case _ if value is None:
            return None
        case dt.BinaryType() | dt.VarBinaryType():
            return bytes.fromhex(value)
        case dt.ArrayType(element=element):
            return [internal(v, element) for v in value]
        case dt.MapType(key=key, value=item):
            return [(internal(k, key), internal(v, item)) for k, v in value]
        case dt.RowType(fields=fields):
            return tuple(internal(value[f.name], f.type) for f in fields)
        case _:
            return parse_literal(value, data_type)


def values_and_types(vector):
    types = [type_from_json(t, "vectors") for t in vector["types"]]
    return [internal(v, t) for v, t in zip(vector["values"], types, strict=True)], types


ALL = vectors("binary_row.jsonl") + vectors("binary_nested.jsonl")


def test_rows_equal_java():
    check_each(ALL, check_row)


def check_row(vector):
    values, types = values_and_types(vector)
    data = binary_row.encode(values, types)
    assert data.hex() == vector["binaryRowHex"]
    assert murmur.hash_bytes(data) == vector["hashCode"]
    assert repr(list(binary_row.decode(data, types))) == repr(values)
    if "serializedHex" in vector:
        serialized = bytes.fromhex(vector["serializedHex"])
        assert binary_row.serialize(values, types) == serialized
        assert binary_row.read_arity(serialized) == len(types)
        assert repr(list(binary_row.deserialize(serialized, types))) == repr(values)


def test_values_pass_through_arrow():
    check_each(ALL, check_arrays)


def check_arrays(vector):
    for value, data_type in zip(*values_and_types(vector), strict=True):
        array = to_array([None, value, value], data_type)
        assert repr(to_values(array.slice(1), data_type)) == repr([value, value])
        assert to_values(pa.chunked_array([array.slice(0, 1), array.slice(3)]), data_type) == [None]


def test_rows_of_no_fields():
    assert binary_row.serialize((), ()) == bytes(12)
    assert binary_row.deserialize(bytes(12), (dt.IntType(),)) == ()


def test_damaged_rows_are_corrupt_tables():
    check_each(vectors("binary_row.jsonl")[::7] + vectors("binary_nested.jsonl")[::3], check_damaged_rows)


def check_damaged_rows(vector):
    _, types = values_and_types(vector)
    data = bytes.fromhex(vector["binaryRowHex"])
    for cut in range(0, len(data), 3):
        for damaged in (data[:cut], data[:cut] + b"\xff" * 4 + data[cut + 4 :]):
            try:
                binary_row.decode(damaged, types)
            except CorruptTable as error:
                assert error.path == "binary row"


@pytest.mark.parametrize(
    ("text", "value"),
    [("9.9", "9.90"), ("0e999999999", "0.00"), ("100e-1", "10.00"), ("1e999999999", None), ("1e-999999999", None)],
)
def test_decimals_of_any_exponent_are_checked_quickly(text: str, value: str | None) -> None:
    column = dt.DecimalType(4, 2)
    if value is not None:
        assert str(parse_literal(text, column)) == value
    else:
        with pytest.raises(InvalidRequest, match="The value has more than"):
            parse_literal(text, column)
