"""Bitmaps of 64-bit numbers in the form of the Java library: containers of the low 16 bits under a radix tree.

Law: a container keeps its place; a new one takes the next, so places tell the order in which keys came, from which the
whole tree follows. Only array containers are known. Source: `Roaring64Bitmap`, `HighLowContainer`, `Art`, `Containers`.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from itertools import groupby

from paimon.domain.errors import Unsupported

Bitmap = Mapping[bytes, tuple[int, ...]]
"""The low 16 bits by the 6 high bytes of the numbers, in the order in which keys came."""

_BODY_BYTES = {0: 4, 1: 16, 2: 256, 3: 32}
_LEAF = 4
_FULL = 0xFE
_ARRAY = 2
_LARGEST_ARRAY = 4096


def union(a: bytes, b: bytes) -> bytes:
    """The numbers of both."""
    left, right = parsed(a), parsed(b)
    merged = dict(left)
    for key in sorted(right):
        merged[key] = tuple(sorted({*merged.get(key, ()), *right[key]}))
    return written(merged)


def parsed(data: bytes) -> Bitmap:
    """The containers of a stored bitmap; struct.error where it is cut off."""
    if data[0] == 0:
        return {}
    places: dict[int, bytes] = {}
    at = _read_node(data, 9, places)
    (levels,) = struct.unpack_from("<i", data, at)
    if levels != 1:
        raise Unsupported(f"a 64-bit bitmap with {levels} levels of containers")
    (slots,) = struct.unpack_from("<i", data, at + 5)
    at += 9
    containers: dict[bytes, tuple[int, ...]] = {}
    for slot in range(slots):
        at += 1
        if data[at - 1]:
            kind, size = struct.unpack_from("<bi", data, at)
            if kind != _ARRAY:
                raise Unsupported("a 64-bit bitmap with other containers than arrays")
            containers[places[slot]] = struct.unpack_from(f"<{size}H", data, at + 5)
            at += 5 + 2 * size
    return containers


def _read_node(data: bytes, at: int, places: dict[int, bytes]) -> int:
    """Read a node and all below it; answers where the next one begins."""
    kind, children, prefix = struct.unpack_from("<bhB", data, at)
    at += 4 + prefix
    if kind == _LEAF:
        (place,) = struct.unpack_from("<q", data, at + 6)
        places[place] = data[at : at + 6]
        return at + 14
    at += _BODY_BYTES[kind]
    for _ in range(children):
        at = _read_node(data, at, places)
    return at


def written(bitmap: Bitmap) -> bytes:
    """The stored form."""
    if not bitmap:
        return b"\0"
    count = len(bitmap)
    places = {key: place for place, key in enumerate(bitmap)}
    slots = _slots(count)
    parts = [b"\1", struct.pack("<q", count), _tree(list(bitmap), 0, places)]
    parts.append(struct.pack("<iBi", 1, _FULL, slots))
    parts += [_container(values) for values in bitmap.values()]
    parts += [bytes(slots - count), struct.pack("<qii", count, 0, count - 1)]
    return b"".join(parts)


def _slots(count: int) -> int:
    """How many slots the table of containers has grown to."""
    slots = 1
    while slots < count:
        slots += max(1, slots >> 1)
    return slots


def _container(values: Sequence[int]) -> bytes:
    if len(values) > _LARGEST_ARRAY:
        raise Unsupported("a 64-bit bitmap with other containers than arrays")
    return struct.pack(f"<bbi{len(values)}H", 1, _ARRAY, len(values), *values)


def _tree(keys: Sequence[bytes], depth: int, places: Mapping[bytes, int]) -> bytes:
    """The node of keys (in the order in which they came) that agree up to `depth`, and all below it."""
    if len(keys) == 1:
        return struct.pack("<bhB", _LEAF, 0, 0) + keys[0] + struct.pack("<q", places[keys[0]])
    low, high = min(keys), max(keys)
    branch = next(i for i in range(depth, 6) if low[i] != high[i])
    arrivals = list(dict.fromkeys(key[branch] for key in keys))
    kind, body = _body(arrivals)
    head = struct.pack("<bhB", kind, len(arrivals), branch - depth) + low[depth:branch]
    by_byte = groupby(sorted(keys, key=lambda key: key[branch]), key=lambda key: key[branch])  # stable: order stays
    return head + body + b"".join(_tree(list(own), branch + 1, places) for _, own in by_byte)


def _body(arrivals: Sequence[int]) -> tuple[int, bytes]:
    """The kind of a node, and how it says which bytes it branches to."""
    if len(arrivals) <= 4:
        return 0, _reversed_words(bytes(sorted(arrivals)).ljust(4, b"\0"), 4)
    if len(arrivals) <= 16:
        return 1, _reversed_words(bytes(sorted(arrivals)).ljust(16, b"\0"), 8)
    if len(arrivals) <= 48:
        slots = bytearray(b"\xff" * 256)
        for slot, byte in enumerate([*sorted(arrivals[:16]), *arrivals[16:]]):
            slots[byte] = slot
        return 2, _reversed_words(bytes(slots), 8)
    return 3, sum(1 << byte for byte in arrivals).to_bytes(32, "little")


def _reversed_words(data: bytes, width: int) -> bytes:
    return b"".join(data[i : i + width][::-1] for i in range(0, len(data), width))
