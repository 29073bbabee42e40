"""Decoding manifests as columns equals decoding them record by record, also for damaged bytes."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from attrs import evolve
from hypothesis import example, given, settings
from hypothesis import strategies as st

from paimon.adapters.formats import records as formats_records
from paimon.adapters.formats.avro.column_decoder import manifest_columns
from paimon.adapters.formats.avro.container import (
    SYNC_BYTES,
    Block,
    encode_header,
    pack_block,
    read_blocks,
    read_header,
)
from paimon.adapters.formats.avro.records import encode_block
from paimon.adapters.formats.records import AvroRecordIO
from paimon.adapters.formats.varints import encode_zigzag
from paimon.domain.errors import CorruptTable, Unsupported
from paimon.domain.manifest.avro_schema import MANIFEST_ENTRY, MANIFEST_LIST
from paimon.domain.manifest.entries import DataFileMeta, FileKind, FileSource, ManifestEntry
from paimon.domain.manifest.entry_codec import entry_to_record
from paimon.domain.manifest.entry_columns import ENTRY_TYPE, arrow_of
from paimon.domain.manifest.record_columns import PickedRecords, RecordColumns, SlicedColumns, join_records
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


def write_entries(entries: list[ManifestEntry], codec: str = "zstd") -> bytes:
    return RECORDS.write_records([entry_to_record(e) for e in entries], MANIFEST_ENTRY, codec, "avro")


def all_of(records: RecordColumns) -> pa.StructArray:
    return records.take(np.arange(len(records)))


def row_wise(data: bytes, kind: pa.StructType) -> pa.StructArray:
    return pa.array(RECORDS.read_records(data, "m"), kind)


@WAYS
@settings(max_examples=40, deadline=None)
@given(files=st.lists(ENTRIES, max_size=4), codec=st.sampled_from(["zstd", "null"]))
def test_in_step_equals_record_by_record(records: AvroRecordIO, files: list[list[ManifestEntry]], codec: str) -> None:
    data = [write_entries(entries, codec) for entries in files]
    found, counts = records.read_columns([(f"m{i}", d) for i, d in enumerate(data)], ENTRY_TYPE)
    assert list(counts) == [len(entries) for entries in files]
    assert all_of(found).to_pylist() == [record for d in data for record in row_wise(d, ENTRY_TYPE).to_pylist()]


@WAYS
@pytest.mark.parametrize("format_name", ["avro", "parquet"])
@settings(max_examples=20, deadline=None)
@given(files=st.lists(ENTRIES, min_size=1, max_size=4), data=st.data())
def test_picked_records_are_written_as_they_were(
    records: AvroRecordIO, format_name: str, files: list[list[ManifestEntry]], data: st.DataObject
) -> None:
    entries = [entry for part in files for entry in part]
    stored = [(f"m{i}", write_entries(part)) for i, part in enumerate(files)]
    whole = [records.read_columns([file], ENTRY_TYPE)[0] for file in stored]
    found = data.draw(st.sampled_from([join_records(whole, ENTRY_TYPE), records.read_columns(stored, ENTRY_TYPE)[0]]))
    start = data.draw(st.integers(0, len(entries)))
    rows = data.draw(st.permutations(range(len(entries) - start)))[: data.draw(st.integers(0, 9))]
    sliced = SlicedColumns(found, start, len(entries))
    for path in (("_KIND",), ("_FILE", "_FILE_NAME"), ("_FILE", "_VALUE_STATS"), ("_FILE", "_WRITE_COLS")):
        ascending = np.sort(np.array(rows, np.int64))
        assert sliced.select(ascending, *path).equals(sliced.column(*path).take(pa.array(ascending)))
    picked = PickedRecords(sliced, np.array(rows, np.int64))
    written = records.write_records(picked, MANIFEST_ENTRY, "zstd", format_name)
    expected = [entry_to_record(entries[start + row]) for row in rows]
    assert list(map(dict, picked)) == expected
    assert records.read_records(written, "m") == expected


def test_records_of_another_schema_are_encoded() -> None:
    """Those of a writer that lacks a column, as that of an older release; blocks stay small."""
    old = json.loads(json.dumps(MANIFEST_ENTRY))
    old["fields"][-1]["type"]["fields"].pop()
    names = ["x" * 5_000 + str(number) for number in range(700)]
    entries = [ManifestEntry(FileKind.ADD, bytes(12), 0, 1, DataFileMeta(name, 1, 1)) for name in names]
    for schema in (old, MANIFEST_ENTRY):
        data = RECORDS.write_records(map(entry_to_record, entries), schema, "null", "avro")
        found, _ = RECORDS.read_columns([("m", data)], ENTRY_TYPE)
        assert (found.encoded(MANIFEST_ENTRY) is None) == (schema is old)
        copied = RECORDS.write_records(PickedRecords(found, np.arange(700)[::-1]), MANIFEST_ENTRY, "null", "avro")
        assert RECORDS.read_records(copied, "m") == [entry_to_record(e) for e in reversed(entries)]
        source = pa.BufferReader(copied)
        blocks = list(read_blocks(source, read_header(source, "m"), "m", len(copied)))
        assert max(len(block.data) for block in blocks) <= 2**20 and max(b.record_count for b in blocks) <= 256


def test_only_picked_records_of_another_schema_are_encoded(monkeypatch: pytest.MonkeyPatch) -> None:
    old = json.loads(json.dumps(MANIFEST_ENTRY))
    old["fields"][-1]["type"]["fields"].pop()
    entries = [ManifestEntry(FileKind.ADD, bytes(12), 0, 1, DataFileMeta(f"{n}" * 999, 1, 1)) for n in range(40)]
    parts = [(old, entries[:20]), (MANIFEST_ENTRY, entries[20:])]
    files = [RECORDS.write_records(map(entry_to_record, part), schema, "null", "avro") for schema, part in parts]
    found, _ = RECORDS.read_columns([("m", data) for data in files], ENTRY_TYPE)
    encoded = []
    monkeypatch.setattr(formats_records, "encode_block", lambda *given: encoded.append(given) or encode_block(*given))
    rows = np.array([30, 2, 25, 17, 3])
    for records, picked in ((found, rows), (SlicedColumns(found, 2, 40), rows - 2)):
        encoded.clear()
        copied = RECORDS.write_records(PickedRecords(records, picked), MANIFEST_ENTRY, "null", "avro")
        assert RECORDS.read_records(copied, "m") == [entry_to_record(entries[row]) for row in rows]
        assert len(encoded) == 3


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
    whole = bytearray(write_entries(entries, "null"))
    begin = whole.index(b"\0", whole.index(b"avro.codec")) + 17
    if data is not None:
        for place in data.draw(st.lists(st.integers(begin, len(whole) - 17), min_size=1, max_size=3)):
            whole[place] = data.draw(st.integers(0, 255))
    mutated = bytes(whole)
    columnar = outcome(lambda: all_of(records.read_columns([("m", mutated)], ENTRY_TYPE)[0]))
    assert columnar == outcome(lambda: row_wise(mutated, ENTRY_TYPE))


def test_other_records_and_formats_are_decoded_row_wise() -> None:
    kind = arrow_of(MANIFEST_LIST)
    assert all_of(RECORDS.read_columns([], kind)[0]).type == kind
    entry = ManifestEntry(FileKind.ADD, bytes(12), 0, 1, DataFileMeta("f", 1, 1))
    parquet = RECORDS.write_records([entry_to_record(entry)], MANIFEST_ENTRY, "zstd", "parquet")
    found, counts = RECORDS.read_columns([("p", parquet), ("a", write_entries([entry, entry]))], ENTRY_TYPE)
    assert list(counts) == [1, 2]
    assert [r["_FILE"]["_FILE_NAME"] for r in all_of(found).to_pylist()] == ["f", "f", "f"]


def test_the_damaged_file_is_named_among_several() -> None:
    entry = entry_to_record(ManifestEntry(FileKind.ADD, bytes(12), 0, 1, DataFileMeta("f", 1, 1)))
    schema = {**MANIFEST_ENTRY, "fields": [{**f, "type": "string"} if f["name"] == "_KIND" else f
                                           for f in MANIFEST_ENTRY["fields"]]}  # fmt: skip
    bad = RECORDS.write_records([{**entry, "_KIND": "add"}], schema, "null", "avro")
    with pytest.raises(CorruptTable, match="second"):
        AvroRecordIO().read_columns([("first", write_entries([])), ("second", bad)], ENTRY_TYPE)


def manifest_of(block: Block) -> bytes:
    header = encode_header(json.dumps(MANIFEST_ENTRY), "null")
    return header + pack_block(block, "null", header[-SYNC_BYTES:])


def entry_bytes(**changes: Any) -> bytes:
    entry = ManifestEntry(FileKind.ADD, bytes(12), 0, 1, evolve(DataFileMeta("name", 1, 1), **changes))
    whole = write_entries([entry], "null")
    source = pa.BufferReader(whole)
    return next(read_blocks(source, read_header(source, "m"), "m", len(whole))).data


ENTRY = entry_bytes()
EXTRA_FILES = entry_bytes(extra_files=("",) * 9)
PLACES = {
    "length of a name": (ENTRY, encode_zigzag(4) + b"name", b"name"),
    "count of a list": (EXTRA_FILES, encode_zigzag(9) + bytes(9), bytes(9)),
}


@pytest.mark.parametrize("number", [2**63 - 1, 2**63 - 20, 2**62, 2**31, -1, -20, -(2**62), -(2**63)])
@pytest.mark.parametrize(("entry", "found", "rest"), PLACES.values(), ids=PLACES)
def test_lengths_beyond_the_data_mean_the_same_both_ways(entry: bytes, found: bytes, rest: bytes, number: int) -> None:
    assert entry.count(found) == 1
    for tail in (b"", rest, bytes(9) + rest):
        odd = entry.replace(found, encode_zigzag(number) + tail)
        for block in (Block(1, odd), Block(3, entry + odd + entry)):
            data = manifest_of(block)
            columnar = outcome(lambda data=data: all_of(RECORDS.read_columns([("m", data)], ENTRY_TYPE)[0]))
            assert columnar == outcome(lambda data=data: row_wise(data, ENTRY_TYPE))


@pytest.mark.parametrize("data", [b"\1", ENTRY])
def test_data_of_no_records_is_corrupt(data: bytes) -> None:
    with pytest.raises(CorruptTable):
        all_of(RECORDS.read_columns([("m", manifest_of(Block(0, data)))], ENTRY_TYPE)[0])


def test_lists_of_many_blocks_take_bounded_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step decodes one item of each list, so a list of many blocks needs one step for each item."""
    _, found, _ = PLACES["count of a list"]
    blocks = (encode_zigzag(9000) + bytes(9000)) * 5
    data = manifest_of(Block(1, EXTRA_FILES.replace(found, blocks)))
    steps = 0
    decoded = manifest_columns._decode_node

    def count_and_decode(*arguments: Any) -> Any:
        nonlocal steps
        steps += 1
        return decoded(*arguments)

    monkeypatch.setattr(manifest_columns, "_decode_node", count_and_decode)
    records, _ = RECORDS.read_columns([("m", data)], ENTRY_TYPE)
    assert len(all_of(records)[0]["_FILE"]["_EXTRA_FILES"]) == 45_000
    assert steps < 3 * manifest_columns._MAX_ITEMS
