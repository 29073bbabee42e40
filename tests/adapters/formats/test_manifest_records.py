"""Avro record files: all files of Java are decoded, written records are read back, and decoding has limits."""

from __future__ import annotations

import json
import time
from typing import Any

import cramjam
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.golden_tables import golden_directory

from paimon.adapters.formats.avro.container import encode_header
from paimon.adapters.formats.records import AvroRecordIO
from paimon.adapters.formats.varints import encode_zigzag
from paimon.domain.errors import CorruptTable, InvalidRequest, PaimonError, Unsupported
from paimon.domain.manifest.avro_schema import MANIFEST_ENTRY
from paimon.ports.formats import RecordIO
from paimon.testing.contracts import RecordIOContract

HOME = golden_directory()
RECORDS = AvroRecordIO()
MANIFESTS = sorted(p for p in HOME.glob("*/table/manifest/manifest-*") if "list" not in p.name)


class TestAvroRecords(RecordIOContract):
    def make_records(self) -> RecordIO:
        return RECORDS


CODECS = ("zstd", "snappy", "deflate", "bzip2", "xz", "none")


def entries(count: int = 40) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for path in MANIFESTS:
        if path.parents[2].name.startswith(("pk_dedup", "stats_", "dv_")):
            found += RECORDS.read_records(path.read_bytes(), str(path))
    return found[:count]


def test_every_manifest_and_list_decodes() -> None:
    paths = [p for p in HOME.glob("*/table/manifest/*") if not p.name.startswith(".")]
    assert len(paths) > 3000
    for path in paths:
        records = RECORDS.read_records(path.read_bytes(), str(path))
        assert {r["_VERSION"] for r in records} <= ({1} if path.name.startswith("index") else {2})


@pytest.mark.parametrize("codec", CODECS)
def test_what_is_written_is_read(codec: str) -> None:
    records = entries(700)
    data = RECORDS.write_records(records, MANIFEST_ENTRY, codec, "avro")
    assert RECORDS.read_records(data, "m") == records
    assert RECORDS.read_records(RECORDS.write_records([], MANIFEST_ENTRY, codec, "avro"), "m") == []


@pytest.mark.parametrize("format_name", ["parquet", "orc"])
def test_other_formats_hold_the_same_records(format_name: str) -> None:
    records = entries()
    data = RECORDS.write_records(records, MANIFEST_ENTRY, "zstd", format_name)
    assert RECORDS.read_records(data, "m") == records


def test_unknown_formats_and_codecs_are_refused() -> None:
    with pytest.raises(InvalidRequest, match="json"):
        RECORDS.write_records([], MANIFEST_ENTRY, "zstd", "json")
    with pytest.raises(InvalidRequest, match="lzo"):
        RECORDS.write_records([], MANIFEST_ENTRY, "lzo", "avro")
    for format_name in ("parquet", "orc"):
        with pytest.raises((InvalidRequest, Unsupported), match="lzo"):
            RECORDS.write_records([], MANIFEST_ENTRY, "lzo", format_name)
    records = entries()
    assert RECORDS.read_records(RECORDS.write_records(records, MANIFEST_ENTRY, "deflate", "orc"), "m") == records
    with pytest.raises(CorruptTable, match="manifest-7"):
        RECORDS.read_records(b"no magic", "manifest-7")


@pytest.fixture(scope="module")
def whole() -> bytes:
    return RECORDS.write_records(entries(), MANIFEST_ENTRY, "zstd", "avro")


@settings(max_examples=100)
@given(data=st.data())
def test_broken_files_are_corrupt(whole: bytes, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(whole) - 1))
    broken = whole[:at] + data.draw(st.binary(max_size=4)) + (whole[at + 4 :] if data.draw(st.booleans()) else b"")
    try:
        RECORDS.read_records(broken, "/t/manifest-7")
    except CorruptTable as error:
        assert error.path == "/t/manifest-7"
    except PaimonError as error:
        assert "Avro" in str(error)


def bomb(schema: object, codec: str, count: int, packed: bytes) -> bytes:
    header = encode_header(json.dumps(schema), codec)
    return header + encode_zigzag(count) + encode_zigzag(len(packed)) + packed + header[-16:]


TEXTS = {"type": "record", "name": "record", "fields": [{"name": "s", "type": "bytes"}]}
NOTHINGS = {"type": "record", "name": "record", "fields": [{"name": "n", "type": {"type": "array", "items": "null"}}]}
LINKS = {"type": "record", "name": "r", "fields": [{"name": "next", "type": ["null", "r"]}]}
ZEROS = bytes(64 * 1024 * 1024)


@pytest.mark.parametrize(
    "data",
    [
        bomb(TEXTS, "zstandard", len(ZEROS) * 4, bytes(cramjam.zstd.compress(ZEROS, 3)) * 4),
        bomb(TEXTS, "deflate", len(ZEROS), bytes(cramjam.deflate.compress(ZEROS, 9))),
        bomb(TEXTS, "snappy", 1, b"\xff\xff\xff\xff\x0f" + bytes(20)),
        bomb(NOTHINGS, "null", 1, encode_zigzag(2**40) + b"\0"),
        bomb(LINKS, "null", 1, b"\x02" * 100_000 + b"\0"),
        bomb(TEXTS, "null", 2**40, b"\0" * 100),
        b"Obj\x01" + encode_zigzag(1) + encode_zigzag(2**50),
    ],
    ids=["zstandard", "deflate", "snappy", "items without bytes", "recursion", "record count", "header"],
)
def test_every_decoder_has_a_limit(data: bytes) -> None:
    assert len(data) < 200_000
    started = time.process_time()
    with pytest.raises(PaimonError, match=r"manifest-7|Avro"):
        RECORDS.read_records(data, "manifest-7")
    assert time.process_time() - started < 2


def test_nesting_is_bounded() -> None:
    text = '{"type":"array","items":' * 5000 + '"int"' + "}" * 5000
    header = encode_header(text, "null")
    with pytest.raises(PaimonError):
        RECORDS.read_records(header, "manifest-7")
