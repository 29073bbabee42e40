"""Few rows of a Parquet file are decoded from their own pages, and are those of the whole file."""

from __future__ import annotations

import datetime
import io
import itertools

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paimon.adapters.formats.guards.parquet_pages import MAGIC, ChunkPages, Stored
from paimon.adapters.formats.parquet import ParquetFormat, cut_pages, reader
from paimon.adapters.formats.parquet.cut_pages import CutFile
from paimon.adapters.formats.thrift import ThriftStruct, decode, encode
from paimon.domain.errors import CorruptTable
from paimon.domain.predicate.expression import Compare, Operator
from paimon.domain.types.ddl import parse_columns
from paimon.ports.formats import ReadRequest

FIELDS = parse_columns("id BIGINT, day DATE, kind STRING, note STRING, place ROW<x INT, name STRING>, dots ARRAY<INT>")
FLAT, WITH_STRUCT = FIELDS[:4], FIELDS[:5]
ROWS = 3_000


def make_rows() -> pa.Table:
    """Columns whose pages end at different rows: narrow ones, a dictionary, long texts, parts of a struct, lists."""
    numbers = range(ROWS)
    columns = {
        "id": pa.array(numbers, pa.int64()),
        "day": pa.array([None if n % 7 == 0 else datetime.date(2026, 1, 1 + n % 28) for n in numbers]),
        "kind": pa.array(["red", "green", None, "blue"][n % 4] for n in numbers),
        "note": pa.array(None if n % 11 == 0 else f"note {n} " * (n % 13) for n in numbers),
        "place": pa.array(None if n % 5 == 0 else {"x": n, "name": "a place"} for n in numbers),
        "dots": pa.array([n] * (n % 3) for n in numbers),
    }
    return pa.table(columns)


TABLE = make_rows()


def write(table: pa.Table = TABLE, **options: object) -> bytes:
    chosen = {"write_page_index": True, "data_page_size": 800, "write_batch_size": 50, "use_dictionary": ["kind"]}
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=1_200, write_page_checksum=True, **(chosen | options))
    return sink.getvalue()


@pytest.fixture
def cuts(monkeypatch: pytest.MonkeyPatch) -> list[CutFile | None]:
    """Let few rows be cut, and list the cuts."""
    found: list[CutFile | None] = []
    monkeypatch.setattr(reader, "_LEAST_SKIPPED_ROWS", 1)

    def cut(*arguments: object) -> CutFile | None:
        found.append(cut_pages.cut_pages(*arguments))  # type: ignore[arg-type]
        return found[-1]

    monkeypatch.setattr(reader, "cut_pages", cut)
    return found


def read(data: bytes, first: int, end: int, fields: object = FLAT) -> list[dict[str, object]]:
    request = ReadRequest("/t/f.parquet", tuple(fields), row_ranges=((first, end),))  # type: ignore[arg-type]
    return pa.Table.from_batches(ParquetFormat().read(pa.BufferReader(data), request)).to_pylist()


@pytest.mark.parametrize(
    "options",
    [{}, {"compression": "zstd"}, {"data_page_version": "2.0"}, {"use_dictionary": True}, {"max_rows_per_page": 100}],
    ids=["snappy", "zstd", "version 2", "dictionaries", "equal pages"],
)
@settings(max_examples=15, deadline=None)
@given(first=st.integers(0, ROWS - 1), count=st.integers(1, 300))
def test_rows_are_those_of_the_whole_file(options: dict[str, object], first: int, count: int) -> None:
    end = min(first + count, ROWS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "_LEAST_SKIPPED_ROWS", 1)
        assert (
            read(write(**options), first, end)
            == TABLE.select([f.name for f in FLAT]).slice(first, end - first).to_pylist()
        )


@settings(max_examples=40, deadline=None)
@given(bounds=st.sets(st.integers(0, ROWS), min_size=4, max_size=12), version=st.sampled_from(["1.0", "2.0"]))
def test_several_ranges_are_those_of_the_whole_file(bounds: set[int], version: str) -> None:
    ordered = sorted(bounds)
    ranges = tuple(zip(ordered[::2], ordered[1::2], strict=False))
    request = ReadRequest("/t/f.parquet", FLAT, row_ranges=ranges)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "_LEAST_SKIPPED_ROWS", 1)
        source = pa.BufferReader(write(data_page_version=version))
        found = pa.Table.from_batches(ParquetFormat().read(source, request))
    wanted = TABLE.select([f.name for f in FLAT])
    assert found.to_pylist() == [row for first, end in ranges for row in wanted[first:end].to_pylist()]


def test_pages_between_distant_rows_are_not_copied(cuts: list[CutFile | None]) -> None:
    data = write()
    request = ReadRequest("/t/f.parquet", FLAT, row_ranges=((1_250, 1_251), (1_700, 1_703), (2_390, 2_391)))
    found = pa.Table.from_batches(ParquetFormat().read(pa.BufferReader(data), request))
    assert found["id"].to_pylist() == [1_250, 1_700, 1_701, 1_702, 2_390]
    (cut,) = cuts
    assert cut is not None and max(len(rows.ranges) for _, rows in cut.groups) == 3
    assert len(cut.data) < len(data) // 5


def test_large_rows_are_not_cut(cuts: list[CutFile | None]) -> None:
    request = ReadRequest("/t/f.parquet", FLAT, row_ranges=((1_250, 1_251), (2_390, 2_391)), batch_bytes=100)
    found = pa.Table.from_batches(ParquetFormat().read(pa.BufferReader(write()), request))
    assert found["id"].to_pylist() == [1_250, 2_390] and not any(cuts)


def test_only_the_pages_of_the_rows_are_copied(cuts: list[CutFile | None]) -> None:
    data = write()
    assert read(data, 2_000, 2_002, FLAT[:4]) == TABLE.select(["id", "day", "kind", "note"])[2_000:2_002].to_pylist()
    (cut,) = cuts
    assert cut is not None and len(cut.groups) > 1  # long texts have other pages
    assert len(cut.data) < len(data) // 10


def test_a_lookup_in_sorted_rows_decodes_one_page_of_each_column(cuts: list[CutFile | None]) -> None:
    request = ReadRequest("/t/f.parquet", FLAT[:4], Compare("id", Operator.EQ, 2_300), FLAT[:1], ascending="id")
    (batch,) = ParquetFormat().read(pa.BufferReader(write()), request)
    assert batch.to_pylist() == TABLE.select(["id", "day", "kind", "note"])[2_300:2_301].to_pylist()
    assert cuts[-1] is not None


@pytest.mark.parametrize(
    "options", [{"write_page_index": False}, {"row_group_size": 40}], ids=["no index", "first page"]
)
def test_rows_without_known_pages_are_decoded_from_the_beginning(cuts: list[CutFile | None], options: dict) -> None:
    assert read(pq_bytes(options), 2_005, 2_007) == TABLE.select([f.name for f in FLAT])[2_005:2_007].to_pylist()
    assert not any(cuts)


def pq_bytes(options: dict) -> bytes:
    sink = io.BytesIO()
    pq.write_table(TABLE, sink, **({"write_page_index": True} | options))
    return sink.getvalue()


def test_lists_are_decoded_from_the_beginning(cuts: list[CutFile | None]) -> None:
    assert read(write(), 2_000, 2_003, FIELDS) == TABLE[2_000:2_003].to_pylist() and not cuts


def rewrite_index(data: bytes, leaf: int, member: int, page: int, change: int | None) -> bytes:
    """Change a number of a page in the offset index of a column in the second row group; None removes it."""
    length = int.from_bytes(data[-8:-4], "little")
    footer = decode(data[-8 - length : -8])
    chunk: ThriftStruct = footer.get(4).values[1].get(1).values[leaf]
    index = decode(data[chunk.get(4) :][: chunk.get(5)])
    location = index.get(1).values[page]
    if change is None:
        location.drop(member)
    else:
        location.put(member, location.members[member][0], location.get(member) + change)
    changed = encode(index)
    chunk.put(4, chunk.members[4][0], len(data) - 8 - length)
    chunk.put(5, chunk.members[5][0], len(changed))
    end = encode(footer)
    return data[: -8 - length] + changed + end + len(end).to_bytes(4, "little") + MAGIC


def count_wrong_answers(member: int, changes: tuple[int | None, ...]) -> int:
    """Read with changed indexes; errors count as right."""
    data, wrong = write(), 0
    for change, page, first, leaf in itertools.product(changes, range(3), (1_230, 1_290, 1_320, 1_400), (0, 3)):
        try:
            found = read(rewrite_index(data, leaf, member, page, change), first, first + 2)
        except CorruptTable:
            continue
        wrong += found != TABLE.select([f.name for f in FLAT])[first : first + 2].to_pylist()
    return wrong


@pytest.mark.parametrize("member", [1, 2, 3], ids=["offset", "size", "row"])
def test_an_index_that_contradicts_the_pages_gives_no_wrong_rows(cuts: list[CutFile | None], member: int) -> None:
    assert count_wrong_answers(member, (-1, 1, 50, None)) == 0


def test_pages_with_another_number_of_rows_are_found(
    cuts: list[CutFile | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def count_as_expected(stored: Stored, start: int, end: int, values: int) -> ChunkPages:
        return ChunkPages(0, 0, 0, values, None)

    monkeypatch.setattr(cut_pages, "read_chunk_pages", count_as_expected)
    assert count_wrong_answers(3, (1,))


def test_fields_of_a_struct_are_cut_if_their_pages_agree(cuts: list[CutFile | None]) -> None:
    expected = TABLE.select([f.name for f in WITH_STRUCT])[2_000:2_002].to_pylist()
    assert read(write(max_rows_per_page=50), 2_000, 2_002, WITH_STRUCT) == expected and len(cuts) == 1
    cut = cuts[0]
    assert cut is not None and any({4, 5} <= set(leaves) for leaves, _ in cut.groups)
    assert read(write(), 2_000, 2_002, WITH_STRUCT) == expected


def test_cut_rows_keep_the_limits_of_a_batch(cuts: list[CutFile | None]) -> None:
    data, wanted = write(), TABLE.select([f.name for f in FLAT])[2_000:2_300].to_pylist()
    for limits, most_rows in (({"batch_rows": 100}, 100), ({"batch_bytes": 2_000}, 299)):
        request = ReadRequest("/t/f.parquet", FLAT, row_ranges=((2_000, 2_300),), **limits)
        batches = list(ParquetFormat().read(pa.BufferReader(data), request))
        assert pa.Table.from_batches(batches).to_pylist() == wanted
        assert max(b.num_rows for b in batches) <= most_rows


@pytest.mark.parametrize(
    "damaged", [b"\x19" * 5_000, b"\xff" * 40, b"\x1b\x11\x88\x02\x02\x00"], ids=["nested", "no Thrift", "a map"]
)
def test_a_damaged_index_is_not_used(cuts: list[CutFile | None], damaged: bytes) -> None:
    data = write()
    length = int.from_bytes(data[-8:-4], "little")
    footer = decode(data[-8 - length : -8])
    chunk: ThriftStruct = footer.get(4).values[1].get(1).values[0]
    chunk.put(4, chunk.members[4][0], len(data) - 8 - length)
    chunk.put(5, chunk.members[5][0], len(damaged))
    end = encode(footer)
    data = data[: -8 - length] + damaged + end + len(end).to_bytes(4, "little") + MAGIC
    assert read(data, 2_000, 2_002) == TABLE.select([f.name for f in FLAT])[2_000:2_002].to_pylist()
    assert cuts == [None]
