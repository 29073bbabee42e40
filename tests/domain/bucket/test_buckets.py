"""Columnar hashes and buckets equal those of single rows and those of Java."""

import json
import pathlib
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.case_lists import check_each

from paimon.domain.bucket.bucket_columnar import compute_buckets
from paimon.domain.bucket.bucket_rule import FUNCTIONS, compute_bucket, hive_hash
from paimon.domain.errors import InvalidRequest, PaimonError, Unsupported
from paimon.domain.row import binary_row
from paimon.domain.row import row_hash as murmur
from paimon.domain.row.literals import parse_literal
from paimon.domain.row.row_hash_columnar import count_row_bytes, hash_rows, serialize_rows
from paimon.domain.row.values import to_array
from paimon.domain.types import data_types as dt
from paimon.domain.types.type_text import type_from_json

VECTORS = pathlib.Path(__file__).parents[2] / "data" / "vectors" / "binary_row.jsonl"

TYPES = {
    dt.BooleanType(): st.booleans(),
    dt.TinyIntType(): st.integers(-128, 127),
    dt.SmallIntType(): st.integers(-(2**15), 2**15 - 1),
    dt.IntType(): st.integers(-(2**31), 2**31 - 1),
    dt.BigIntType(): st.integers(-(2**63), 2**63 - 1),
    dt.FloatType(): st.floats(width=32),
    dt.DoubleType(): st.floats(),
    dt.DecimalType(9, 2): st.integers(-(10**9) + 1, 10**9 - 1).map(lambda n: Decimal(n).scaleb(-2)),
    dt.DecimalType(38, 10): st.integers(-(10**27), 10**27).map(lambda n: Decimal(n).scaleb(-10)),
    dt.VarCharType(): st.text(max_size=20),
    dt.VarBinaryType(): st.binary(max_size=70),
    dt.DateType(): st.integers(-(10**6), 10**6),
    dt.TimeType(3): st.integers(0, 86_399_999),
    dt.TimestampType(0): st.integers(-(10**9), 10**9).map(lambda n: n * 10**9),
    dt.TimestampType(3): st.integers(-(10**12), 10**12).map(lambda n: n * 10**6),
    dt.TimestampType(6): st.integers(-(10**15), 10**15).map(lambda n: n * 10**3),
    dt.LocalZonedTimestampType(9): st.integers(-(10**18), 10**18),
}


@st.composite
def keys(draw):
    chosen = draw(st.lists(st.sampled_from(list(TYPES)), min_size=1, max_size=4))
    rows = draw(st.lists(st.tuples(*(st.none() | TYPES[t] for t in chosen)), max_size=40))
    return rows, chosen


def columns_of(rows, types):
    # One row more in front, sliced off again: offsets of arrays must not matter.
    return [to_array([None, *(row[i] for row in rows)], t).slice(1) for i, t in enumerate(types)]


@given(keys())
@settings(max_examples=100)
def test_columnar_hashes_equal_those_of_rows(key):
    rows, types = key
    columns = columns_of(rows, types)
    encoded = [binary_row.encode(row, types) for row in rows]
    assert hash_rows(columns, types).tolist() == [murmur.hash_bytes(data) for data in encoded]
    assert [data[4:] for data in serialize_rows(columns, types)] == encoded
    assert count_row_bytes(columns, types).tolist() == [len(data) for data in encoded]


@given(keys(), st.integers(1, 1000), st.sampled_from(FUNCTIONS))
@settings(max_examples=100)
def test_columnar_buckets_equal_those_of_rows(key, total, function):
    rows, types = key
    columns = columns_of(rows, types)
    try:
        expected = [compute_bucket(row, types, total, function) for row in [(None,) * len(types), *rows]][1:]
    except PaimonError as error:
        with pytest.raises(type(error)):
            compute_buckets(columns, types, total, function)
        return
    found = compute_buckets(columns, types, total, function)
    assert found.dtype == np.int32
    assert found.tolist() == expected
    assert all(0 <= bucket < total for bucket in expected)


def test_many_rows_of_all_lengths():
    texts = [None if n % 50 == 0 else "é" * (n % 37) + "x" * (n * 7919 % 90) for n in range(70_000)]
    texts[5], texts[6] = "long" * 30_000, "longer" * 20_000
    found = hash_rows([pa.array(texts, pa.string())], [dt.VarCharType()])
    for i in [*range(200), 65_535, 65_536, 69_999]:
        assert found[i] == murmur.hash_bytes(binary_row.encode([texts[i]], [dt.VarCharType()]))


def test_rows_with_more_fields_than_one_word_of_null_bits():
    types = [dt.IntType()] * 130
    rows = [tuple(None if (i + r) % 3 else i for i in range(130)) for r in range(5)]
    expected = [murmur.hash_bytes(binary_row.encode(row, types)) for row in rows]
    assert hash_rows(columns_of(rows, types), types).tolist() == expected


def test_buckets_equal_java():
    check_each(VECTORS.read_text().splitlines(), check_buckets)


def check_buckets(line):
    vector = json.loads(line)
    types = [type_from_json(t, "vectors") for t in vector["types"]]
    pairs = zip(vector["values"], types, strict=True)
    raw = (dt.BinaryType, dt.VarBinaryType)
    row = [bytes.fromhex(v) if isinstance(t, raw) and v is not None else parse_literal(v, t) for v, t in pairs]
    for function, buckets in vector["buckets"].items():
        for total, bucket in (buckets or {}).items():
            assert compute_bucket(row, types, int(total), function) == bucket
            assert compute_buckets(columns_of([row], types), types, int(total), function).tolist() == [bucket]


def test_hive_hashes_of_texts_are_those_of_java():
    """`String.hashCode` of ASCII; bytes are signed, and sums wrap around at 32 bits."""
    hashes = {"a": 97, "\x7f": 127, "polygenelubricants": -(2**31), "paimon lake": 1817311931}
    for text, expected in hashes.items():
        assert hive_hash([text], [dt.VarCharType()]) == expected
    assert hive_hash([b"\x80"], [dt.VarBinaryType()]) == -128


def test_unsupported_types_are_refused_by_name():
    with pytest.raises(InvalidRequest, match="'md5' does not exist"):
        compute_bucket([1], [dt.IntType()], 2, "md5")
    with pytest.raises(InvalidRequest, match="mod bucket function"):
        compute_bucket(["a"], [dt.VarCharType()], 2, "mod")
    with pytest.raises(Unsupported, match="TIMESTAMP"):
        compute_bucket([1], [dt.TimestampType(3)], 2, "hive")
