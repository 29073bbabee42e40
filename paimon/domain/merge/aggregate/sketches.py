"""Unions of serialized sketches; needs the package `datasketches`.

HLL sketches that still list their coupons are united here, because their bytes show the order of a Java hash table. All
others are united by the library.

Source: `HllSketchUtil`, `ThetaSketchUtil`, `CouponList`, `CouponHashSet`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from types import ModuleType

from paimon.domain.extras import missing_extra

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
        _put(slots, coupon)
        if 4 * sum(map(bool, slots)) > 3 * len(slots):
            log_table = len(slots).bit_length()
            if log_table > _LOG_SIZE - 3:
                return None
            slots = _build_table(log_table, slots)
    return slots


def _build_table(log_table: int, coupons: Iterable[int]) -> Slots:
    slots = [0] * (1 << log_table)
    for coupon in filter(None, coupons):
        _put(slots, coupon)
    return slots


def _put(slots: Slots, coupon: int) -> None:
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
