"""Small files that stand for gigabytes: read in a process of their own, whose memory is measured.

A limit refuses them, or they are read piece by piece.
"""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path

import cramjam
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from restructured import avro_file, avro_records, sized_again

import paimon
from paimon.adapters.formats.avro.container import header_bytes, long_bytes

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
before, begun, rows = peak(), time.process_time(), 0
try:
    for batch in table.scan(columns=["k"]).to_batches():
        rows += batch.num_rows
    said = ""
except PaimonError as error:
    said = type(error).__name__ + ": " + str(error)
print(json.dumps([peak() - before, time.process_time() - begun, rows, said]))
"""


def table_of(home: Path, name: str, file_format: str) -> Path:
    catalog = paimon.connect(home)
    catalog.create_database("d", exist_ok=True)
    table = catalog.create_table(f"d.{name}", "k BIGINT", options={"file.format": file_format, "write-only": "true"})
    table.write({"k": [1, 2, 3]})
    return home / "d.db" / name


def one(root: Path, pattern: str) -> Path:
    (path,) = (p for p in root.glob(pattern) if not p.name.startswith("manifest-list"))
    return path


@cache
def zeros(count: int) -> bytes:
    """So many zeros, packed."""
    return bytes(cramjam.zstd.compress(bytes(count), 1))


def bomb(record: object, count: int) -> bytes:
    """An Avro file of one block of zeros."""
    head = header_bytes(json.dumps(record), "zstandard")
    packed = zeros(count)
    return head + long_bytes(count) + long_bytes(len(packed)) + packed + head[-16:]


def told(root: Path, rows: int | None = None) -> None:
    """Manifest, lists and snapshot say the size of the data file as it is, and these rows."""
    path = one(root, "manifest/manifest-*")
    schema, records = avro_records(path.read_bytes())
    for record in records:
        file = record["_FILE"]
        file["_FILE_SIZE"] = (root / "bucket-0" / file["_FILE_NAME"]).stat().st_size
        file["_ROW_COUNT"] = rows or file["_ROW_COUNT"]
    path.write_bytes(avro_file(schema, records))
    sized_again(root)


def read(home: Path, root: Path) -> tuple[int, float, int, str]:
    """Mebibytes at the peak above those of a sound read, CPU seconds, rows, and the error."""
    sound = home / "d.db" / "sound"
    if not sound.exists():
        table_of(home, "sound", "parquet")
    done = subprocess.run(
        [sys.executable, "-c", READ, str(root), str(sound)], capture_output=True, text=True, check=True, timeout=120
    )
    peak, seconds, rows, said = json.loads(done.stdout)
    return peak, seconds, rows, said


TEXTS = {"type": "record", "name": "record", "fields": [{"name": "k", "type": "bytes"}]}
NUMBERS = {"type": "record", "name": "record", "fields": [{"name": "k", "type": ["null", "long"]}]}
LISTS = {"type": "record", "name": "r", "fields": [{"name": "k", "type": {"type": "array", "items": "long"}}]}


@pytest.mark.parametrize(
    ("kind", "record"),
    [("manifest", TEXTS), ("manifest", NUMBERS), ("manifest list", TEXTS), ("data file", TEXTS), ("data file", LISTS)],
)
def test_an_avro_file_of_kilobytes_that_stands_for_820_mib(tmp_path: Path, kind: str, record: object) -> None:
    root = table_of(tmp_path, "t", "avro")
    data = bomb(record, 820 * MIB)
    assert len(data) < 100_000
    pattern = {"manifest": "manifest/manifest-*", "manifest list": "manifest/manifest-list-*-1"}
    path = one(root, "bucket-0/*") if kind == "data file" else sorted(root.glob(pattern[kind]))[0]
    path.write_bytes(data)
    if kind == "data file":
        told(root)
    sized_again(root)
    peak, seconds, _, said = read(tmp_path, root)
    assert said.startswith("CorruptTable")
    assert path.name in said
    assert peak < 100
    assert seconds < 5


def test_a_parquet_file_of_kilobytes_that_stands_for_a_billion_values(tmp_path: Path) -> None:
    root = table_of(tmp_path, "t", "parquet")
    path = one(root, "bucket-0/*")
    rows = 30_000_000
    ones = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array([7], pa.int64()))
    pq.write_table(pa.table({"k": ones}), path, compression="zstd", row_group_size=rows, store_schema=False)
    assert path.stat().st_size < 400_000
    told(root)
    peak, seconds, _, said = read(tmp_path, root)
    assert "are said of it" in said
    assert (peak < 100, seconds < 5) == (True, True)
    told(root, rows)
    peak, seconds, found, said = read(tmp_path, root)
    assert (said, found) == ("", rows)  # what the table says that it holds, a batch after the other
    assert peak < 100


def test_true_tables_of_that_size_are_read(tmp_path: Path) -> None:
    """Sound files whose values repeat as much as values can: no limit is in their way."""
    catalog = paimon.connect(tmp_path)
    catalog.create_database("d")
    rows = 600_000
    for file_format in ("parquet", "orc", "avro"):
        options = {"file.format": file_format, "write-only": "true"}
        table = catalog.create_table(f"d.{file_format}", "a BIGINT, b BOOLEAN, s STRING", options=options)
        text = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array(["x" * 40])).cast("string")
        table.write(pa.table({"a": np.zeros(rows, np.int64), "b": np.zeros(rows, bool), "s": text}))
        assert sum(b.num_rows for b in table.scan().to_batches()) == rows
