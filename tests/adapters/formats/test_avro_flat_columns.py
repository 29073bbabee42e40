"""Decoding blocks of flat records as columns equals decoding them row by row, also for damaged bytes."""

from __future__ import annotations

import json
import re
import time
from decimal import Decimal
from random import Random
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from support.case_lists import mark_products

from paimon.adapters.formats.avro.column_decoder import FlatField, decode_flat_columns, flat_fields, is_flat_worthwhile
from paimon.adapters.formats.avro.column_decoder.cursor import PADDING
from paimon.adapters.formats.avro.column_decoder.flat_columns import has_many_blocks
from paimon.adapters.formats.avro.column_decoder.record_starts import find_record_starts
from paimon.adapters.formats.avro.container import Block
from paimon.adapters.formats.avro.decode import DecodePlan, decode_plan
from paimon.adapters.formats.avro.records import decode_block, encode_block
from paimon.adapters.formats.varints import encode_zigzag
from paimon.domain.errors import CorruptTable
from paimon.domain.types import data_types as dt
from paimon.domain.types.data_types import DataField

LONGS = st.sampled_from([0, 1, -1, 2, 63, 64, -64, -65, 8191, 8192, 2**34, 2**55, 2**56, 2**62, 2**63 - 1, -(2**63)])
INTS = st.sampled_from([0, 1, -1, 2, 63, 64, -65, 8191, 8192, 2**20, 2**31 - 1, -(2**31)]) | st.integers(-99, 99)
TIMES = st.integers(0, 86_399_999)
MICROS = st.integers(-(2**50), 2**50)
TEXT = st.sampled_from(["", "a", "\0\2", "\2\2\2", "x" * 64, "ü" * 90]) | st.text(max_size=9)
BYTES = st.sampled_from([b"", b"\0", b"\2\0", bytes(70), b"\xff" * 3]) | st.binary(max_size=9)
DOUBLES = st.sampled_from([0.0, -0.0, 1.5, float("nan"), float("inf"), 5e-324]) | st.floats()
UNSCALED = st.integers(-(10**12) + 1, 10**12 - 1)
DECIMALS = UNSCALED.map(lambda v: v.to_bytes((v.bit_length() + 8) // 8, "big", signed=True))
KINDS: list[tuple[Any, dt.DataType, st.SearchStrategy[Any]]] = [
    ("int", dt.IntType(), INTS),
    ("int", dt.BigIntType(), INTS),
    ("long", dt.BigIntType(), LONGS),
    ("float", dt.FloatType(), st.floats(width=32)),
    ("double", dt.DoubleType(), DOUBLES),
    ("boolean", dt.BooleanType(), st.booleans()),
    ("string", dt.VarCharType(2147483647), TEXT),
    ("bytes", dt.VarBinaryType(2147483647), BYTES),
    ({"type": "int", "logicalType": "date"}, dt.DateType(), st.integers(-9999, 99999)),
    ({"type": "int", "logicalType": "time-millis"}, dt.TimeType(3), TIMES),
    ({"type": "long", "logicalType": "timestamp-millis"}, dt.TimestampType(3), st.integers(-(2**40), 2**40)),
    ({"type": "long", "logicalType": "local-timestamp-micros"}, dt.LocalZonedTimestampType(6), MICROS),
    ({"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}, dt.DecimalType(12, 2), DECIMALS),
]
NULLS = ["never", "first", "second"]


def node_of(avro: Any, nulls: str) -> Any:
    return {"never": avro, "first": ["null", avro], "second": [avro, "null"]}[nulls]


@st.composite
def blocks(draw: st.DrawFn) -> tuple[DecodePlan, Block]:
    """A block that is large enough to be decoded as columns, and the plan for some of its columns in some order."""
    kinds = draw(st.lists(st.tuples(st.sampled_from(KINDS), st.sampled_from(NULLS)), min_size=1, max_size=5))
    values = [k[2] if nulls == "never" else st.none() | k[2] for k, nulls in kinds]
    few = draw(st.lists(st.tuples(*values), min_size=1, max_size=8))
    random = draw(st.randoms(use_true_random=False))
    rows = random.choices(few, k=draw(st.integers(400, 450)))
    names = [f"f{i}" for i in range(len(kinds))]
    plain = [(k[0] if isinstance(k[0], str) else k[0]["type"], nulls) for k, nulls in kinds]
    block = encode_block([dict(zip(names, row, strict=True)) for row in rows], array_of(names, plain))
    schema = record_of(names, [(k[0], nulls) for k, nulls in kinds])
    wanted = draw(st.lists(st.sampled_from(range(len(kinds))), unique=True))
    fields = tuple(DataField(i, names[i], kinds[i][0][1]) for i in wanted) + (DataField(99, "absent", dt.IntType()),)
    return decode_plan(json.dumps(schema), fields, "f"), block


def record_of(names: list[str], types: list[tuple[Any, str]]) -> dict[str, Any]:
    fields = [{"name": n, "type": node_of(avro, nulls)} for n, (avro, nulls) in zip(names, types, strict=True)]
    return {"type": "record", "name": "r", "fields": fields}


def array_of(names: list[str], types: list[tuple[Any, str]]) -> Any:
    return fastavro.parse_schema({"type": "array", "items": record_of(names, types)})


def decode_one(plan: DecodePlan, block: Block, path: str) -> pa.RecordBatch:
    (batch,) = plan.decode([block], path)
    return batch


def outcome(plan: DecodePlan, *decoded: Block) -> str:
    try:
        table = pa.Table.from_batches(plan.decode(decoded, "f"))
    except CorruptTable as error:
        return re.sub("0x[0-9a-f]+", "0x", f"refused: {error}")  # the address of an object
    return f"{table.schema} {table.num_rows} {table.to_pydict()!r}"


@settings(max_examples=100, deadline=None)
@given(planned=blocks())
def test_columns_equal_row_by_row(planned: tuple[DecodePlan, Block]) -> None:
    plan, block = planned
    assert plan.flat is not None
    assert outcome(plan, block) == outcome(evolve(plan, flat=None), block)
    decode_one(plan, block, "f").validate(full=True)


def cut_block(plan: DecodePlan, block: Block, records: int) -> list[Block]:
    """Return blocks of so many records."""
    rows = decode_block(block, plan.writer_schema, "f")
    return [encode_block(rows[at : at + records], plan.writer_schema) for at in range(0, len(rows), records)]


@settings(max_examples=20, deadline=None)
@given(planned=blocks(), records=st.sampled_from([1, 7, 20, 100]), empty=st.booleans())
def test_many_blocks_equal_row_by_row(planned: tuple[DecodePlan, Block], records: int, empty: bool) -> None:
    plan, block = planned
    pieces = cut_block(plan, block, records) + [Block(0, b"")] * empty
    assert has_many_blocks(np.array([piece.record_count for piece in pieces])) is (records <= 20)
    assert outcome(plan, *pieces) == outcome(evolve(plan, flat=None), *pieces)
    assert plan.flat is not None
    found = decode_flat_columns(pieces, plan.flat, {})
    assert found == {} or (records > 20 and decode_flat_columns([block], plan.flat, {}) is None)


@settings(max_examples=20, deadline=None)
@given(planned=blocks(), random=st.randoms(use_true_random=False), records=st.sampled_from([7, 100]))
def test_damage_of_one_of_many_blocks_means_the_same_both_ways(
    planned: tuple[DecodePlan, Block], random: Random, records: int
) -> None:
    plan, block = planned
    pieces = cut_block(plan, block, records)
    number = random.randrange(len(pieces) - 1)
    count, data = pieces[number].record_count, bytearray(pieces[number].data)
    match random.randrange(3):
        case 0:
            data[random.randrange(len(data))] = random.randrange(256)
        case 1:
            pieces[number + 1] = Block(pieces[number + 1].record_count, bytes(data[-1:]) + pieces[number + 1].data)
            del data[-1]
        case 2:
            count += random.choice([-1, 1])
    pieces[number] = Block(count, bytes(data))
    assert outcome(plan, *pieces) == outcome(evolve(plan, flat=None), *pieces)


@settings(max_examples=120, deadline=None)
@given(planned=blocks(), random=st.randoms(use_true_random=False), kind=st.integers(0, 5))
def test_damage_means_the_same_both_ways(planned: tuple[DecodePlan, Block], random: Random, kind: int) -> None:
    plan, block = planned
    data, count = bytearray(block.data), block.record_count
    for _ in range(random.choice([1, 1, 3])):
        place = random.choice([random.randrange(len(data)), len(data) - 1, 0])
        data[place] = random.choice([0, 1, 2, 3, 4, 0x7F, 0x80, 0xFF, random.randrange(256)])
    if kind == 0:
        del data[random.randrange(len(data)) :]
    elif kind == 1:
        count += random.choice([-1, 1])
    elif kind == 2:
        data += bytes(random.randrange(1, 3))
    damaged = Block(count, bytes(data))
    assert outcome(plan, damaged) == outcome(evolve(plan, flat=None), damaged)


@settings(max_examples=100, deadline=None)
@given(planned=blocks(), window=st.sampled_from([1, 7, 50, 1000, 1 << 18]))
def test_records_are_found_with_any_window_size(planned: tuple[DecodePlan, Block], window: int) -> None:
    plan, block = planned
    assert plan.flat is not None
    padded = np.frombuffer(block.data + PADDING, np.uint8)
    starts = find_record_starts(padded, block.record_count, plan.flat, window)
    values = block.record_count * len(plan.flat)
    assert starts is not None or len(block.data) * (len(plan.flat) + 4) > 32 * values
    if starts is not None:
        sizes = [
            len(encode_block([record], plan.writer_schema).data)
            for record in decode_block(block, plan.writer_schema, "f")
        ]
        assert starts.tolist() == [0, *np.cumsum(sizes[:-1]).tolist()]


def test_long_texts_have_lengths_of_many_bytes() -> None:
    texts = ["a" * size for size in (63, 64, 8191, 8192, 2**20 - 1, 2**20)] + ["bcd"] * 20_000
    names, types = ["k", "v"], [("int", "first"), ("string", "first")]
    block = encode_block([{"k": i, "v": t} for i, t in enumerate(texts)], array_of(names, types))
    fields = (FlatField("k", "int", 0), FlatField("v", "string", 0))
    found = decode_flat_columns([block], fields, {"k": pa.int32(), "v": pa.string()})
    assert found is not None
    assert found["k"].to_pylist() == list(range(len(texts)))
    assert found["v"].to_pylist() == texts


@pytest.mark.parametrize(("kind", "nulls"), mark_products(range(len(KINDS)), NULLS))
def test_blocks_of_many_windows_are_decoded_as_columns(kind: int, nulls: str) -> None:
    """A key and a column of each type, in a block of several windows; each value differs from its neighbours."""
    avro, data_type, values = KINDS[kind]
    found: list[Any] = []
    draw_all(values, found)
    found = [v for v in found if not isinstance(v, str | bytes) or len(v) < 20]
    rows = [{"f0": i * 7919 % 100_003, "f1": None if nulls != "never" and i % 5 == 0 else found[i * i % len(found)]}
            for i in range(60_000)]  # fmt: skip
    plain = avro if isinstance(avro, str) else avro["type"]
    block = encode_block(rows, array_of(["f0", "f1"], [("int", "never"), (plain, nulls)]))
    schema = record_of(["f0", "f1"], [("int", "never"), (avro, nulls)])
    plan = decode_plan(json.dumps(schema), (DataField(1, "f1", data_type), DataField(0, "f0", dt.IntType())), "f")
    assert plan.flat is not None and is_flat_worthwhile([block], plan.flat)
    assert decode_flat_columns([block], plan.flat, {}) == {}
    assert outcome(plan, block) == outcome(evolve(plan, flat=None), block)


def draw_all(values: st.SearchStrategy[Any], found: list[Any]) -> None:
    @settings(max_examples=25, deadline=None, database=None, derandomize=True)
    @given(values)
    def collect(value: Any) -> None:
        found.append(value)

    collect()


@pytest.mark.parametrize(
    ("avro", "wanted"),
    [
        ({"type": "double", "logicalType": "date"}, dt.DateType()),
        ({"type": "string", "logicalType": "decimal", "precision": 4, "scale": 0}, dt.DecimalType(4, 0)),
        ({"type": "bytes", "logicalType": "timestamp-millis"}, dt.TimestampType(3)),
        ({"type": "long", "logicalType": "date"}, dt.DateType()),
        ({"type": "int", "logicalType": "timestamp-micros"}, dt.TimestampType(6)),
        ({"type": "boolean", "logicalType": "date"}, dt.DateType()),
    ],
)
@pytest.mark.parametrize("large", [False, True])
def test_a_logical_type_of_another_primitive_means_the_same_both_ways(
    avro: Any, wanted: dt.DataType, large: bool
) -> None:
    value = {"double": 1.0, "string": "ab", "bytes": b"\1", "long": 2**40 if large else 5, "int": 7, "boolean": True}
    rows = [{"f0": value[avro["type"]]} for _ in range(500)]
    block = encode_block(rows, array_of(["f0"], [(avro["type"], "first")]))
    plan = decode_plan(json.dumps(record_of(["f0"], [(avro, "first")])), (DataField(0, "f0", wanted),), "f")
    assert outcome(plan, block) == outcome(evolve(plan, flat=None), block)


@pytest.mark.parametrize(
    ("avro", "nulls", "odd"),
    [
        ("long", "never", b"\x80\0"),
        ("long", "never", b"\xff" * 9 + b"\1"),
        ("long", "never", b"\x80" * 9 + b"\2"),
        ("long", "never", b"\x80" * 10 + b"\1"),
        ("long", "first", b"\x82\0\4"),
        ("long", "first", b"\4\4"),
        ("boolean", "never", b"\2"),
        ("string", "never", b"\x82\0a"),
        ("string", "never", b"\1"),
        ("string", "never", b"\2\xff"),
        ("string", "second", b"\0\6\xed\xa0\x80"),
    ],
)
def test_odd_encodings_mean_the_same_both_ways(avro: str, nulls: str, odd: bytes) -> None:
    data_type = {"long": dt.BigIntType(), "boolean": dt.BooleanType(), "string": dt.VarCharType(2147483647)}[avro]
    usual = encode_block(
        [{"f0": {"long": 5, "boolean": True, "string": "ab"}[avro]}], array_of(["f0"], [(avro, nulls)])
    ).data
    schema = json.dumps(record_of(["f0"], [(avro, nulls)]))
    for block in (Block(801, usual * 400 + odd + usual * 400), Block(401, usual * 400 + odd), Block(500, odd * 500)):
        for fields in ((DataField(0, "f0", data_type),), ()):
            plan = decode_plan(schema, fields, "f")
            assert outcome(plan, block) == outcome(evolve(plan, flat=None), block)


VECTOR = {"type": "array", "items": "float"}


@pytest.mark.parametrize(
    ("nodes", "data"),
    [
        (["boolean", "double"], bytes(9) + encode_zigzag(2**24)),
        ([VECTOR], encode_zigzag(2**34)),
        (["long", ["null", VECTOR]], b"\2\2" + encode_zigzag(2**34)),
        ([{"type": "array", "items": {"type": "array", "items": "boolean"}}, "string"], b"\2" + encode_zigzag(2**34)),
        ([{"type": "record", "name": "q", "fields": [{"name": "v", "type": VECTOR}]}], encode_zigzag(2**34)),
        ([{"type": "map", "values": VECTOR}], b"\2\2k" + encode_zigzag(2**34)),
        ([{"type": "array", "items": {"type": "fixed", "name": "x", "size": 3}}], encode_zigzag(2**34)),
    ],
)
def test_a_damaged_count_in_a_column_that_is_not_read_ends_with_the_data(nodes: list[Any], data: bytes) -> None:
    """A count of fixed-width values that fastavro would accept without a check of the end of the data."""
    names = [f"f{i}" for i in range(len(nodes))]
    schema = json.dumps(record_of(names, [(node, "never") for node in nodes]))
    plan = decode_plan(schema, (DataField(9, "absent", dt.IntType()),), "f")
    began = time.process_time()
    with pytest.raises(CorruptTable):
        decode_one(plan, Block(1, data), "f")
    assert time.process_time() - began < 10  # with a loop over the count it takes minutes


@pytest.mark.parametrize(("precision", "rows"), mark_products([1, 4, 18, 19, 37], [1, 500]))
def test_decimals_of_more_digits_than_the_precision_are_null(precision: int, rows: int) -> None:
    """As in Java: sums can have more digits."""
    avro = {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": 0}
    plan = decode_plan(
        json.dumps(record_of(["f0"], [(avro, "first")])), (DataField(0, "f0", dt.DecimalType(38, 0)),), "f"
    )
    most = 10**precision - 1
    for value in (most, -most, most + 1, -most - 1):
        cells = [None, 1, value, 0]
        stored = [None if v is None else v.to_bytes(v.bit_length() // 8 + 1, "big", signed=True) for v in cells]
        block = encode_block([{"f0": v} for v in stored] * rows, array_of(["f0"], [("bytes", "first")]))
        read = [None if v is None or abs(v) > most else Decimal(v) for v in cells]
        assert decode_one(plan, block, "f").column(0).to_pylist() == read * rows


@pytest.mark.parametrize("rows", [1, 500])
def test_times_beyond_a_day_are_corrupt(rows: int) -> None:
    avro = {"type": "int", "logicalType": "time-millis"}
    plan = decode_plan(json.dumps(record_of(["f0"], [(avro, "first")])), (DataField(0, "f0", dt.TimeType(3)),), "f")
    for millis in (0, 86_399_999, -1, 86_400_000):
        block = encode_block([{"f0": None}, {"f0": 5}, {"f0": millis}] * rows, array_of(["f0"], [("int", "first")]))
        if 0 <= millis < 86_400_000:
            decode_one(plan, block, "f").validate(full=True)
        else:
            with pytest.raises(CorruptTable, match="'f0'"):
                decode_one(plan, block, "f")


@pytest.mark.parametrize(
    "node",
    [
        {"type": "array", "items": "int"},
        ["null", "int", "string"],
        "null",
        {"type": "enum", "name": "e", "symbols": ["A"]},
        {"type": "fixed", "name": "x", "size": 3},
    ],
)
def test_nested_and_named_types_are_not_flat(node: Any) -> None:
    fields = [{"name": "a", "type": "int"}, {"name": "b", "type": node}]
    assert flat_fields({"type": "record", "name": "r", "fields": fields}) is None


def test_zeros_that_can_begin_a_record_anywhere_take_bounded_work() -> None:
    """Each position in a block of zeros parses as a record. A block with too many candidates is not searched."""
    fields = tuple(FlatField(f"c{i}", "int", 0) for i in range(100))
    padded = np.frombuffer(bytes(100 * 1000) + PADDING, np.uint8)
    assert find_record_starts(padded, 1000, fields) is None
    assert find_record_starts(padded, 50_000, fields[:2]) is not None
