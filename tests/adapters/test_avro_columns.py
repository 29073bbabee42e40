"""Decoding manifests in step equals decoding them record by record, also where bytes are wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from paimon.adapters.formats.records import AvroRecordIO
from paimon.domain.errors import CorruptTable, Unsupported
from paimon.domain.manifest.avro_schema import MANIFEST_ENTRY, MANIFEST_LIST
from paimon.domain.manifest.codec import entry_to_record
from paimon.domain.manifest.columns import ENTRY_TYPE, arrow_of
from paimon.domain.manifest.entries import DataFileMeta, FileKind, FileSource, ManifestEntry
from paimon.domain.manifest.records.columns import RecordColumns
from paimon.domain.row.binary_row import serialize
from paimon.domain.stats.simple_stats import SimpleStats
from paimon.domain.types.data_types import IntType

RECORDS = AvroRecordIO(few_bytes=-1)
WAYS = pytest.mark.parametrize("records", [RECORDS, AvroRecordIO()], ids=["in step", "few bytes"])
ROWS = st.lists(st.none() | st.integers(-9, 9), max_size=5).map(lambda v: serialize(v, [IntType()] * len(v)))
LONGS = st.sampled_from([0, 1, -1, 63, 64, -64, -65, 8191, 8192, 2**34, 2**55, 2**56, 2**62, 2**63 - 1, -(2**63)])
STATS = st.builds(SimpleStats, ROWS, ROWS, st.lists(st.none() | LONGS, max_size=4).map(tuple))
NAMES = st.lists(st.text(max_size=9), max_size=3).map(tuple)
FILES = st.builds(
    DataFileMeta, st.text(max_size=90), LONGS, LONGS, ROWS, ROWS, STATS, STATS, LONGS, LONGS, LONGS,
    st.integers(0, 9), NAMES, st.none() | LONGS, st.none() | LONGS, st.none() | st.binary(max_size=300),
    st.none() | st.sampled_from(FileSource), st.none() | NAMES, st.none() | st.text(max_size=9), st.none() | LONGS,
    st.none() | NAMES,
)  # fmt: skip
ENTRIES = st.lists(
    st.builds(ManifestEntry, st.sampled_from(FileKind), ROWS, st.integers(-2, 300), st.integers(-2, 300), FILES),
    max_size=6,
)


def written(entries: list[ManifestEntry], codec: str = "zstd") -> bytes:
    return RECORDS.write_records([entry_to_record(e) for e in entries], MANIFEST_ENTRY, codec, "avro")


def all_of(records: RecordColumns) -> pa.StructArray:
    return records.take(np.arange(len(records)))


def row_wise(data: bytes, kind: pa.StructType) -> pa.StructArray:
    return pa.array(RECORDS.read_records(data, "m"), kind)


@WAYS
@settings(max_examples=40, deadline=None)
@given(files=st.lists(ENTRIES, max_size=4), codec=st.sampled_from(["zstd", "null"]))
def test_in_step_equals_record_by_record(
    records: AvroRecordIO, files: list[list[ManifestEntry]], codec: str
) -> None:
    data = [written(entries, codec) for entries in files]
    found, counts = records.read_columns([(f"m{i}", d) for i, d in enumerate(data)], ENTRY_TYPE)
    assert list(counts) == [len(entries) for entries in files]
    assert all_of(found).to_pylist() == [record for d in data for record in row_wise(d, ENTRY_TYPE).to_pylist()]


def outcome(read: Any) -> object:
    try:
        return read().to_pylist()
    except (CorruptTable, Unsupported):
        return "refused"
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return "refused"  # row by row, the array is built by this test


@WAYS
@settings(max_examples=60, deadline=None)
@given(entries=ENTRIES.filter(bool), data=st.data())
@example(entries=[ManifestEntry(FileKind.ADD, bytes(12), 0, 1, DataFileMeta("f", 1, 1))], data=None)
def test_wrong_bytes_mean_the_same_both_ways(
    records: AvroRecordIO, entries: list[ManifestEntry], data: st.DataObject | None
) -> None:
    whole = bytearray(written(entries, "null"))
    begin = whole.index(b"\0", whole.index(b"avro.codec")) + 17
    if data is not None:
        for place in data.draw(st.lists(st.integers(begin, len(whole) - 17), min_size=1, max_size=3)):
            whole[place] = data.draw(st.integers(0, 255))
    mutated = bytes(whole)
    columnar = outcome(lambda: all_of(records.read_columns([("m", mutated)], ENTRY_TYPE)[0]))
    assert columnar == outcome(lambda: row_wise(mutated, ENTRY_TYPE))


def test_other_records_and_other_formats_take_the_row_wise_way() -> None:
    kind = arrow_of(MANIFEST_LIST)
    assert all_of(RECORDS.read_columns([], kind)[0]).type == kind
    entry = ManifestEntry(FileKind.ADD, bytes(12), 0, 1, DataFileMeta("f", 1, 1))
    parquet = RECORDS.write_records([entry_to_record(entry)], MANIFEST_ENTRY, "zstd", "parquet")
    found, counts = RECORDS.read_columns([("p", parquet), ("a", written([entry, entry]))], ENTRY_TYPE)
    assert list(counts) == [1, 2]
    assert [r["_FILE"]["_FILE_NAME"] for r in all_of(found).to_pylist()] == ["f", "f", "f"]


def test_the_file_at_fault_is_told_among_few() -> None:
    entry = entry_to_record(ManifestEntry(FileKind.ADD, bytes(12), 0, 1, DataFileMeta("f", 1, 1)))
    schema = {**MANIFEST_ENTRY, "fields": [{**f, "type": "string"} if f["name"] == "_KIND" else f
                                           for f in MANIFEST_ENTRY["fields"]]}  # fmt: skip
    bad = RECORDS.write_records([{**entry, "_KIND": "add"}], schema, "null", "avro")
    with pytest.raises(CorruptTable, match="second"):
        AvroRecordIO().read_columns([("first", written([])), ("second", bad)], ENTRY_TYPE)
