"""Small files that decompress to gigabytes. A process of its own reads each, and its memory is measured.

A limit refuses them, or they are read piece by piece.
"""

from __future__ import annotations

import json
import zlib
from functools import cache
from pathlib import Path

import cramjam
import numpy as np
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from support.case_lists import mark_nightly
from support.consistent_damage import avro_file, avro_records, update_recorded_sizes
from support.warm_processes import run_code

import paimon
from paimon.adapters.formats.avro.container import compress, encode_header
from paimon.adapters.formats.thrift import BINARY, I32, I64, LIST, STRUCT, ThriftList, ThriftStruct, encode
from paimon.adapters.formats.varints import encode_zigzag

MIB = 1 << 20
READ = """
import json, sys, time
import paimon
from paimon.domain.errors import PaimonError
def peak():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) // 1024
table = paimon.open_table(sys.argv[1])
sound = paimon.open_table(sys.argv[2])
rows = sum(b.num_rows for b in sound.scan().to_batches())
before, started, rows = peak(), time.process_time(), 0
try:
    for batch in table.scan(columns=["k"]).to_batches():
        rows += batch.num_rows
    message = ""
except PaimonError as error:
    message = type(error).__name__ + ": " + str(error)
print(json.dumps([peak() - before, time.process_time() - started, rows, message]))
"""


def table_of(home: Path, name: str, file_format: str, kind: str = "BIGINT") -> Path:
    catalog = paimon.connect(home)
    catalog.create_database("d", exist_ok=True)
    table = catalog.create_table(f"d.{name}", f"k {kind}", options={"file.format": file_format, "write-only": "true"})
    table.write({"k": [1, 2, 3] if kind == "BIGINT" else ["1", "2", "3"]})
    return home / "d.db" / name


def find_file(root: Path, pattern: str) -> Path:
    (path,) = (p for p in root.glob(pattern) if not p.name.startswith("manifest-list"))
    return path


@cache
def zeros(count: int, codec: str = "zstandard") -> bytes:
    """Compressed zeros (with the weakest deflate level, because the limit of a file grows with its size)."""
    if codec == "deflate":
        squeeze = zlib.compressobj(1, zlib.DEFLATED, -15)
        return squeeze.compress(bytes(count)) + squeeze.flush()
    return bytes(cramjam.zstd.compress(bytes(count), 1)) if codec == "zstandard" else compress(codec, bytes(count), 1)


def bomb(record: object, count: int, codec: str = "zstandard") -> bytes:
    """An Avro file of one block of zeros."""
    head = encode_header(json.dumps(record), codec)
    packed = zeros(count, codec)
    return head + encode_zigzag(count) + encode_zigzag(len(packed)) + packed + head[-16:]


def set_row_count(root: Path, rows: int | None = None) -> None:
    """Update manifest, lists and snapshot to the actual size of the data file and to these rows."""
    path = find_file(root, "manifest/manifest-*")
    schema, records = avro_records(path.read_bytes())
    for record in records:
        file = record["_FILE"]
        file["_FILE_SIZE"] = (root / "bucket-0" / file["_FILE_NAME"]).stat().st_size
        file["_ROW_COUNT"] = rows or file["_ROW_COUNT"]
    path.write_bytes(avro_file(schema, records))
    update_recorded_sizes(root)


def read(home: Path, root: Path) -> tuple[int, float, int, str]:
    """Mebibytes at the peak above those of a sound read, CPU seconds, rows, and the error."""
    sound = home / "d.db" / "sound"
    if not sound.exists():
        table_of(home, "sound", "parquet")
    done = run_code(READ, str(root), str(sound))
    assert done.code == 0, done.errors
    peak, seconds, rows, message = json.loads(done.output)
    return peak, seconds, rows, message


def page(packed: bytes, size: int, values: int) -> bytes:
    """A data page of plain numbers, with its header."""
    inner = ThriftStruct({1: (I32, values), 2: (I32, 0), 3: (I32, 3), 4: (I32, 3)})
    head = {1: (I32, 0), 2: (I32, size), 3: (I32, len(packed)), 5: (STRUCT, inner)}
    return encode(ThriftStruct(head)) + packed


def parquet_file(pages: bytes, rows: int, size: int) -> bytes:
    """A file with one column of numbers, whose footer declares this size."""
    column = {
        1: (I32, 2), 2: (LIST, ThriftList(I32, [0])), 3: (LIST, ThriftList(BINARY, [b"k"])), 4: (I32, 6),
        5: (I64, rows), 6: (I64, size), 7: (I64, len(pages)), 9: (I64, 4),
    }  # fmt: skip
    chunk = ThriftStruct({2: (I64, 4), 3: (STRUCT, ThriftStruct(column))})
    group = ThriftStruct({1: (LIST, ThriftList(STRUCT, [chunk])), 2: (I64, size), 3: (I64, rows)})
    root = ThriftStruct({4: (BINARY, b"r"), 5: (I32, 1)})
    leaf = ThriftStruct({1: (I32, 2), 3: (I32, 0), 4: (BINARY, b"k")})
    schema, groups = ThriftList(STRUCT, [root, leaf]), ThriftList(STRUCT, [group])
    footer = encode(ThriftStruct({1: (I32, 1), 2: (LIST, schema), 3: (I64, rows), 4: (LIST, groups)}))
    return b"PAR1" + pages + footer + len(footer).to_bytes(4, "little") + b"PAR1"


TEXTS = {"type": "record", "name": "record", "fields": [{"name": "k", "type": "bytes"}]}
NUMBERS = {"type": "record", "name": "record", "fields": [{"name": "k", "type": ["null", "long"]}]}
LISTS = {"type": "record", "name": "r", "fields": [{"name": "k", "type": {"type": "array", "items": "long"}}]}


@pytest.mark.parametrize(
    ("kind", "record"),
    [
        ("manifest", TEXTS),
        pytest.param("manifest", NUMBERS, marks=pytest.mark.nightly),
        pytest.param("manifest list", TEXTS, marks=pytest.mark.nightly),
        ("data file", TEXTS),
        ("data file", LISTS),
    ],
)
def test_an_avro_file_of_kilobytes_that_expands_to_820_mib(tmp_path: Path, kind: str, record: object) -> None:
    root = table_of(tmp_path, "t", "avro")
    data = bomb(record, 820 * MIB)
    assert len(data) < 100_000
    pattern = {"manifest": "manifest/manifest-*", "manifest list": "manifest/manifest-list-*-1"}
    path = find_file(root, "bucket-0/*") if kind == "data file" else sorted(root.glob(pattern[kind]))[0]
    path.write_bytes(data)
    if kind == "data file":
        set_row_count(root)
    update_recorded_sizes(root)
    peak, seconds, _, message = read(tmp_path, root)
    assert message.startswith("CorruptTable")
    assert path.name in message
    assert peak < 100
    assert seconds < 5


MEBIBYTES = {"deflate": 400, "snappy": 820, "bzip2": 160, "xz": 160, "zstandard": 820}


@pytest.mark.parametrize("kind", mark_nightly(["manifest", "manifest list"], always=["manifest"]))
@pytest.mark.parametrize("codec", mark_nightly(MEBIBYTES, always=["deflate", "zstandard"]))
def test_a_block_of_any_codec_is_decompressed_up_to_its_limit(tmp_path: Path, codec: str, kind: str) -> None:
    """1.8 MB of deflate expand to 400 MiB; snappy needs 40 MB for 820 MiB."""
    mebibytes = MEBIBYTES[codec]
    root = table_of(tmp_path, "t", "avro")
    path = sorted(root.glob("manifest/manifest-*" if kind == "manifest" else "manifest/manifest-list-*-1"))[0]
    path.write_bytes(bomb(TEXTS, mebibytes * MIB, codec))
    update_recorded_sizes(root)
    peak, seconds, _, message = read(tmp_path, root)
    assert message.startswith("CorruptTable")
    assert path.name in message
    assert "decompresses to" in message
    assert (peak < 80 + 2 * path.stat().st_size // MIB, seconds < 3) == (True, True)


def test_a_parquet_file_of_kilobytes_that_expands_to_a_billion_values(tmp_path: Path) -> None:
    root = table_of(tmp_path, "t", "parquet")
    path = find_file(root, "bucket-0/*")
    rows = 30_000_000
    ones = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array([7], pa.int64()))
    pq.write_table(pa.table({"k": ones}), path, compression="zstd", row_group_size=rows, store_schema=False)
    assert path.stat().st_size < 400_000
    set_row_count(root)
    peak, seconds, _, message = read(tmp_path, root)
    assert "but its manifest records" in message
    assert (peak < 100, seconds < 5) == (True, True)
    set_row_count(root, rows)
    peak, seconds, found, message = read(tmp_path, root)
    assert (message, found) == ("", rows)  # the rows that the table declares, batch by batch
    assert peak < 100


@pytest.mark.parametrize("lies", [False, True], ids=["footer as it is", "footer that lies"])
def test_a_parquet_page_of_kilobytes_that_expands_to_820_mib(tmp_path: Path, lies: bool) -> None:
    root = table_of(tmp_path, "t", "parquet")
    path = find_file(root, "bucket-0/*")
    body = page(zeros(820 * MIB), 820 * MIB, 3)
    path.write_bytes(parquet_file(body, 3, 100 if lies else 820 * MIB))
    assert path.stat().st_size < 100_000
    set_row_count(root)
    peak, seconds, _, message = read(tmp_path, root)
    assert message.startswith("CorruptTable")
    assert path.name in message
    assert "decompress to" in message
    assert (peak < 100, seconds < 5) == (True, True)


@pytest.mark.slow("writes and reads a row of 140 million values")
@pytest.mark.nightly
def test_a_parquet_list_of_600_bytes_that_expands_to_two_gibibytes(tmp_path: Path) -> None:
    root = table_of(tmp_path, "t", "parquet", "ARRAY<TINYINT>")
    path = find_file(root, "bucket-0/*")
    count = 140_000_000
    values = pa.array(np.zeros(count, np.int8))
    row = pa.ListArray.from_arrays(pa.array([0, count], pa.int32()), values)
    pq.write_table(pa.table({"k": row}), path, compression="zstd", store_schema=False)
    assert path.stat().st_size < 1000
    set_row_count(root, 1)
    peak, seconds, _, message = read(tmp_path, root)
    assert message.startswith("CorruptTable")
    assert path.name in message
    assert f"a row has {count} values" in message
    assert (peak < 100, seconds < 5) == (True, True)


@pytest.mark.parametrize(
    ("kind", "file_format"),
    [
        ("STRING", "parquet"),
        ("MAP<INT, STRING>", "orc"),
        *(pytest.param(kind, "parquet", marks=pytest.mark.nightly) for kind in ("ARRAY<STRING>", "ROW<a STRING>")),
        *(
            pytest.param(kind, "orc", marks=pytest.mark.nightly)
            for kind in ("STRING", "ARRAY<STRING>", "ROW<a STRING>")
        ),
    ],
)
def test_a_megabyte_that_a_dictionary_repeats_in_each_row(tmp_path: Path, kind: str, file_format: str) -> None:
    """Files of some kilobytes with rows of 1.5 GiB. Memory stays within the default budget."""
    root = table_of(tmp_path, "t", file_format, "STRING")
    schema = root / "schema" / "schema-0"
    stored = {
        "STRING": "STRING",
        "ARRAY<STRING>": {"type": "ARRAY", "element": "STRING"},
        "ROW<a STRING>": {"type": "ROW", "fields": [{"id": 1, "name": "a", "type": "STRING"}]},
        "MAP<INT, STRING>": {"type": "MAP", "key": "INT NOT NULL", "value": "STRING"},
    }[kind]
    members = json.loads(schema.read_text())
    members["fields"][0]["type"], members["highestFieldId"] = stored, 1
    schema.write_text(json.dumps(members))
    path, rows, texts = find_file(root, "bucket-0/*"), 1536, pa.array(["x" * MIB])
    shapes = {
        "STRING": lambda part: part,
        "ARRAY<STRING>": lambda part: pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), part),
        "ROW<a STRING>": lambda part: pa.StructArray.from_arrays([part], ["a"]),
        "MAP<INT, STRING>": lambda part: pa.MapArray.from_arrays(pa.array([0, 1], pa.int32()), pa.array([1]), part),
    }
    row = shapes[kind](texts)
    written = pa.table({"k": pa.chunked_array([row] * rows)})
    if file_format == "orc":
        orc.write_table(written, path, compression="zstd", dictionary_key_size_threshold=1.0, stripe_size=1 << 31)
        assert orc.ORCFile(path).nstripes == 1
    else:
        with pq.ParquetWriter(
            path, written.schema, compression="zstd", dictionary_pagesize_limit=8 * MIB, store_schema=False
        ) as writer:
            writer.write_table(written, row_group_size=rows)
    assert path.stat().st_size < MIB
    set_row_count(root, rows)
    peak, _, found, message = read(tmp_path, root)
    assert (message, found) == ("", rows)
    assert peak < 512


def test_a_value_of_a_megabyte_that_each_row_repeats(tmp_path: Path) -> None:
    """Every row is valid, and together they are 1 GiB, by delta encoding. They are returned a few at a time."""
    root = table_of(tmp_path, "t", "parquet", "STRING")
    path = find_file(root, "bucket-0/*")
    rows, few = 1024, pa.table({"k": ["x" * MIB] * 64})
    how = {"compression": "zstd", "use_dictionary": False, "column_encoding": {"k": "DELTA_BYTE_ARRAY"}}
    pq.write_table(pa.concat_tables([few] * (rows // 64)), path, row_group_size=rows, **how)
    assert path.stat().st_size < 4 * MIB
    set_row_count(root, rows)
    peak, _, found, message = read(tmp_path, root)
    assert (message, found) == ("", rows)
    assert peak < 512  # the default budget


def test_single_values_of_fifty_megabytes_are_read(tmp_path: Path) -> None:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("d")
    made = catalog.create_table("d.t", "k STRING, n INT", options={"write-only": "true"})
    value = "y" * 50_000_000
    made.write({"k": [value, "short", value, None], "n": [1, 2, 3, 4]})
    assert [b.num_rows for b in made.scan().to_batches()] == [2, 2]  # a batch takes a quarter of the budget
    assert made.scan(where="n = 3").to_arrow()["k"].to_pylist() == [value]


def test_true_tables_of_that_size_are_read(tmp_path: Path) -> None:
    """Valid files with the highest possible repetition. No limit refuses them."""
    catalog = paimon.connect(tmp_path)
    catalog.create_database("d")
    rows = 600_000
    for file_format in ("parquet", "orc", "avro"):
        options = {"file.format": file_format, "write-only": "true"}
        table = catalog.create_table(f"d.{file_format}", "a BIGINT, b BOOLEAN, s STRING", options=options)
        text = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array(["x" * 40])).cast("string")
        table.write(pa.table({"a": np.zeros(rows, np.int64), "b": np.zeros(rows, bool), "s": text}))
        assert sum(b.num_rows for b in table.scan().to_batches()) == rows
