"""The sizes of Parquet pages from their headers: the same pages that Arrow reads, and batches within the limit."""

from __future__ import annotations

import struct

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.case_lists import mark_products

from paimon.adapters.formats.guards.parquet_batches import (
    MOST_BYTES,
    GroupRange,
    Leaf,
    count_longest_row_values,
    measure_longest_values,
    plan_batches,
    read_codec,
)
from paimon.adapters.formats.guards.parquet_pages import PrefetchedFile, Stored, read_chunk_pages
from paimon.adapters.formats.parquet.column_stats import split_into_steps
from paimon.adapters.formats.parquet.format import ParquetFormat
from paimon.adapters.formats.thrift import I32, I64, STRUCT, ThriftStruct, decode, encode
from paimon.domain.errors import CorruptTable
from paimon.domain.types.ddl import parse_columns
from paimon.ports.formats import ReadRequest

WRITING = st.fixed_dictionaries({
    "data_page_version": st.sampled_from(["1.0", "2.0"]),
    "compression": st.sampled_from(["none", "snappy", "zstd", "gzip", "lz4", "brotli"]),
    "data_page_size": st.sampled_from([100, 5_000, None]),
    "write_page_index": st.booleans(),
    "write_page_checksum": st.booleans(),
    "use_dictionary": st.booleans(),
    "dictionary_pagesize_limit": st.sampled_from([50, 1_000_000]),
    "row_group_size": st.sampled_from([700, 5_000]),
})  # fmt: skip


def write_buffer(table: pa.Table, **how: object) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **how)
    return sink.getvalue()


def some_rows(rows: int = 2_000) -> pa.Table:
    draw = np.random.default_rng(rows)
    texts = pa.array([None if i % 7 == 0 else "t" * (i % 40) for i in range(rows)])
    lists = pa.array([list(range(i % 5)) for i in range(rows)])
    return pa.table({"n": draw.integers(0, 10**9, rows), "t": texts, "l": lists})


@settings(max_examples=40, deadline=None)
@given(WRITING, st.booleans())
def test_headers_contain_all_values_of_a_chunk(how: dict[str, object], mapped: bool) -> None:
    data = write_buffer(some_rows(), **how)
    stored = Stored(pa.BufferReader(data) if mapped else pa.PythonFile(pa.BufferReader(data), mode="r"))
    footer = pq.ParquetFile(pa.BufferReader(data)).metadata
    for group in (footer.row_group(g) for g in range(footer.num_row_groups)):
        for meta in (group.column(c) for c in range(footer.num_columns)):
            start = min(at for at in (meta.dictionary_page_offset, meta.data_page_offset) if at is not None)
            pages = read_chunk_pages(stored, start, start + meta.total_compressed_size, meta.num_values)
            assert pages.values == meta.num_values
            assert (pages.dictionary is not None) == (meta.dictionary_page_offset is not None)
            page_bytes = pages.largest + (pages.dictionary.size if pages.dictionary else 0)
            assert 0 < page_bytes <= meta.total_uncompressed_size


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(st.binary(max_size=300), max_size=30), min_size=1, max_size=4), WRITING)
def test_the_longest_string_of_a_dictionary(columns: list[list[bytes]], how: dict[str, object]) -> None:
    how = {**how, "use_dictionary": True, "dictionary_pagesize_limit": 1_000_000}
    rows = max(map(len, columns))
    padded = {f"c{i}": pa.array([*c, *[None] * (rows - len(c))], pa.binary()) for i, c in enumerate(columns)}
    data = write_buffer(pa.table(padded), **how)
    stored, footer = Stored(pa.BufferReader(data)), pq.ParquetFile(pa.BufferReader(data)).metadata
    if not rows:
        return
    found = []
    for meta in (footer.row_group(0).column(c) for c in range(len(columns))):
        start = meta.dictionary_page_offset
        found.append(read_chunk_pages(stored, start, start + meta.total_compressed_size, meta.num_values).dictionary)
    longest = measure_longest_values(stored, found, read_codec(stored, 0, 0))
    assert longest == [max(map(len, c), default=0) for c in columns]


LISTS = st.lists(
    st.none() | st.lists(st.none() | st.lists(st.none() | st.integers(0, 9), max_size=12), max_size=5),
    min_size=1, max_size=60,
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(LISTS, st.integers(0, 3000), WRITING)
def test_the_longest_row_of_a_chunk_of_lists(rows: list[list[list[int] | None] | None], long: int, how: dict) -> None:
    rows = [*rows, [[1] * long, [2] * (long // 2)], *rows]
    data = write_buffer(pa.table({"l": pa.array(rows, pa.list_(pa.list_(pa.int64())))}), **how)
    file = pq.ParquetFile(pa.BufferReader(data))
    stored, meta = Stored(pa.BufferReader(data)), file.metadata.row_group(0).column(0)
    start = min(at for at in (meta.dictionary_page_offset, meta.data_page_offset) if at is not None)
    end = start + meta.total_compressed_size
    levels = file.schema.column(0).max_repetition_level
    found = count_longest_row_values(stored, start, end, meta.num_values, read_codec(stored, 0, 0), levels)
    assert found == max(sum(max(1, len(inner or [])) for inner in row or []) or 1 for row in rows)


BOMBS = {
    "one row": [[0] * 3_000_000],
    "one among many": [[1]] * 1000 + [[0] * 3_000_000] + [[1]] * 1000,
    "over many pages": [[1, None]] * 3 + [[0] * 3_000_000],
}


COMPRESSIONS = ["none", "snappy", "zstd", "gzip", "lz4", "brotli"]


@pytest.mark.parametrize(("compression", "name", "version"), mark_products(COMPRESSIONS, BOMBS, ["1.0", "2.0"]))
def test_a_list_that_decodes_to_too_much_is_refused(compression: str, name: str, version: str) -> None:
    size = 4096 if name == "over many pages" else None
    how = {"data_page_version": version, "compression": compression, "data_page_size": size}
    table = pa.table({"l": pa.array(BOMBS[name], pa.list_(pa.int64()))})
    assert rows_that_fit(table, 1 << 25, **how) >= 1
    with pytest.raises(ValueError, match=r"a row has 3000000 values in a column of \d+ stored bytes"):
        rows_that_fit(table, 1 << 20, **how)


def test_long_rows_share_no_batch_where_all_rows_unfold_to_much() -> None:
    table = pa.table({"l": pa.array([[1]] * 50_000 + [[0] * 100_000] * 50, pa.list_(pa.int64()))})
    assert rows_that_fit(table, 1 << 20) == (1 << 20) // (8 * 100_000)


LEVELS = {
    "cut in a run": b"\x05\x01",
    "a number without end": b"\x80" * 9,
    "an empty run": b"\x00\x01" * 20,
}


@pytest.mark.parametrize("name", LEVELS)
def test_levels_that_cannot_be_are_refused(name: str) -> None:
    inner = {1: (I32, 1000), 2: (I32, 0), 3: (I32, 1000), 4: (I32, 0), 5: (I32, 0), 6: (I32, len(LEVELS[name]))}
    page = header(m1=(I32, 3), m8=(STRUCT, ThriftStruct(dict(inner))))[:-24] + LEVELS[name]
    with pytest.raises(ValueError, match="levels"):
        count_longest_row_values(Stored(pa.BufferReader(page)), 0, len(page), 1000, 0, 1)


def header(**members: tuple[int, object]) -> bytes:
    inner = ThriftStruct({1: (I32, 3), 2: (I32, 0), 3: (I32, 3), 4: (I32, 3)})
    all_members = {"m1": (I32, 0), "m2": (I32, 24), "m3": (I32, 24), "m5": (STRUCT, inner), **members}
    return encode(ThriftStruct({int(name[1:]): value for name, value in all_members.items()})) + bytes(24)


HEADERS = {
    "a size of 2**33": header(m2=(I64, 2**33)),
    "a negative size": header(m2=(I32, -5)),
    "packed into 2**32 + 24": header(m3=(I64, 2**32 + 24)),
    "two sizes": b"\x15\x00\x15\x30\x05\x04\x30" + header()[3:],
    "members beyond their range": b"\x15\x00\x15\x30\x05\x84\x80\x08\x30" + header()[3:],
    "no end": b"\xff" * 1000,
    "a number without end": b"\x15" + b"\x80" * 1000,
    "nothing": b"",
}


@pytest.mark.parametrize("name", HEADERS)
def test_headers_that_readers_would_differ_about_are_refused(name: str) -> None:
    read_chunk_pages(Stored(pa.BufferReader(header())), 0, 100, 3)
    data = HEADERS[name]
    with pytest.raises(ValueError, match=r"page|member|number|wire"):
        read_chunk_pages(Stored(pa.BufferReader(data)), 0, 2000, 3)


def rows_that_fit(table: pa.Table, most_bytes: int, **how: object) -> int:
    data = write_buffer(table, **how)
    file = pq.ParquetFile(pa.BufferReader(data))
    leaves = [Leaf.of(file.schema, i) for i in range(len(file.schema))]
    piece = GroupRange(tuple(range(file.num_row_groups)), 0, file.metadata.num_rows)
    return plan_batches(file.metadata, Stored(pa.BufferReader(data)), piece, leaves, 65_536, most_bytes).rows


def make_repeated_text(value: str, rows: int) -> pa.Table:
    codes = pa.array(np.zeros(rows, np.int32))
    return pa.table({"t": pa.DictionaryArray.from_arrays(codes, pa.array([value]))})


@pytest.mark.parametrize("value", ["x", "x" * 2_000], ids=["short", "long"])
def test_valid_rows_are_returned_in_full_batches(value: str) -> None:
    rows = 100_000
    table = make_repeated_text(value, rows).append_column("n", pa.array(np.arange(rows)))
    assert rows_that_fit(table, MOST_BYTES, compression="zstd") == 65_536
    assert rows_that_fit(some_rows(), MOST_BYTES) == 65_536


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ({}, [["t", "b"]]),
        ({"use_dictionary": False}, []),
        ({"dictionary_pagesize_limit": 50}, []),
        ({"row_group_size": 500}, []),
    ],
    ids=["short", "plain", "with plain pages", "small row groups"],
)
def test_texts_with_short_dictionaries_are_decoded_as_codes(
    monkeypatch: pytest.MonkeyPatch, how: dict[str, object], expected: list[list[str]]
) -> None:
    codes: list[list[str]] = []
    original = pq.ParquetFile

    def open_file(*arguments: object, **options: object) -> pq.ParquetFile:
        if "read_dictionary" in options:
            codes.append(options["read_dictionary"])  # type: ignore[arg-type]
        return original(*arguments, **options)

    rows = 40_000
    texts = pa.array([None if i % 7 == 0 else "t" * (i % 40) for i in range(rows)])
    many = pa.array([str(i) for i in range(rows)])
    columns = [texts, texts.cast(pa.binary()), many, pa.StructArray.from_arrays([texts], ["t"])]
    fields = parse_columns("t STRING, b BYTES, m STRING, r ROW<t STRING>")
    data = write_buffer(pa.table(columns, names=[f.name for f in fields]), **{"row_group_size": rows // 2, **how})
    monkeypatch.setattr(pq, "ParquetFile", open_file)
    found = list(ParquetFormat().read(pa.BufferReader(data), ReadRequest("f", fields, batch_rows=10_000)))
    assert len(found) == 4, "full batches"
    assert pa.Table.from_batches(found).columns == [pa.chunked_array([column]) for column in columns]
    assert codes == expected


def test_batches_shrink_as_values_grow() -> None:
    for size in (100_000, 1_000_000, 5_000_000):
        fitting = rows_that_fit(make_repeated_text("x" * size, 10_000), MOST_BYTES, dictionary_pagesize_limit=1 << 30)
        assert fitting == MOST_BYTES // 4 // size
    large = make_repeated_text("x" * 100_000, 30_000)
    assert rows_that_fit(large, 1 << 40, dictionary_pagesize_limit=1 << 30) == (2**31 - 1) // 100_000, "32-bit offsets"
    lists = pa.table({"l": pa.array([[0] * 50_000] * 100)})
    assert rows_that_fit(lists, 1 << 22) == (1 << 20) // (8 * 50_000)
    fixed = pa.table({"f": pa.array([b"x" * 100_000] * 100, pa.binary(100_000))})
    assert rows_that_fit(fixed, 1 << 22) == 10


def test_the_footer_is_decoded_once_for_all_row_groups() -> None:
    texts = pa.table({"t": [f"name {i % 3000:05}" for i in range(60_000)]})
    data = write_buffer(texts, row_group_size=5_000)
    asked: list[int] = []

    class Counted(pa.BufferReader):
        def read_at(self, nbytes: int, offset: int) -> bytes:
            asked.append(offset)
            return bytes(super().read_at(nbytes, offset))

    file = pq.ParquetFile(pa.BufferReader(data))
    stored, leaves = Stored(Counted(data)), [Leaf.of(file.schema, 0)]
    for group in range(file.num_row_groups):
        plan_batches(file.metadata, stored, GroupRange((group,), 0, 5_000), leaves, 65_536, 1 << 20)
    dictionaries = sum(file.metadata.row_group(g).column(0).has_dictionary_page for g in range(file.num_row_groups))
    assert dictionaries == file.num_row_groups == 12
    assert len([at for at in asked if at == data.size - 8]) == 1


def test_pages_have_a_limit_in_all_columns_together() -> None:
    values = {f"c{i}": ["x" * 6_000_000] for i in range(6)}
    table = pa.table(values)
    how = {"use_dictionary": False, "compression": "zstd"}
    assert rows_that_fit(table, 20_000_000, **how) >= 1
    with pytest.raises(ValueError, match=r"decompress to 10\d{6} bytes"):
        rows_that_fit(table, 5_000_000, **how)
    noise = {"c": [np.random.default_rng(1).bytes(6_000_000)]}
    assert rows_that_fit(pa.table(noise), 100_000, **how) == 1


def test_adjacent_ranges_of_a_remote_file_are_read_in_one_request() -> None:
    data = write_buffer(some_rows())
    asked: list[tuple[int, int]] = []

    class Remote(pa.BufferReader):
        def read_at(self, nbytes: int, offset: int) -> bytes:
            asked.append((offset, offset + nbytes))
            return bytes(super().read_at(nbytes, offset))

    ahead = PrefetchedFile(Remote(data))
    ahead.load([(10, 20), (4, 10), (30, 40), (12_000, 12_100)])
    assert asked == [(4, 40), (12_000, 12_100)]
    whole = data.to_pybytes()
    assert ahead.read_at(5, 12) == whole[12:17]
    assert ahead.read_at(100, 12_000) == whole[12_000:12_100]
    assert len(asked) == 2
    assert ahead.read_at(3, 50) == whole[50:53]


def test_steps_cover_the_row_range() -> None:
    data = write_buffer(pa.table({"n": np.zeros(5_000_000, np.int8)}), row_group_size=300_000)
    footer = pq.ParquetFile(pa.BufferReader(data)).metadata
    found = list(split_into_steps(GroupRange(tuple(range(2, 17)), 1_000, 4_298_000), footer))
    assert [g for step in found for g in step.groups] == list(range(2, 17))
    assert [step.count for step in found] == [1_200_000, 1_200_000, 1_200_000, 699_000]
    assert [step.count for step in split_into_steps(GroupRange((3, 4), 0, 300_001), footer)] == [300_001]


def test_errors_name_the_file() -> None:
    data = bytearray(write_buffer(some_rows(), compression="none", use_dictionary=False))
    request = ReadRequest("f-7", parse_columns("n BIGINT"))
    data[5:8] = b"\xff\xff\xff"
    with pytest.raises(CorruptTable, match="f-7"):
        list(ParquetFormat().read(pa.BufferReader(data), request))


def test_a_codec_that_does_not_exist_is_refused() -> None:
    data = bytes(write_buffer(pa.table({"s": ["a" * 100, "b"] * 50}), compression="zstd"))
    assert read_codec(Stored(pa.BufferReader(data)), 0, 0) == 6
    (length,) = struct.unpack("<I", data[-8:-4])
    footer = decode(data[-8 - length : -8])
    footer.get(4).values[0].get(1).values[0].get(3).put(4, I32, 38)
    end = encode(footer)
    damaged = data[: -8 - length] + end + struct.pack("<I", len(end)) + data[-4:]
    with pytest.raises(ValueError, match="codec 38"):
        read_codec(Stored(pa.BufferReader(damaged)), 0, 0)
    with pytest.raises(CorruptTable, match="f-3"):
        list(ParquetFormat().read(pa.BufferReader(damaged), ReadRequest("f-3", parse_columns("s STRING"))))
