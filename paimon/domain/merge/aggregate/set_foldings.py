"""rbm32, rbm64, hll_sketch and theta_sketch, value by value: unions of serialized sets.

Sketches need the package `datasketches`. HLL sketches that still list their coupons are united here, because their
bytes show the order of a Java hash table. All others are united by the library. A bitmap of 64-bit numbers is a radix
tree of containers of the low 16 bits; only array containers are supported.

Invariant: nulls are skipped. A single value is returned unchanged. Bitmaps of 32 bits are written in the portable form
with run containers. A container keeps its position, and a new one takes the next position, so positions show the order
in which keys were added, and that order determines the complete tree.

Source: `FieldRoaringBitmap32Agg`, `FieldRoaringBitmap64Agg`, `FieldHllSketchAgg`, `FieldThetaSketchAgg`,
`HllSketchUtil`, `ThetaSketchUtil`, `CouponList`, `CouponHashSet`, `Roaring64Bitmap`, `HighLowContainer`, `Art`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from types import ModuleType
from typing import Any

from pyroaring import BitMap

from paimon.domain.errors import InvalidRequest, Unsupported
from paimon.domain.extras import missing_extra
from paimon.domain.merge.aggregate.foldings import Folding
from paimon.domain.merge.aggregate.rule import Aggregate

# A number has 64 bits. The 6 high bytes select a container, which holds the 2 low bytes of its numbers, sorted:
#
#     0x0000_0000_0001_0005  ->  key 00 00 00 00 00 01, low bits 5
#
# The keys are in an adaptive radix tree (ART). A node branches by one byte; the bytes that all keys below it share
# before that byte are its prefix. A node has one of four layouts, by its number of branches, and a leaf has the rest:
#
#     kind 0, up to 4:    the branch bytes, sorted             kind 2, up to 48:  for each byte, its slot or 0xFF
#     kind 1, up to 16:   the branch bytes, sorted             kind 3, up to 256: a bit for each byte
#     kind 4, leaf:       the key (6 bytes) and the position of its container
#
# In layouts 0 to 2, the bytes are in words of 4 or 8 bytes, each reversed. In layout 2, the first 16 branches have
# sorted slots (they came from layout 1), and later ones are in the order in which they were added.
#
# A serialized bitmap is: 1, the number of keys, the tree (depth first, branches ascending by byte), then the table of
# containers: one level with `slots` entries, each a 0, or a 1 with the kind and the numbers of a container. The table
# grows by half (1, 2, 3, 4, 6, 9, ...), and its free slots are written, too.
#
# So the bytes depend on the order of insertion. A union keeps the containers of the left bitmap where they are, and
# adds the keys that only the right one has in ascending order, as Java does.


Bitmap = Mapping[bytes, tuple[int, ...]]
"""The low 16 bits of the numbers by their 6 high bytes, in the order in which these were added."""

_BODY_BYTES = {0: 4, 1: 16, 2: 256, 3: 32}
_LEAF = 4
_FULL = 0xFE
_ARRAY = 2
_LARGEST_ARRAY = 4096


def unite_64_bit_bitmaps(a: bytes, b: bytes) -> bytes:
    """Return the union of two serialized bitmaps."""
    left, right = parse_bitmap(a), parse_bitmap(b)
    merged = dict(left)
    for key in sorted(right):
        merged[key] = tuple(sorted({*merged.get(key, ()), *right[key]}))
    return serialize_bitmap(merged)


def parse_bitmap(data: bytes) -> Bitmap:
    """Return a bitmap's containers: Unsupported unless all are arrays, `struct.error` if incomplete."""
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
    """Read a node and all nodes below it; return the position after them."""
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


def serialize_bitmap(bitmap: Bitmap) -> bytes:
    """Return the bitmap as bytes."""
    if not bitmap:
        return b"\0"
    count = len(bitmap)
    places = {key: place for place, key in enumerate(bitmap)}
    slots = _count_slots(count)
    parts = [b"\1", struct.pack("<q", count), _serialize_tree(list(bitmap), 0, places)]
    parts.append(struct.pack("<iBi", 1, _FULL, slots))
    parts += [_serialize_container(values) for values in bitmap.values()]
    parts += [bytes(slots - count), struct.pack("<qii", count, 0, count - 1)]
    return b"".join(parts)


def _count_slots(count: int) -> int:
    """Return the number of slots to which the table of containers has grown."""
    slots = 1
    while slots < count:
        slots += max(1, slots >> 1)
    return slots


def _serialize_container(values: Sequence[int]) -> bytes:
    if len(values) > _LARGEST_ARRAY:
        raise Unsupported("a 64-bit bitmap with other containers than arrays")
    return struct.pack(f"<bbi{len(values)}H", 1, _ARRAY, len(values), *values)


def _serialize_tree(keys: Sequence[bytes], depth: int, places: Mapping[bytes, int]) -> bytes:
    """Return the node of keys with equal bytes up to `depth`, and all nodes below it; keys are in insertion order."""
    if len(keys) == 1:
        return struct.pack("<bhB", _LEAF, 0, 0) + keys[0] + struct.pack("<q", places[keys[0]])
    low, high = min(keys), max(keys)
    branch = next(i for i in range(depth, 6) if low[i] != high[i])
    branches = list(dict.fromkeys(key[branch] for key in keys))
    kind, body = _serialize_body(branches)
    head = struct.pack("<bhB", kind, len(branches), branch - depth) + low[depth:branch]
    by_byte = groupby(sorted(keys, key=lambda key: key[branch]), key=lambda key: key[branch])  # stable: order stays
    return head + body + b"".join(_serialize_tree(list(own), branch + 1, places) for _, own in by_byte)


def _serialize_body(branches: Sequence[int]) -> tuple[int, bytes]:
    """Return the kind of a node, and how it encodes the bytes of its branches."""
    if len(branches) <= 4:
        return 0, _reverse_words(bytes(sorted(branches)).ljust(4, b"\0"), 4)
    if len(branches) <= 16:
        return 1, _reverse_words(bytes(sorted(branches)).ljust(16, b"\0"), 8)
    if len(branches) <= 48:
        slots = bytearray(b"\xff" * 256)
        for slot, byte in enumerate([*sorted(branches[:16]), *branches[16:]]):
            slots[byte] = slot
        return 2, _reverse_words(bytes(slots), 8)
    return 3, sum(1 << byte for byte in branches).to_bytes(32, "little")


def _reverse_words(data: bytes, width: int) -> bytes:
    return b"".join(data[i : i + width][::-1] for i in range(0, len(data), width))


# A small HLL sketch is a list of up to 7 coupons (hashes with 26 bits of address and 6 of value), then a hash table
# with 32 slots, which doubles when it is more than three quarters full. Beyond 512 slots it becomes an array of
# registers, which the library unites. The bytes of a hash table show the order of insertion, so Java's insertions are
# repeated here.
_LOG_SIZE = 12
_LOG_SMALLEST_TABLE = 5
_LIST_COUPONS = 8
_COMPACT = 8
_LIST, _SET = 0, 1
_ONE = struct.pack("<f", 1.0)
Slots = list[int]
"""Coupons: a list of up to 7 coupons, or a hash table whose free slots hold 0."""


def theta_union(a: bytes, b: bytes) -> bytes:
    """Return the union of two theta sketches."""
    sketches = _load_library()
    union = sketches.theta_union()
    for data in (a, b):
        union.update(sketches.compact_theta_sketch.deserialize(data))
    found = bytes(union.get_result().serialize())
    # Java notes the sampling probability, 1, where the library leaves zeros
    return found[:12] + _ONE + found[16:] if found[0] > 1 else found


def hll_union(a: bytes, b: bytes) -> bytes:
    """Return the union of two HLL sketches."""
    listed = _unite_coupons(a, b)
    if listed is not None:
        return listed
    sketches = _load_library()
    union = sketches.hll_union(_LOG_SIZE)
    for data in (a, b):
        union.update(sketches.hll_sketch.deserialize(data))
    return bytes(union.get_result(sketches.tgt_hll_type.HLL_4).serialize_compact())


def _load_library() -> ModuleType:
    try:
        import datasketches
    except ImportError as error:
        raise missing_extra("a union of sketches", "datasketches") from error
    library: ModuleType = datasketches
    return library


def _unite_coupons(a: bytes, b: bytes) -> bytes | None:
    """Unite two sketches that list their coupons, the second one first; None where a sketch is too large for that."""
    left, right = _read_coupons(a), _read_coupons(b)
    if left is None or right is None:
        return None
    grown = _add_coupons(right, left) if any(right) else left
    return None if grown is None else _serialize_coupons(grown)


def _read_coupons(data: bytes) -> Slots | None:
    """Return the coupons of a sketch as Java holds them: inserted one by one into a table that grows again."""
    log_size, mode = data[3], data[7] & 3
    if log_size != _LOG_SIZE or not data[5] & _COMPACT:
        return None
    if mode == _LIST:
        return list(struct.unpack_from(f"<{data[6]}I", data, 8))
    if mode == _SET:
        (count,) = struct.unpack_from("<I", data, 8)
        return _add_coupons(_build_table(_LOG_SMALLEST_TABLE, ()), struct.unpack_from(f"<{count}I", data, 12))
    return None


def _add_coupons(slots: Slots, coupons: Iterable[int]) -> Slots | None:
    """Insert coupons and grow the table as Java does; None where the table becomes too large."""
    for coupon in filter(None, coupons):
        if len(slots) < _LIST_COUPONS:
            if coupon not in slots:
                slots = [*slots, coupon]
            if len(slots) == _LIST_COUPONS:
                slots = _build_table(_LOG_SMALLEST_TABLE, slots)
            continue
        _put_coupon(slots, coupon)
        if 4 * sum(map(bool, slots)) > 3 * len(slots):
            log_table = len(slots).bit_length()
            if log_table > _LOG_SIZE - 3:
                return None
            slots = _build_table(log_table, slots)
    return slots


def _build_table(log_table: int, coupons: Iterable[int]) -> Slots:
    slots = [0] * (1 << log_table)
    for coupon in filter(None, coupons):
        _put_coupon(slots, coupon)
    return slots


def _put_coupon(slots: Slots, coupon: int) -> None:
    mask = len(slots) - 1
    stride = ((coupon & 0x3FFFFFF) >> mask.bit_length()) | 1
    at = coupon & mask
    while slots[at] not in (0, coupon):
        at = (at + stride) & mask
    slots[at] = coupon


def _serialize_coupons(slots: Slots) -> bytes:
    coupons = [coupon for coupon in slots if coupon]
    packed = struct.pack(f"<{len(coupons)}I", *coupons)
    if len(slots) < _LIST_COUPONS:
        return bytes([2, 1, 7, _LOG_SIZE, 3, _COMPACT, len(coupons), _LIST]) + packed
    head = bytes([3, 1, 7, _LOG_SIZE, len(slots).bit_length() - 1, _COMPACT, 0, _SET])
    return head + struct.pack("<I", len(coupons)) + packed


# RecursionError is a RuntimeError, and so is what the sketches' library raises.
_DAMAGES = (ValueError, RuntimeError, IndexError, KeyError, MemoryError, OverflowError, struct.error)


def _make_union_folding(unite: Callable[[bytes, bytes], bytes]) -> Folding:
    def _add(state: Any, value: Any, aggregate: Aggregate) -> Any:
        """Unite a set with the state."""
        if state is None or value is None:
            return value if state is None else state
        try:
            return unite(state, value)
        except _DAMAGES as error:
            name = aggregate.column.name
            raise InvalidRequest(
                f"Column {name!r} holds bytes that aggregate function {aggregate.function!r} cannot read: {error}",
                subject=name,
                hint="write serialized values of this kind, or set another 'fields.<column>.aggregate-function'",
            ) from error

    return Folding(_add, add_older=_add)


def _unite_32_bit_bitmaps(a: bytes, b: bytes) -> bytes:
    both = BitMap.deserialize(a) | BitMap.deserialize(b)
    both.run_optimize()
    return bytes(both.serialize())


RBM32 = _make_union_folding(_unite_32_bit_bitmaps)
RBM64 = _make_union_folding(unite_64_bit_bitmaps)
HLL_SKETCH = _make_union_folding(hll_union)
THETA_SKETCH = _make_union_folding(theta_union)
