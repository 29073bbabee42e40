"""ORC features that Arrow lacks: wide timestamps, CHAR, stripes that a predicate excludes, and file tails."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyorc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paimon.adapters.formats.guards.orc_tail import decompress_section, split_tail
from paimon.adapters.formats.orc import OrcFormat
from paimon.adapters.formats.orc.physical import encode_tail
from paimon.adapters.formats.protobuf import BYTES, FIXED64, VARINT, Part, decode, encode
from paimon.domain.errors import Unsupported
from paimon.domain.predicate.expression import Compare, Operator, Predicate
from paimon.domain.row.values import to_array, to_values
from paimon.domain.types import data_types as dt
from paimon.domain.types.arrow import arrow_schema
from paimon.domain.types.data_types import DataField, DataType
from paimon.ports.formats import ReadRequest, WriteRequest, WrittenFile
from paimon.testing.memory_files import MemoryFiles

PATH = "/table/bucket-0/data-0.orc"
SECOND = 1_000_000_000
YEAR_1 = -62_135_596_800 * SECOND
YEAR_9999 = 253_402_300_799 * SECOND


def write(
    kind: DataType, *parts: list[Any], codec: str = "zstd", block_bytes: int | None = None
) -> tuple[bytes, WrittenFile]:
    files = MemoryFiles()
    fields = (DataField(0, "v", kind),)
    request = WriteRequest(PATH, fields, compression=codec, block_bytes=block_bytes)
    writer = OrcFormat().writer(files.create(PATH), request)
    for part in parts:
        writer.write(pa.Table.from_arrays([to_array(part, kind)], schema=arrow_schema(fields)))
    written_file = writer.close()
    return files.read(PATH), written_file


def read(data: bytes, kind: DataType, predicate: Predicate | None = None) -> list[Any]:
    fields = (DataField(0, "v", kind),)
    request = ReadRequest(PATH, fields, predicate, () if predicate is None else fields)
    return [v for b in OrcFormat().read(pa.BufferReader(data), request) for v in to_values(b.column(0), kind)]


TIMES = st.one_of(st.none(), st.integers(-3 * SECOND, 3 * SECOND), st.integers(YEAR_1, YEAR_9999))


@settings(max_examples=60)
@given(
    st.lists(st.lists(TIMES, max_size=4), min_size=1, max_size=4),
    st.sampled_from([dt.TimestampType(3), dt.TimestampType(6), dt.LocalZonedTimestampType(6)]),
    st.sampled_from(["zstd", "lz4", "snappy", "zlib", "none"]),
)
def test_any_time_survives(parts: list[list[int | None]], kind: Any, codec: str) -> None:
    tick = 1_000_000 if kind.precision == 3 else 1_000
    rounded = [[None if v is None else v // tick * tick for v in part] for part in parts]
    data, written_file = write(kind, *rounded, codec=codec)
    rows = [v for part in rounded for v in part]
    assert read(data, kind) == rows
    present = [v for v in rows if v is not None]
    stats = written_file.column_stats[0]
    assert (stats.minimum, stats.maximum) == ((min(present), max(present)) if present else (None, None))


def test_times_in_nested_columns_survive() -> None:
    kind = dt.ArrayType(dt.RowType((DataField(1, "t", dt.TimestampType(3)), DataField(2, "c", dt.CharType(4)))))
    rows = [[(-1_500_000_000, "a")], None, [(YEAR_9999, "bc"), None], []]
    assert read(write(kind, rows, rows)[0], kind) == rows + rows


def test_an_independent_reader_agrees_on_early_times() -> None:
    data, _ = write(dt.TimestampType(3), [SECOND], [-1_500_000_000, -SECOND])
    values = [int(row[0].timestamp() * 1000) for row in pyorc.Reader(pa.BufferReader(data))]
    assert values == [1000, -1500, -1000]


def test_far_nanoseconds_are_refused_not_wrapped() -> None:
    data, _ = write(dt.TimestampType(6), [YEAR_9999])
    with pytest.raises(Unsupported, match="after 2261"):
        read(data, dt.TimestampType(9))


def test_char_is_padded_in_the_file_and_trimmed_in_the_table() -> None:
    data, written_file = write(dt.CharType(5), ["a", "", "b\N{GRINNING FACE}", None])
    stored = orc.ORCFile(pa.BufferReader(data)).read()["v"].to_pylist()
    assert stored == ["a    ", "     ", "b\N{GRINNING FACE}   ", None]
    assert read(data, dt.CharType(5)) == ["a", "", "b\N{GRINNING FACE}", None]
    assert (written_file.column_stats[0].minimum, written_file.column_stats[0].maximum) == ("", "b\N{GRINNING FACE}")


SPREAD = [i // 10_000 * 10**8 + i * 829_359_151 % 10**8 for i in range(60_000)]
"""Ascending from ten thousand to ten thousand, but hard to compress, so that there are several stripes."""


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (dt.IntType(), SPREAD),
        (dt.VarCharType(), [f"{v:012}" for v in SPREAD]),
        (dt.DateType(), [v // 100 for v in SPREAD]),
        (dt.TimestampType(3), [v * SECOND for v in SPREAD]),
    ],
)
def test_stripes_without_a_match_are_skipped(kind: DataType, values: list[Any]) -> None:
    data, _ = write(kind, *(values[i : i + 10_000] for i in range(0, 60_000, 10_000)), block_bytes=65_536)
    found = read(data, kind, Compare("v", Operator.EQ, values[-1]))
    assert values[-1] in found
    assert len(found) < len(values)


def test_nan_is_found_whatever_the_stripe_bounds() -> None:
    data, _ = write(dt.DoubleType(), [1.0, float("nan"), 2.0])
    assert len(read(data, dt.DoubleType(), Compare("v", Operator.GT, 100.0))) == 3


def test_decimals_of_38_digits_bound_stripes() -> None:
    kind = dt.DecimalType(38, 10)
    least, most = Decimal("-9999999999999999999999999999.9999999999"), Decimal("1234567890123456789012345678.1")
    data, _ = write(kind, [least, most])
    assert read(data, kind, Compare("v", Operator.LE, Decimal("-1.0000000000"))) == [least, most]
    assert read(data, kind, Compare("v", Operator.GT, most)) == []


def test_decimals_of_38_digits_next_to_wide_timestamps() -> None:
    kind = dt.ArrayType(dt.RowType((DataField(1, "t", dt.TimestampType(3)), DataField(2, "d", dt.DecimalType(38, 1)))))
    rows = [[(YEAR_9999, Decimal("1234567890123456789012345678901234567.8"))]]
    assert read(write(kind, rows)[0], kind) == rows


def test_lzo_is_refused_by_name() -> None:
    with pytest.raises(Unsupported, match="LZO"):
        decompress_section(b"\x02\x00\x00\x00", 3)


PARTS = st.one_of(
    st.builds(Part, st.integers(1, 9000), st.just(VARINT), st.integers(0, 2**64 - 1)),
    st.builds(Part, st.integers(1, 9000), st.just(BYTES), st.binary(max_size=300)),
    st.builds(Part, st.integers(1, 9000), st.just(FIXED64), st.binary(min_size=8, max_size=8)),
)


@given(st.lists(PARTS, max_size=10))
def test_messages_round_trip(parts: list[Part]) -> None:
    assert decode(encode(parts)) == parts


@pytest.mark.parametrize("codec", ["zstd", "lz4", "snappy", "zlib", "none"])
def test_a_rewritten_tail_has_the_same_content(codec: str) -> None:
    data, _ = write(dt.VarCharType(), [f"row {i}" for i in range(1000)], codec=codec)
    body, tail = split_tail(data)
    assert split_tail(body + encode_tail(tail)) == (body, tail)
    assert tail.stripe_rows == (1000,)
