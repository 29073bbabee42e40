"""Damaged Parquet footers are refused, whatever pyarrow does with them; sound footers are not."""

from __future__ import annotations

import io
import os
import random
import resource
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.golden_tables import golden_directory

from paimon.adapters.formats.guards import parquet_footer
from paimon.adapters.formats.guards.parquet_footer import check_footer, open_parquet_file
from paimon.adapters.formats.guards.parquet_pages import Stored
from paimon.adapters.formats.parquet import ParquetFormat
from paimon.adapters.formats.records_arrow import read_arrow_records
from paimon.adapters.formats.thrift import (
    BINARY,
    I16,
    I32,
    I64,
    LIST,
    STRUCT,
    ThriftList,
    ThriftStruct,
    decode,
    decode_at,
    encode,
)
from paimon.domain.errors import CorruptTable, PaimonError
from paimon.domain.predicate.expression import Compare, Operator
from paimon.domain.types import data_types as dt
from paimon.domain.types.data_types import DataField
from paimon.domain.types.ddl import parse_columns
from paimon.ports.formats import ReadRequest, ShareRequest, WriteRequest
from paimon.testing.contracts.formats import MODERATE, files_of
from paimon.testing.memory_files import MemoryFiles

PATH = "/t/data.parquet"
FIELDS = parse_columns("n BIGINT, s STRING, l ARRAY<INT>, d DECIMAL(30, 2)")
N, S, L, D = range(4)
COLUMNS, META, CRYPTO = 1, 3, 8
STATISTICS, SIZES = 12, 16
SEED = 20
FLIPS = 1_500
CPU_SECONDS = 60
"""Far more than all flips take: it ends a read that does not."""


def write_file(rows: int = 40) -> bytes:
    numbers = range(rows)
    columns = {
        "n": pa.array([n if n % 3 else None for n in numbers], pa.int64()),
        "s": [f"value {n}" for n in numbers],
        "l": pa.array([[n, None] if n % 2 else None for n in numbers], pa.list_(pa.int32())),
        "d": pa.array([Decimal(n) for n in numbers], pa.decimal128(30, 2)),
    }
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink, row_group_size=max(1, rows // 2))
    return sink.getvalue()


def split_file(data: bytes) -> tuple[bytes, bytes]:
    """The bytes before the footer, and the footer."""
    end = len(data) - 8
    start = end - struct.unpack("<I", data[end : end + 4])[0]
    return data[:start], data[start:end]


def join_file(pages: bytes, footer: bytes) -> bytes:
    return pages + footer + struct.pack("<I", len(footer)) + b"PAR1"


def change_footer(data: bytes, change: Callable[[ThriftStruct], object]) -> bytes:
    pages, stored = split_file(data)
    footer = decode(stored)
    change(footer)
    return join_file(pages, encode(footer))


def change_chunk(column: int, change: Callable[[ThriftStruct], object]) -> Callable[[ThriftStruct], object]:
    """A change of a column chunk in the second row group."""
    return lambda footer: change(footer.get(4).values[1].get(COLUMNS).values[column])


def change_meta(column: int, change: Callable[[ThriftStruct], object]) -> Callable[[ThriftStruct], object]:
    return change_chunk(column, lambda chunk: change(chunk.get(META)))


def change_column(place: int, change: Callable[[ThriftStruct], object]) -> Callable[[ThriftStruct], object]:
    """A change of a column of the schema, whose first element is the whole row."""
    return lambda footer: change(footer.get(2).values[place + 1 if place >= 0 else place])


def put_bound(column: int, number: int, bound: bytes) -> Callable[[ThriftStruct], object]:
    return change_meta(column, lambda meta: meta.get(STATISTICS).put(number, BINARY, bound))


def put_sizes(column: int, number: int, kind: int, value: object) -> Callable[[ThriftStruct], object]:
    return change_meta(column, lambda meta: meta.get(SIZES).put(number, kind, value))


BY_COLUMN_KEY = ThriftStruct({2: (STRUCT, ThriftStruct({1: (LIST, ThriftList(BINARY, [b"n"]))}))})
DAMAGES = {
    "long definition histogram": (put_sizes(N, 3, LIST, ThriftList(I64, [1, 2, 3])), "3 numbers for 2 levels"),
    "short definition histogram": (put_sizes(L, 3, LIST, ThriftList(I64, [1, 2, 3])), "3 numbers for 4 levels"),
    "repetition histogram": (put_sizes(L, 2, LIST, ThriftList(I64, [1])), "1 numbers for 2 levels"),
    "histogram of other numbers": (put_sizes(N, 3, LIST, ThriftList(I32, [1, 2])), "another wire type"),
    "strings of numbers": (put_sizes(N, 1, I64, 7), "the bytes of strings"),
    "short bound": (put_bound(N, 6, b"abc"), "bounds of another size"),
    "empty bound": (put_bound(N, 5, b""), "bounds of another size"),
    "long bound": (put_bound(N, 5, b"x" * 12), "bounds of another size"),
    "deprecated bound": (put_bound(N, 1, b"x"), "bounds of another size"),
    "two values of a bound": (put_bound(N, 6, b"\0" * 7 + b"\x80"), "two values of the same bound"),
    "bound of a decimal": (put_bound(D, 6, b"x"), "bounds of another size"),
    "number as string": (change_meta(N, lambda meta: meta.put(1, I32, 6)), "another physical type"),
    "string as number": (change_meta(S, lambda meta: meta.put(1, I32, 2)), "another physical type"),
    "unknown type": (change_meta(S, lambda meta: meta.put(1, I32, 99)), "another physical type"),
    "unknown codec": (change_meta(S, lambda meta: meta.put(4, I32, 99)), "codec that does not exist"),
    "negative codec": (change_meta(S, lambda meta: meta.put(4, I32, -1)), "codec that does not exist"),
    "other name": (change_meta(S, lambda meta: meta.put(3, LIST, ThriftList(BINARY, [b"t"]))), "another column"),
    "no metadata": (change_chunk(N, lambda chunk: chunk.drop(META)), "no metadata"),
    "encrypted": (change_chunk(N, lambda chunk: chunk.put(CRYPTO, STRUCT, BY_COLUMN_KEY)), "encrypted"),
    "statistics of another type": (change_meta(N, lambda meta: meta.put(STATISTICS, I64, 1)), "another wire type"),
    "other repetition": (change_column(S, lambda column: column.put(3, I32, -1)), "not required, optional or repeated"),
    "no repetition": (change_column(S, lambda column: column.drop(3)), "not required, optional or repeated"),
    "type of a repetition": (change_column(S, lambda column: column.put(3, I16, 1)), "another wire type"),
    "two decimal types": (change_column(-1, lambda column: column.put(7, I32, 3)), "two decimal types"),
    "missing chunk": (lambda footer: footer.get(4).values[1].get(COLUMNS).values.pop(), "3 column chunks"),
    "repeated chunk": (
        lambda footer: footer.get(4).values[1].get(COLUMNS).values.append(footer.get(4).values[1].get(1).values[0]),
        "5 column chunks",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGES)
def test_footers_that_contradict_their_schema_are_refused(name: str) -> None:
    change, message = DAMAGES[name]
    damaged = change_footer(write_file(), change)
    with pytest.raises(CorruptTable, match=message) as found:
        list(ParquetFormat().read(pa.BufferReader(damaged), ReadRequest(PATH, FIELDS)))
    assert found.value.path == PATH
    with pytest.raises(CorruptTable, match=message):
        ParquetFormat().share(pa.BufferReader(damaged), ShareRequest(PATH, FIELDS[:2], 40))
    with pytest.raises(CorruptTable, match=message):
        read_arrow_records(damaged, PATH, 1 << 20)


def test_members_that_readers_decode_differently_are_refused() -> None:
    pages, footer = split_file(write_file())
    stored = decode(footer)
    groups = encode(ThriftStruct({4: stored.members[4]}))[1:-1]
    repeated = footer[:-1] + b"\x09\x08" + groups + b"\x00"
    with pytest.raises(CorruptTable, match="member 4 of the footer follows member 7"):
        list(ParquetFormat().read(pa.BufferReader(join_file(pages, repeated)), ReadRequest(PATH, FIELDS)))
    chunk = stored.get(4).values[0].get(COLUMNS).values[0]
    twice = footer.replace(encode(chunk), encode(chunk)[:-1] + b"\x0c\x06" + encode(chunk.get(META)) + b"\x00", 1)
    with pytest.raises(CorruptTable, match="occurs twice"):
        list(ParquetFormat().read(pa.BufferReader(join_file(pages, twice)), ReadRequest(PATH, FIELDS)))


def test_each_size_of_a_histogram_is_refused_but_the_right_one() -> None:
    for length in range(20):
        data = change_footer(write_file(), put_sizes(L, 3, LIST, ThriftList(I64, [1] * length)))
        if length in (0, 4):
            assert open_parquet_file(Stored(pa.BufferReader(data))).metadata.row_group(1).column(L).num_values
        else:
            with pytest.raises(ValueError, match="levels"):
                open_parquet_file(Stored(pa.BufferReader(data)))


def read_in_all_ways(data: bytes) -> None:
    """Read a file as a scan, a scan with a predicate, a query engine and the reader of manifests do."""
    predicate = Compare("n", Operator.GT, 3)
    for request in (ReadRequest(PATH, FIELDS), ReadRequest(PATH, FIELDS, predicate=predicate, predicate_fields=FIELDS)):
        list(ParquetFormat().read(pa.BufferReader(data), request))
    shared = ParquetFormat().share(pa.BufferReader(data), ShareRequest(PATH, FIELDS[:2], 40))
    if shared is not None:
        shared.read_at(shared.size, 0)
    read_arrow_records(data, PATH, 1 << 20)


def flip_bytes() -> None:
    """Change single bytes of a footer, and print how many footers were refused."""
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    data = write_file()
    start = len(split_file(data)[0])
    places = random.Random(SEED)
    refused = 0
    for _ in range(FLIPS):
        damaged = bytearray(data)
        damaged[places.randrange(start, len(data))] ^= places.randrange(1, 256)
        try:
            read_in_all_ways(bytes(damaged))
        except PaimonError:
            refused += 1
    print(refused)


def test_no_changed_byte_of_a_footer_ends_the_process() -> None:
    surrounding = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, __file__], capture_output=True, text=True, env=surrounding, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert FLIPS // 2 < int(done.stdout) < FLIPS


OPTIONS = st.fixed_dictionaries(
    {
        "data_page_version": st.sampled_from(["1.0", "2.0"]),
        "write_page_index": st.booleans(),
        "write_statistics": st.booleans(),
        "store_decimal_as_integer": st.booleans(),
        "use_dictionary": st.booleans(),
    }
)


@MODERATE
@given(st.data())
def test_footers_of_sound_files_pass(data: st.DataObject) -> None:
    fields, table = data.draw(files_of("parquet"))
    files = MemoryFiles()
    writer = ParquetFormat().writer(files.create(PATH), WriteRequest(PATH, fields))
    writer.write(table)
    writer.close()
    stored = files.read(PATH)
    check_all_chunks(stored)
    sink = io.BytesIO()
    pq.write_table(pq.ParquetFile(pa.BufferReader(stored)).read(), sink, row_group_size=3, **data.draw(OPTIONS))
    check_all_chunks(sink.getvalue())


def check_all_chunks(data: bytes) -> int:
    """Check a sound footer with and without the pattern for usual chunks, and return how many it recognizes."""
    file = open_parquet_file(Stored(pa.BufferReader(data)))
    shapes = [parquet_footer._read_shape(file.schema.column(leaf)) for leaf in range(len(file.schema))]
    recognized = 0
    for footer, at, leaf in find_chunks(split_file(data)[1]):
        end = parquet_footer._check_next_chunk(footer, at, shapes[leaf])
        assert shapes[leaf].match(footer, at) in (0, end)
        recognized += shapes[leaf].match(footer, at) > 0
    return recognized


def find_chunks(footer: bytes) -> Iterator[tuple[bytes, int, int]]:
    """Yield the footer, the offset of a column chunk, and its column, for all chunks."""
    at = 0
    for group in (decode(footer).get(4) or ThriftList(STRUCT, [])).values:
        for leaf, chunk in enumerate(group.get(COLUMNS).values):
            at = footer.index(encode(chunk), at)
            yield footer, at, leaf
            at = decode_at(footer, at)[1]


def test_changed_chunks_are_recognized_only_if_they_are_sound() -> None:
    """The pattern of usual chunks refuses what the check of the decoded members refuses."""
    data = write_file()
    file = open_parquet_file(Stored(pa.BufferReader(data)))
    shapes = [parquet_footer._read_shape(file.schema.column(leaf)) for leaf in range(len(file.schema))]
    places = random.Random(SEED)
    seen = {True: 0, False: 0}
    for footer, at, leaf in list(find_chunks(split_file(data)[1])) * 1_000:
        end = decode_at(footer, at)[1]
        damaged = bytearray(footer)
        damaged[places.randrange(at, end)] ^= places.randrange(1, 256)
        found = shapes[leaf].match(bytes(damaged), at)
        if found:
            assert found == parquet_footer._check_next_chunk(bytes(damaged), at, shapes[leaf])
        seen[found > 0] += 1
    assert min(seen.values()) > 1_000


def test_files_of_java_pass() -> None:
    checked = 0
    for path in sorted(golden_directory().glob("*/table/**/*.parquet")):
        stored = Stored(pa.memory_map(str(path)))
        check_footer(stored.footer_bytes, open_parquet_file(stored).schema)
        checked += 1
    assert checked > 100


def test_chunks_of_our_files_are_recognized() -> None:
    assert check_all_chunks(write_file()) == 8


class Remote(pa.BufferReader):
    """A file whose requests are recorded."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.asked: list[tuple[int, int]] = []

    def read_at(self, nbytes: int, offset: int) -> bytes:
        self.asked.append((offset, offset + nbytes))
        return bytes(super().read_at(nbytes, offset))


@pytest.mark.parametrize("columns", [4, 400])
def test_the_check_needs_no_request_of_its_own(columns: int) -> None:
    """A footer takes one request, or two if it has more than 64 KiB, as many as Arrow needs."""
    sink = io.BytesIO()
    pq.write_table(pa.table({f"column {i}": [1, 2, 3] for i in range(columns)}), sink)
    data = sink.getvalue()
    remote = Remote(data)
    stored = Stored(pa.PythonFile(remote, mode="r"))
    stored.ahead._source = remote  # pyarrow counts no requests of its own file
    assert open_parquet_file(stored).metadata.num_columns == columns
    start = len(split_file(data)[0])
    tail = max(0, len(data) - 65_536)
    assert remote.asked == ([(tail, len(data))] if start >= tail else [(tail, len(data)), (start, len(data))])


def test_schemas_of_equal_names_are_not_confused() -> None:
    """The schema of the last file is used again only for footers that begin with the same bytes."""
    for kind in (pa.int64(), pa.int32(), pa.string(), pa.int64()):
        sink = io.BytesIO()
        pq.write_table(pa.table({"c": pa.array([None], kind)}), sink)
        field = DataField(0, "c", {pa.int64(): dt.BigIntType(), pa.int32(): dt.IntType()}.get(kind, dt.VarCharType(9)))
        assert [b.num_rows for b in ParquetFormat().read(pa.BufferReader(sink.getvalue()), ReadRequest(PATH, (field,)))]


if __name__ == "__main__":
    flip_bytes()
