"""The order in which Java iterates over a `HashMap`: the order of columns in an index file, and of bitmaps in an index.

Java's writer stores them in this order, so an index with the same bytes needs it. No reader depends on it.
Invariant: the order equals Java's unless more than eight keys share one bucket of a map with 64 buckets or more.
Source: `HashMap`, `String.hashCode`, `FileIndexOptions.Column.hashCode`.
"""

# A map has a power of two of buckets, at least 16 and more than 4/3 of its keys. It is iterated bucket by bucket. `put`
# appends a key to its bucket, `computeIfAbsent` puts it in front. The hashes of "cat" and "num" have the same bucket 7:
#
#     put cat, put num                              cat, num
#     computeIfAbsent cat, computeIfAbsent num      num, cat
#
# `put` grows the map when a key is added, `computeIfAbsent` in the next call after that.

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Hashes = npt.NDArray[np.int32]
Positions = npt.NDArray[np.int64]
_LEAST_BUCKETS = 16


def order_put_names(names: Sequence[str]) -> list[str]:
    """Return different texts in the order of a map into which they were put."""
    return [names[i] for i in _order_buckets(_hash_names(names), len(names)).tolist()]


def order_computed_names(calls: Sequence[str]) -> list[str]:
    """Return the different texts of the calls of `computeIfAbsent` in the order of the map."""
    names = list(dict.fromkeys(calls))
    return [names[i] for i in order_computed(_hash_names(names), len(calls) > 0 and names[-1] != calls[-1]).tolist()]


def order_computed_columns(columns: Sequence[tuple[str, str | None]]) -> list[int]:
    """Return the positions of columns, and keys of MAP columns, in the order of Java's map of declared indexes."""
    hashes = np.array([_hash_column(*column) for column in columns], np.int64).astype(np.int32)
    return [int(i) for i in order_computed(hashes, False)]


def order_computed(hashes: Hashes, has_later_call: bool) -> Positions:
    """Return keys in the order of a map filled by `computeIfAbsent`, perhaps with a call after it."""
    count = len(hashes)
    return count - 1 - _order_buckets(hashes[::-1], count if has_later_call else count - 1)


def _order_buckets(hashes: Hashes, size: int) -> Positions:
    buckets = _LEAST_BUCKETS
    while size > buckets * 3 // 4:
        buckets *= 2
    unsigned = np.ascontiguousarray(hashes).view(np.uint32)
    places = (unsigned ^ unsigned >> np.uint32(16)) & np.uint32(buckets - 1)
    return np.argsort(places, kind="stable")


def _hash_names(names: Sequence[str]) -> Hashes:
    return np.array([_hash_name(name) for name in names], np.int64).astype(np.int32)


def _hash_column(name: str, map_key: str | None) -> int:
    state = 1
    for part in (_hash_name(name), 0 if map_key is None else _hash_name(map_key), 1237 if map_key is None else 1231):
        state = state * 31 + part
    return state & 0xFFFF_FFFF


def _hash_name(name: str) -> int:
    state = 0
    for unit in np.frombuffer(name.encode("utf-16-le"), "<u2").tolist():
        state = state * 31 + unit & 0xFFFF_FFFF
    return state
