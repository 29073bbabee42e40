"""Consistent damage: change a member of a JSON file, or of a record in an Avro file, and write a valid file.

Sizes that checks would compare first are updated: lists record the new sizes of manifests, snapshots those of lists.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from paimon.adapters.formats.avro.container import encode_header, pack_block, read_blocks, read_header
from paimon.adapters.formats.avro.records import decode_block, encode_block
from paimon.adapters.formats.guards.avro import parse_block_schema

_TRIES = 20
"""Most values do not fit a member's type, so that there is no such file."""
NUMBERS = (-1, 0, 1, 2, 7, 10_001, 2**31 - 1, 2**31, 2**62, 2**63 - 1, -(2**31), -(2**63))
TEXTS = ("", "..", "../../x", "/etc/passwd", "a\0b", "x" * 300, "no-such-file", "größe", "0", "-1", "NaN")
JSON_VALUES = (*NUMBERS, *TEXTS, None, True, 1.5, 1e300, 10**30, [], {}, [1], {"a": 1}, [[[]]])


def restructure_file(data: bytes, chance: random.Random, path: Path) -> bytes:
    """The file with one edit. Bytes that are neither JSON nor Avro stay."""
    if data[:4] == b"Obj\x01":
        tries = (_of_records(data, chance) for _ in range(_TRIES))
        return next((made for made in tries if made != data), data)
    try:
        value = json.loads(data)
    except ValueError:
        return data
    return json.dumps(_edit_value(value, chance, JSON_VALUES)).encode() if isinstance(value, dict | list) else data


def update_recorded_sizes(root: Path) -> None:
    """Update lists and snapshots with the current sizes of files."""
    for path in (root / "manifest").glob("manifest-list-*"):
        try:
            schema, records = avro_records(path.read_bytes())
            sizes = [_size(root / "manifest" / str(r["_FILE_NAME"])) for r in records]
            if any(size not in (None, r["_FILE_SIZE"]) for size, r in zip(sizes, records, strict=True)):
                for size, record in zip(sizes, records, strict=True):
                    record["_FILE_SIZE"] = record["_FILE_SIZE"] if size is None else size
                path.write_bytes(avro_file(schema, records))
        except Exception:  # files with other damage stay
            continue
    for path in (p for kind in ("snapshot", "tag", "changelog") for p in root.rglob(f"{kind}-*")):
        try:
            value = json.loads(path.read_bytes())
            for name in ("baseManifestList", "deltaManifestList", "changelogManifestList"):
                size = _size(root / "manifest" / str(value.get(name)))
                if size is not None and f"{name}Size" in value and size != value[f"{name}Size"]:
                    value[f"{name}Size"] = size
                    path.write_text(json.dumps(value))
        except Exception:
            continue


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size if path.is_file() else None
    except (OSError, ValueError):
        return None


def _of_records(data: bytes, chance: random.Random) -> bytes:
    try:
        schema, records = avro_records(data)
    except Exception:
        return data
    choice = chance.random()
    if records and choice < 0.1:
        records.append(chance.choice(records))
    elif records and choice < 0.15:
        records.pop(chance.randrange(len(records)))
    elif records and choice < 0.2:
        records.reverse()
    elif records:
        record = chance.choice(records)
        leaves = list(_leaves(record))
        container, key = chance.choice(leaves)
        container[key] = _other(container[key], chance, leaves)
    try:
        return avro_file(schema, records)
    except Exception:  # a value that the schema does not accept: nothing else changes
        return data


def _leaves(value: Any) -> Any:
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(inner, dict | list) and inner:
            yield from _leaves(inner)
        yield value, key


def _other(value: Any, chance: random.Random, leaves: list[tuple[Any, Any]]) -> Any:
    if chance.random() < 0.15:
        return None
    if chance.random() < 0.2:  # the other fields of the record
        container, key = chance.choice(leaves)
        return container[key]
    if isinstance(value, bool) or value is None:
        return chance.choice((*NUMBERS, *TEXTS, b"", b"\xff" * 12, []))
    if isinstance(value, int):
        return chance.choice((*NUMBERS, value + 1, value - 1, -value))
    if isinstance(value, str):
        return chance.choice((*TEXTS, value.swapcase(), value + "x"))
    if isinstance(value, bytes):
        return _other_bytes(value, chance)
    return chance.choice(([], [value[0]] * 3 if isinstance(value, list) and value else [], None))


def _other_bytes(value: bytes, chance: random.Random) -> bytes:
    """Rows of another arity, cut, with another null mark, or with an offset that leaves them."""
    edits: tuple[Callable[[], bytes], ...] = (
        lambda: b"",
        lambda: value[: len(value) // 2],
        lambda: chance.choice((b"\0\0\0\2", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\0\0\0\0")) + value[4:],
        lambda: value[:4] + bytes([255]) * 8 + value[12:],
        lambda: value[:-8] + b"\xff" * 8,
        lambda: value[:-8] + bytes(8),
        lambda: value + bytes(8),
        lambda: bytes(reversed(value)),
    )
    return chance.choice(edits)()


def _edit_value(value: Any, chance: random.Random, others: tuple[Any, ...]) -> Any:
    leaves = list(_leaves(value))
    if not leaves:
        return chance.choice(others)
    container, key = chance.choice(leaves)
    if chance.random() < 0.2:
        del container[key]
    elif chance.random() < 0.2 and isinstance(container, list):
        container.append(container[key])
    elif chance.random() < 0.2:
        other, place = chance.choice(leaves)
        container[key] = json.loads(json.dumps(other[place])) if place in _places(other) else None
    else:
        container[key] = chance.choice(others)
    return value


def _places(container: Any) -> Any:
    return container if isinstance(container, dict) else range(len(container))


def avro_records(data: bytes) -> tuple[str, list[dict[str, Any]]]:
    """The schema, as text, and the records of an Avro file."""
    source = pa.BufferReader(data)
    header = read_header(source, "file")
    schema = parse_block_schema(header.schema, "file")
    blocks = read_blocks(source, header, "file", 1 << 30)
    return header.schema, [record for block in blocks for record in decode_block(block, schema, "file")]


def avro_file(schema: str, records: list[dict[str, Any]]) -> bytes:
    """An Avro file of these records, of which the schema's types hold."""
    head = encode_header(schema, "null")
    return head + (
        pack_block(encode_block(records, parse_block_schema(schema, "file")), "null", head[-16:]) if records else b""
    )
