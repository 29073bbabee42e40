"""Schemas, snapshots, manifests, binary rows and deletion vectors, as `docs/specification` describes them."""

from __future__ import annotations

import io
import json
import re
from datetime import date, timedelta
from decimal import Context, Decimal
from pathlib import Path
from typing import Any, NamedTuple

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import orc

Json = Any
WIDTHS = {"BOOLEAN": 1, "TINYINT": 1, "SMALLINT": 2, "INT": 4, "DATE": 4, "TIME": 4, "BIGINT": 8}
TEXTS, BYTES = ("CHAR", "VARCHAR", "STRING"), ("BINARY", "VARBINARY", "BYTES")


class Refused(Exception):
    """What this reader does not read."""


class Branch(NamedTuple):
    """A branch of a table: the directory of the table, and the name if it is not the main branch."""

    root: Path
    name: str | None = None

    def read(self, folder: str, prefix: str, number: int | str | None = None) -> Json:
        """Read a schema, a snapshot or a tag; that with the highest number if none is given."""
        home = (self.root / "branch" / f"branch-{self.name}" if self.name else self.root) / folder
        if number is None:
            number = max((int(path.name.removeprefix(prefix)) for path in home.glob(prefix + "*")), default=None)
        if number is None:
            return None
        document = json.loads((home / f"{prefix}{number}").read_text("utf8"))
        if (document.get("version") or 1) > 3:
            raise Refused(f"version {document['version']} of {prefix}{number}")
        return document


def read_records(path: Path, version: int) -> list[Any]:
    """Read a manifest list, a manifest or an index manifest; the first bytes show its format."""
    data = path.read_bytes()
    if data[:4] == b"PAR1":
        records: list[Any] = pq.ParquetFile(path).read().to_pylist()
    else:
        records = orc.ORCFile(path).read().to_pylist() if data[:3] == b"ORC" else [*fastavro.reader(io.BytesIO(data))]
    if any(record["_VERSION"] != version for record in records):
        raise Refused(f"another _VERSION than {version} in {path}")
    return records


def live_entries(branch: Branch, snapshot: Json) -> list[Json]:
    """Return the entries of the files of a snapshot."""
    live = {}
    for member in ("baseManifestList", "deltaManifestList"):
        for manifest in read_records(branch.root / "manifest" / snapshot[member], 2):
            for entry in read_records(branch.root / "manifest" / manifest["_FILE_NAME"], 2):
                file = entry["_FILE"]
                names = ("_LEVEL", "_FILE_NAME", "_EMBEDDED_FILE_INDEX", "_EXTERNAL_PATH")
                identity = (entry["_PARTITION"], entry["_BUCKET"], *map(file.get, names), *file["_EXTRA_FILES"])
                if entry["_KIND"] == 0:
                    live[identity] = entry
                else:
                    del live[identity]
    return list(live.values())


def parse_type(kind: Json) -> tuple[Any, ...]:
    """Return the name and the sizes of a type: ("DECIMAL", 10, 2), ("TIMESTAMP_LTZ", 6), ("ROW",)."""
    text = kind["type"] if isinstance(kind, dict) else kind
    name = re.findall(r"\w+", text)[0] + ("_LTZ" if "LOCAL TIME ZONE" in text else "")
    sizes = [int(size) for size in re.findall(r"\d+", text)]
    return name, *(sizes or ([6] if name.startswith("TIMESTAMP") else []))


# Binary rows and partition directories


def decode_row(data: bytes, types: list[Json]) -> list[Any]:
    """Return the values of a binary row behind its 4 bytes; a TIMESTAMP is a number of nanoseconds."""
    row, head = data[4:], (len(types) + 71) // 64 * 8
    is_null = [row[(i + 8) // 8] >> (i + 8) % 8 & 1 for i in range(len(types))]
    slots = [row[head + 8 * i : head + 8 * i + 8] for i in range(len(types))]
    decoded = zip(is_null, slots, map(parse_type, types), strict=True)
    return [None if null else decode_slot(slot, row, *kind) for null, slot, kind in decoded]


def decode_slot(slot: bytes, row: bytes, name: str, *sizes: int) -> Any:
    """Return the value of a slot, or of the bytes of the row that it refers to."""
    low, offset = (int.from_bytes(slot[at : at + 4], "little") for at in (0, 4))
    whole = int.from_bytes(slot[: WIDTHS.get(name, 8)], "little", signed=True)
    if name in WIDTHS:
        return whole != 0 if name == "BOOLEAN" else whole
    if name in ("FLOAT", "DOUBLE"):
        return float(np.frombuffer(slot, "<f4" if name == "FLOAT" else "<f8")[0])
    if name == "DECIMAL":
        unscaled = whole if sizes[0] <= 18 else int.from_bytes(row[offset : offset + low], "big", signed=True)
        return Decimal(unscaled).scaleb(-sizes[1], Context(prec=38))
    if name.startswith("TIMESTAMP"):
        far = int.from_bytes(row[offset : offset + 8], "little", signed=True)
        return whole * 10**6 if sizes[0] <= 3 else far * 10**6 + low
    data = slot[: slot[7] & 0x7F] if slot[7] & 0x80 else row[offset : offset + low]
    return data.decode() if name in TEXTS else data


def partition_path(schema: Json, options: Json, values: list[Any]) -> str:
    """Return the directory of a partition."""
    types = {field["name"]: parse_type(field["type"]) for field in schema["fields"]}
    legacy = options.get("partition.legacy-name", "true") == "true"
    default, parts = options.get("partition.default-name", "__DEFAULT_PARTITION__"), []
    for name, value in zip(schema["partitionKeys"], values, strict=True):
        text = "" if value is None else format_value(value, legacy, *types[name])
        parts.append(f"{escape(name)}={escape(text if text.strip() else default)}")
    return "/".join(parts)


def format_value(value: Any, legacy: bool, name: str, *sizes: int) -> str:
    """Return a value of a partition column as a text."""
    if name in ("FLOAT", "DOUBLE", *BYTES) or (name == "TIME" and not legacy):
        raise Refused(f"partitions of type {name}")
    if name == "DATE" and not legacy:
        return str(date(1970, 1, 1) + timedelta(days=value))
    if name.startswith("TIMESTAMP"):
        seconds, nanos = divmod(value, 10**9)
        day, clock = date(1970, 1, 1) + timedelta(seconds // 86_400), f"{timedelta(seconds=seconds % 86_400)!s:0>8}"
        size = next(size for size in (0, 3, 6, 9) if nanos % 10 ** (9 - size) == 0) if legacy else sizes[0]
        clock = clock[:5] if legacy and size == 0 and clock.endswith(":00") else clock
        return f"{day}{'T' if legacy else ' '}{clock}" + (f".{nanos:09}"[: size + 1] if size else "")
    return format(value, "f") if name == "DECIMAL" else str(value).lower() if name == "BOOLEAN" else str(value)


def escape(text: str) -> str:
    """Escape a part of a directory name."""
    return re.sub(r"[\x00-\x1f\x7f\"#%'*/:=?\\{}\[\]^]", lambda found: f"%{ord(found[0]):02X}", text)


# Deletion vectors


def read_vector(data: bytes, start: int) -> np.ndarray[Any, Any]:
    """Return the positions of the deletion vector at an offset of an index file."""
    magic, body = data[start + 4 : start + 8].hex(), data[start + 8 :]
    if magic == "5e43f2d0":
        return read_bitmap(body)[0]
    if magic != "d1d33964":
        raise Refused(f"deletion vectors with the magic {magic}")
    parts, at = [np.zeros(0, np.int64)], 8
    for _ in range(int.from_bytes(body[:8], "little")):
        positions, size = read_bitmap(body[at + 4 :])
        parts.append(positions + (int.from_bytes(body[at : at + 4], "little") << 32))
        at += 4 + size
    return np.concatenate(parts)


def read_bitmap(data: bytes) -> tuple[np.ndarray[Any, Any], int]:
    """Return the numbers of a roaring bitmap in the portable format, and its length in bytes."""
    cookie = int.from_bytes(data[:4], "little")
    runs = cookie & 0xFFFF == 12347
    count = (cookie >> 16) + 1 if runs else int.from_bytes(data[4:8], "little")
    flags = (
        np.unpackbits(np.frombuffer(data, np.uint8, (count + 7) // 8, 4), bitorder="little") if runs else [0] * count
    )
    at = 4 + (count + 7) // 8 if runs else 8
    heads = np.frombuffer(data, "<u2", 2 * count, at).reshape(-1, 2).astype(np.int64)
    at += 8 * count if not runs or count >= 4 else 4 * count
    parts = [np.zeros(0, np.int64)]
    for is_run, (key, last) in zip(flags, heads, strict=False):
        if is_run:
            size = int.from_bytes(data[at : at + 2], "little")
            pairs = np.frombuffer(data, "<u2", 2 * size, at + 2).reshape(-1, 2).astype(np.int64)
            values = np.concatenate([np.arange(first, first + more + 1) for first, more in pairs])
            at += 2 + 4 * size
        elif last < 4096:
            values = np.frombuffer(data, "<u2", last + 1, at).astype(np.int64)
            at += 2 * (last + 1)
        else:
            values = np.flatnonzero(np.unpackbits(np.frombuffer(data, np.uint8, 8192, at), bitorder="little"))
            at += 8192
        parts.append(values + (key << 16))
    return np.concatenate(parts), at


# The codecs of Avro for which fastavro needs further packages


def _read_varint(stream: Any) -> int:
    shift = number = 0
    while True:
        byte = stream.read(1)[0]
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return number


def _read_zstandard(stream: Any) -> io.BytesIO:
    data = stream.read(_read_varint(stream) >> 1)
    return io.BytesIO(pa.CompressedInputStream(pa.BufferReader(data), "zstd").read())


def _read_snappy(stream: Any) -> io.BytesIO:
    data = stream.read(_read_varint(stream) >> 1)[:-4]  # without the checksum
    return io.BytesIO(pa.Codec("snappy").decompress(data, _read_varint(io.BytesIO(data))))


fastavro.read.BLOCK_READERS |= {"zstandard": _read_zstandard, "snappy": _read_snappy}
