"""Every kind of stored file has limits: deep, long or huge content and large declared sizes are refused quickly."""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import cramjam
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from support.case_lists import mark_products

from paimon.adapters.formats.avro import AvroFormat
from paimon.adapters.formats.avro.container import encode_header
from paimon.adapters.formats.guards.orc_stripes import check_stripe, check_types
from paimon.adapters.formats.guards.orc_tail import OrcTail, decompress_section, unpack_numbers
from paimon.adapters.formats.orc import OrcFormat
from paimon.adapters.formats.protobuf import BYTES, VARINT, Malformed, Part, decode, encode
from paimon.adapters.formats.records import AvroRecordIO
from paimon.adapters.formats.varints import encode_zigzag
from paimon.domain.commit.message_codec import decode as decode_messages
from paimon.domain.deletion.vector import MAGIC_64, decode_vector
from paimon.domain.errors import CorruptTable, PaimonError
from paimon.domain.json_text import DETAIL_FILE, SCHEMA_FILE, SNAPSHOT_FILE, STATISTICS_FILE, DocumentKind, load_object
from paimon.domain.manifest.avro_schema import MANIFEST_ENTRY
from paimon.domain.manifest.entry_columns import ENTRY_TYPE
from paimon.domain.row import binary_row
from paimon.domain.schema.table_schema import schema_from_json
from paimon.domain.snapshot.snapshot import parse_hint, snapshot_from_json, tag_from_json
from paimon.domain.types.data_types import ArrayType, IntType, RowType, VarCharType
from paimon.domain.types.ddl import parse_columns
from paimon.domain.types.type_text import parse_type
from paimon.ports.formats import ReadRequest

SECONDS = 3.0
RECORDS = AvroRecordIO()
COLUMN = parse_columns("a BOOLEAN NOT NULL")
SNAPSHOT = {
    "version": 3,
    "id": 1,
    "schemaId": 0,
    "baseManifestList": "a",
    "deltaManifestList": "b",
    "commitUser": "u",
    "commitIdentifier": 1,
    "commitKind": "APPEND",
    "timeMillis": 0,
}
FIELD = {"id": 0, "name": "a", "type": "INT"}
SCHEMA = {"version": 3, "id": 0, "fields": [FIELD], "highestFieldId": 0, "partitionKeys": [], "primaryKeys": []}


def nest(depth: int, open_: str, close: str, inner: str = "1") -> bytes:
    return (open_ * depth + inner + close * depth).encode()


HOSTILE_MEMBERS = {
    "deep list": nest(500, "[", "]"),
    "deeper list": nest(100_000, "[", "]"),
    "deep object": nest(500, '{"a":', "}"),
    "deeper object": nest(100_000, '{"a":', "}"),
    "long integer": b"9" * 3_000_000,
    "long fraction": b"0." + b"9" * 3_000_000,
    "huge exponent": b"1e99999999999999999999",
    "NaN": b"NaN",
    "Infinity": b"-Infinity",
    "half a surrogate": b'"\\ud800"',
}
HOSTILE_NUMBERS = {"1e400": b"1e400", "10**30": b"1" + b"0" * 30, "negative": b"-1", "text": b'"1"', "true": b"true"}


def json_readers() -> dict[str, tuple[Callable[[bytes], object], dict[str, Any], str]]:
    """By kind of file: its reader, a valid file, and a member that must be a number."""
    return {
        "snapshot and changelog": (lambda data: snapshot_from_json(data, "f-7"), SNAPSHOT, "id"),
        "tag": (lambda data: tag_from_json("t", data, "f-7"), SNAPSHOT, "id"),
        "schema": (lambda data: schema_from_json(data, "f-7"), SCHEMA, "highestFieldId"),
        "consumer": (lambda d: load_object(d, "f-7").integer("nextSnapshot", 1), {"nextSnapshot": 3}, "nextSnapshot"),
    }


@pytest.mark.parametrize(("damage", "kind"), mark_products([*HOSTILE_MEMBERS, *HOSTILE_NUMBERS], json_readers()))
def test_json_files_have_limits(kind: str, damage: str) -> None:
    read, sound, member = json_readers()[kind]
    read(json.dumps(sound).encode())
    values = {**sound, "stranger" if damage in HOSTILE_MEMBERS else member: "HERE"}
    data = json.dumps(values).encode().replace(b'"HERE"', (HOSTILE_MEMBERS | HOSTILE_NUMBERS)[damage])
    if (kind, damage) == ("schema", "negative"):
        data = data.replace(b"-1", b"-2")  # a schema without columns has the highest id -1
    check_refused(lambda: read(data), "f-7")


KINDS = (SCHEMA_FILE, SNAPSHOT_FILE, STATISTICS_FILE, DETAIL_FILE)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_huge_json_file_is_refused_before_it_is_parsed(kind: DocumentKind) -> None:
    error_text = check_refused(lambda: load_object(b'{"a":' + b" " * kind.max_bytes + b"1}", "f-7", kind), "f-7")
    assert str(kind.max_bytes) in error_text
    load_object(b'{"a":' + b" " * (kind.max_bytes - 7) + b"1}", "f-7", kind)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_json_has_no_more_values_than_its_kind_may_have(kind: DocumentKind) -> None:
    """Ten million `[]` fit into the bytes of a schema, and need a gibibyte of memory."""
    error_text = check_refused(lambda: load_object(b'{"a":[' + b"1," * kind.max_values + b"1]}", "f-7", kind), "f-7")
    assert f"the limit of a {kind.name} file is {kind.max_values}" in error_text
    load_object(b'{"a":[' + b"1," * (kind.max_values - 2) + b"1]}", "f-7", kind)


def test_json_of_statistics_is_flat() -> None:
    check_refused(lambda: load_object(b'{"a":' * 17 + b"1" + b"}" * 17, "f-7", STATISTICS_FILE), "nest deeper")
    load_object(b'{"a":' * 15 + b"1" + b"}" * 15, "f-7", STATISTICS_FILE)


@pytest.mark.parametrize(
    ("text", "is_sound"),
    [(r"\ud83d\ude00", True), (r"\uD83D\uDE00\uD83D\uDE00", True), (r"\\ud800", True), (r"\\\\ud800", True)]
    + [(r"\ud800", False), (r"\udc00", False), (r"\ud800\\\udc00", False), (r"\ud83d\ude00\ude00", False)]
    + [(r"\ud83d\ud83d\ude00", False), (r"\\\ud800", False), (r"\ud800x", False), (r"a\u00e4\n", True)],
)
def test_escapes_make_valid_unicode(text: str, is_sound: bool) -> None:
    data = b'{"a": "' + text.encode() + b'"}'
    if is_sound:
        load_object(data, "f")
        json.dumps(json.loads(data), ensure_ascii=False).encode()
        return
    check_refused(lambda: load_object(data, "f-7"), "f-7")
    with pytest.raises(UnicodeEncodeError):
        json.dumps(json.loads(data), ensure_ascii=False).encode()


def test_the_last_of_two_equal_members_counts_as_in_java() -> None:
    assert load_object(b'{"a": 1, "a": 2}', "f").integer("a") == 2


def test_every_read_document_can_be_written() -> None:
    for depth in (1, 150, 199):
        data = b'{"a":' * depth + b"1" + b"}" * depth
        assert load_object(data, "f").values


def test_hints_are_small_numbers_or_ignored() -> None:
    for text in (b"", b"-1", b"0", b"1e5", b"9" * 10_000_000, b"\xff", "٣".encode(), b"1\n2"):
        assert parse_hint(text) is None
    assert parse_hint(b"12\n") == 12


@pytest.mark.parametrize(
    "text",
    ["ROW<a " * 10_000 + "INT" + ">" * 10_000, "ARRAY<" * 10_000, "X" * 1_000_000, "INT " * 20_000, "'" * 99_999]
    + ["DECIMAL(" + "9" * 100_000 + ")", "`" * 99_999, "CHAR(" + " " * 100_000],
    ids=["rows", "arrays", "word", "words", "quotes", "digits", "back quotes", "blanks"],
)
def test_types_as_text_have_limits(text: str) -> None:
    message = check_refused(lambda: parse_type(text))
    assert len(message) < 5_000


def test_types_are_read_in_time_proportional_to_their_text() -> None:
    def seconds(columns: int) -> float:
        text = "ROW<" + ", ".join(f"column_{i} VARCHAR({i + 1}) NOT NULL" for i in range(columns)) + ">"
        started = time.process_time()
        parse_type(text)
        return time.process_time() - started

    assert min(seconds(8_000) for _ in range(3)) < 12 * max(min(seconds(2_000) for _ in range(3)), 0.02)


def avro(schema: Any, blocks: list[tuple[int, bytes]], codec: str = "zstandard") -> bytes:
    head = encode_header(schema if isinstance(schema, str) else json.dumps(schema), codec)
    return head + b"".join(encode_zigzag(count) + encode_zigzag(len(p)) + p + head[-16:] for count, p in blocks)


def record(*fields: Any) -> dict[str, Any]:
    return {"type": "record", "name": "top", "fields": [{"name": f"f{i}", "type": t} for i, t in enumerate(fields)]}


def make_doubling_record(leaf: str) -> dict[str, Any]:
    """Thirty records. Each contains the previous one twice."""
    parts: list[Any] = [{"type": "record", "name": "r0", "fields": [{"name": "n", "type": leaf}]}]
    for i in range(1, 31):
        twice = [{"name": name, "type": f"r{i - 1}"} for name in "pq"]
        parts.append({"type": "record", "name": f"r{i}", "fields": twice})
    return record("boolean", *parts)


def zeros(count: int) -> bytes:
    return bytes(cramjam.zstd.compress(bytes(count), 3))


MILLION = 1 << 20
ONE, INTS = record("boolean"), record({"type": "array", "items": "int"})
FIXED = {"type": "fixed", "name": "x"}
AVRO_BOMBS: dict[str, Callable[[], bytes]] = {
    "a block of 820 MiB": lambda: avro(ONE, [(820 * MILLION, zeros(820 * MILLION))]),
    "small records": lambda: avro(ONE, [(4 * MILLION, zeros(4 * MILLION))]),
    "records of nulls": lambda: avro(record("boolean", *["null"] * 2000), [(MILLION, zeros(MILLION))]),
    "doubling nulls": lambda: avro(make_doubling_record("null"), [(1, b"\0" * 10)], "null"),
    "doubling numbers": lambda: avro(make_doubling_record("int"), [(1, b"\0" * 10)], "null"),
    "a fixed of -1 bytes": lambda: avro(record({**FIXED, "size": -1}), [(1, bytes(10))], "null"),
    "a fixed of 10**12 bytes": lambda: avro(record({**FIXED, "size": 10**12}), [(1, bytes(99))], "null"),
    "a deep schema": lambda: avro('{"type":"array","items":' * 100_000 + '"int"' + "}" * 100_000, [], "null"),
    "deep types": lambda: avro(record(json.loads('{"type":"array","items":' * 40 + '"int"' + "}" * 40)), [], "null"),
    "2**62 items": lambda: avro(INTS, [(1, encode_zigzag(2**62) + bytes(99))], "null"),
    "-2**62 items": lambda: avro(INTS, [(1, encode_zigzag(-(2**62)) + bytes(99))], "null"),
    "2**62 characters": lambda: avro(record("string"), [(1, encode_zigzag(2**62) + bytes(99))], "null"),
    "2**62 records": lambda: avro(ONE, [(2**62, bytes(99))], "null"),
    "a size of 2**62": lambda: avro(ONE, [], "null") + encode_zigzag(1) + encode_zigzag(2**62),
    "an unknown codec": lambda: avro(ONE, [(1, b"\0")], "lz9"),
}
LIKE_ENTRIES = b"\x04\0\x18\0\0\0" * 300_000
"""What begins like an entry at every sixth byte."""


@pytest.mark.parametrize("name", AVRO_BOMBS)
def test_avro_files_have_limits(name: str) -> None:
    data = AVRO_BOMBS[name]()
    check_refused(lambda: RECORDS.read_records(data, "f-7"), "f-7")
    check_refused(lambda: RECORDS.read_columns([("f-7", data)], ENTRY_TYPE), "f-7")
    check_refused(lambda: list(AvroFormat().read(pa.BufferReader(data), ReadRequest("f-7", COLUMN))), "f-7")


def test_bytes_that_look_like_entries_take_no_more_than_their_share() -> None:
    packed_entries = bytes(cramjam.zstd.compress(LIKE_ENTRIES, 3))
    data = avro(MANIFEST_ENTRY, [(len(LIKE_ENTRIES) // 24, packed_entries)])
    check_refused(lambda: RECORDS.read_columns([("f-7", data)], ENTRY_TYPE), "f-7")


def repeated_text(file_format: str) -> bytes:
    """A file of some kilobytes with 1,536 rows, each of which contains the same megabyte."""
    sink = pa.BufferOutputStream()
    table = pa.table({"_FILE_NAME": pa.chunked_array([pa.array(["x" * MILLION])] * 1536)})
    if file_format == "orc":
        orc.write_table(table, sink, compression="zstd", dictionary_key_size_threshold=1.0, stripe_size=1 << 31)
    else:
        with pq.ParquetWriter(
            sink, table.schema, compression="zstd", dictionary_pagesize_limit=8 * MILLION, store_schema=False
        ) as writer:
            writer.write_table(table, row_group_size=1536)
    return bytes(sink.getvalue().to_pybytes())


@pytest.mark.parametrize("file_format", ["parquet", "orc"])
def test_manifests_in_parquet_and_orc_have_limits(file_format: str) -> None:
    data = repeated_text(file_format)
    assert len(data) < MILLION
    before = pa.default_memory_pool().max_memory()
    error_text = check_refused(lambda: RECORDS.read_records(data, "f-7"), "f-7")
    assert "decode" in error_text or "decompress" in error_text
    assert pa.default_memory_pool().max_memory() - before < 64 * MILLION


@pytest.mark.parametrize("file_format", ["parquet", "orc"])
def test_manifests_in_parquet_and_orc_of_many_entries_are_read(file_format: str) -> None:
    records = [{"_VERSION": 2, "_FILE_NAME": f"data-{i:032x}", "_ROW_COUNT": 7} for i in range(20_000)]
    fields = [("_VERSION", "int"), ("_FILE_NAME", "string"), ("_ROW_COUNT", "long")]
    schema = {"type": "record", "name": "r", "fields": [{"name": n, "type": t} for n, t in fields]}
    data = RECORDS.write_records(records, schema, "zstd", file_format)
    assert list(RECORDS.read_records(data, "f")) == records


def test_orc_tails_have_limits() -> None:
    with pytest.raises(Malformed, match="more than ten bytes"):
        unpack_numbers(Part(2, BYTES, b"\x80" * 1_000_000))
    with pytest.raises(Malformed, match="fields"):
        decode(b"\x08\x01" * 1_000_001)
    chunk = bytes(cramjam.zstd.compress(bytes(MILLION), 3))
    framed = (len(chunk) << 1).to_bytes(3, "little") + chunk
    with pytest.raises(Malformed, match="decompresses to more than"):
        decompress_section(framed * 30, 5)


def test_orc_types_do_not_nest_without_end() -> None:
    lists = [encode([Part(1, VARINT, 10), Part(2, VARINT, i + 2)]) for i in range(50_000)]
    root = encode([Part(1, VARINT, 12), Part(2, VARINT, 1), Part(3, BYTES, b"a")])
    types = [Part(4, BYTES, t) for t in (root, *lists, encode([Part(1, VARINT, 3)]))]
    with pytest.raises(Malformed, match="nest"):
        check_types(OrcTail((), (*types,)))


def test_orc_stripes_do_not_claim_more_rows_than_they_hold() -> None:
    stream_parts = [Part(n, VARINT, v) for n, v in ((1, 3), (2, 0), (3, 100), (4, 0), (5, 2**40))]
    with pytest.raises(Malformed, match="rows"):
        check_stripe(pa.BufferReader(bytes(200)), 0, stream_parts, 0, 1)
    check_stripe(pa.BufferReader(bytes(200)), 0, [*stream_parts[:4], Part(5, VARINT, 1_000_000)], 0, 1)


@pytest.mark.parametrize("data", [b"", b"ORC", b"ORC" + bytes(100), b"\xff" * 300], ids=["empty", "magic", "0", "255"])
def test_invalid_orc_files_are_refused(data: bytes) -> None:
    check_refused(lambda: list(OrcFormat().read(pa.BufferReader(data), ReadRequest("f-7", COLUMN))), "f-7")


def test_deletion_vectors_have_limits() -> None:
    many = MAGIC_64 + (2**62).to_bytes(8, "little")
    far = MAGIC_64 + (1).to_bytes(8, "little") + (2**31).to_bytes(4, "little") + bytes(8)
    for body in (many, far, b"\x5e\x43\xf2\xd0" + b"\x3b\x30" + b"\xff" * 60):
        data = len(body).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big")
        length = len(body) if body[:1] == b"\x5e" else len(body) + 8
        check_refused(lambda data=data, length=length: decode_vector(data, length, "f-7"), "f-7")


@pytest.mark.parametrize("count", [2**31 - 1, -1, 10**6])
def test_rows_and_arrays_in_binary_rows_have_limits(count: int) -> None:
    kind = RowType((parse_columns("a ARRAY<INT>")[0],))
    whole = binary_row.encode(([1, 2],), [ArrayType(IntType())])
    at = whole.rindex((2).to_bytes(4, "little"))
    broken = whole[: at - 8] + (count & 0xFFFFFFFF).to_bytes(4, "little") + whole[at - 4 :]
    check_refused(lambda: binary_row.decode(broken[:16] + (count & 0xFFFFFFFF).to_bytes(4, "little") + broken[20:],
                                      [ArrayType(IntType())]))  # fmt: skip
    check_refused(
        lambda: binary_row.deserialize((count & 0xFFFFFFFF).to_bytes(4, "big") + whole, [kind, VarCharType(3)])
    )


@pytest.mark.parametrize(
    "data",
    [nest(100_000, "[", "]"), b"9" * 3_000_000, b'{"format":"paimon-commit-messages","version":1,"messages":[[1]]}']
    + [b'{"format":"paimon-commit-messages","version":1,"messages":' + nest(400, "[", "]") + b"}"],
    ids=["deep", "digits", "short", "nested"],
)
def test_commit_messages_have_limits(data: bytes) -> None:
    check_refused(lambda: decode_messages(data))


def check_refused(read: Callable[[], object], named: str | None = None) -> str:
    """Return the text of the typed error, which must be raised quickly."""
    started = time.process_time()
    with pytest.raises(PaimonError, match=named) as caught:
        read()
    assert time.process_time() - started < SECONDS
    return str(caught.value)


def test_a_fraction_preserves_its_digits() -> None:
    assert load_object(b'{"a": 0.1234567890123456789012345}', "f").get("a") == Decimal("0.1234567890123456789012345")


def test_messages_are_cut() -> None:
    assert len(str(CorruptTable("f", "x" * 10**6))) < 5_000
