"""rbm32, rbm64, hll_sketch and theta_sketch, value by value: unions of serialized sets.

Sketches need the package `datasketches`. HLL sketches that still list their coupons are united here, because their
bytes show the order of a Java hash table. All others are united by the library.

Invariant: nulls are skipped. A single value is returned unchanged. Bitmaps of 32 bits are written in the portable form
with run containers.

Source: `FieldRoaringBitmap32Agg`, `FieldRoaringBitmap64Agg`, `FieldHllSketchAgg`, `FieldThetaSketchAgg`,
`HllSketchUtil`, `ThetaSketchUtil`, `CouponList`, `CouponHashSet`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

from pyroaring import BitMap

from paimon.domain.errors import InvalidRequest
from paimon.domain.extras import missing_extra
from paimon.domain.merge.aggregate import roaring64
from paimon.domain.merge.aggregate.foldings import Folding
from paimon.domain.merge.aggregate.rule import Aggregate

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
RBM64 = _make_union_folding(roaring64.union)
HLL_SKETCH = _make_union_folding(hll_union)
THETA_SKETCH = _make_union_folding(theta_union)
