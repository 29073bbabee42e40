"""Damage with sense: a member of a JSON file, or of a record in an Avro file, is another one in a file that is sound.

What checks of sizes and blocks would see first is put right again: lists say the new sizes of manifests, snapshots
those of lists.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from paimon.adapters.formats.avro.bounded_schema import block_schema
from paimon.adapters.formats.avro.container import block_bytes, header_bytes, read_blocks, read_header
from paimon.adapters.formats.avro.records import decode, encode

_TRIES = 20
"""Most values do not fit a member's type, so that there is no such file."""
NUMBERS = (-1, 0, 1, 2, 7, 10_001, 2**31 - 1, 2**31, 2**62, 2**63 - 1, -(2**31), -(2**63))
TEXTS = ("", "..", "../../x", "/etc/passwd", "a\0b", "x" * 300, "no-such-file", "größe", "0", "-1", "NaN")
JSON_VALUES = (*NUMBERS, *TEXTS, None, True, 1.5, 1e300, 10**30, [], {}, [1], {"a": 1}, [[[]]])


def restructured(data: bytes, chance: random.Random, path: Path) -> bytes:
    """The file with one edit; bytes that are neither JSON nor Avro stay."""
    if data[:4] == b"Obj\x01":
        tries = (_of_records(data, chance) for _ in range(_TRIES))
        return next((made for made in tries if made != data), data)
    try:
        value = json.loads(data)
    except ValueError:
        return data
    return json.dumps(_edited(value, chance, JSON_VALUES)).encode() if isinstance(value, dict | list) else data


def sized_again(root: Path) -> None:
    """Lists and snapshots say the sizes that files have now."""
    for path in (root / "manifest").glob("manifest-list-*"):
        try:
            schema, records = avro_records(path.read_bytes())
            sizes = [_size(root / "manifest" / str(r["_FILE_NAME"])) for r in records]
            if any(size not in (None, r["_FILE_SIZE"]) for size, r in zip(sizes, records, strict=True)):
                for size, record in zip(sizes, records, strict=True):
                    record["_FILE_SIZE"] = record["_FILE_SIZE"] if size is None else size
                path.write_bytes(avro_file(schema, records))
        except Exception:  # what was damaged otherwise stays as it is
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
    deed = chance.random()
    if records and deed < 0.1:
        records.append(chance.choice(records))
    elif records and deed < 0.15:
        records.pop(chance.randrange(len(records)))
    elif records and deed < 0.2:
        records.reverse()
    elif records:
        record = chance.choice(records)
        leaves = list(_leaves(record))
        holder, key = chance.choice(leaves)
        holder[key] = _other(holder[key], chance, leaves)
    try:
        return avro_file(schema, records)
    except Exception:  # a value that the schema does not take: nothing else changes
        return data


def _leaves(value: Any) -> Any:
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(inner, dict | list) and inner:
            yield from _leaves(inner)
        yield value, key


def _other(value: Any, chance: random.Random, leaves: list[tuple[Any, Any]]) -> Any:
    if chance.random() < 0.15:
        return None
    if chance.random() < 0.2:  # what stands elsewhere in the record
        holder, key = chance.choice(leaves)
        return holder[key]
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


def _edited(value: Any, chance: random.Random, others: tuple[Any, ...]) -> Any:
    leaves = list(_leaves(value))
    if not leaves:
        return chance.choice(others)
    holder, key = chance.choice(leaves)
    if chance.random() < 0.2:
        del holder[key]
    elif chance.random() < 0.2 and isinstance(holder, list):
        holder.append(holder[key])
    elif chance.random() < 0.2:
        other, place = chance.choice(leaves)
        holder[key] = json.loads(json.dumps(other[place])) if place in _places(other) else None
    else:
        holder[key] = chance.choice(others)
    return value


def _places(holder: Any) -> Any:
    return holder if isinstance(holder, dict) else range(len(holder))


def avro_records(data: bytes) -> tuple[str, list[dict[str, Any]]]:
    """The schema, as text, and the records of an Avro file."""
    source = pa.BufferReader(data)
    header = read_header(source, "file")
    schema = block_schema(header.schema, "file")
    blocks = read_blocks(source, header, "file", 1 << 30)
    return header.schema, [record for block in blocks for record in decode(block, schema, "file")]


def avro_file(schema: str, records: list[dict[str, Any]]) -> bytes:
    """An Avro file of these records, of which the schema's types hold."""
    head = header_bytes(schema, "null")
    return head + (block_bytes(encode(records, block_schema(schema, "file")), "null", head[-16:]) if records else b"")
