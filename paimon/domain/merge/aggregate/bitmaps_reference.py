"""rbm32, rbm64, hll_sketch and theta_sketch, value by value: unions of serialized sets.

Invariant: nulls are skipped. A single value is returned unchanged. Bitmaps of 32 bits are written in the portable form
with run containers.

Source: `FieldRoaringBitmap32Agg`, `FieldRoaringBitmap64Agg`, `FieldHllSketchAgg`, `FieldThetaSketchAgg`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from pyroaring import BitMap

from paimon.domain.errors import InvalidRequest
from paimon.domain.merge.aggregate import roaring64, sketches
from paimon.domain.merge.aggregate.reduce_reference import Folding
from paimon.domain.merge.aggregate.rule import Aggregate

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
HLL_SKETCH = _make_union_folding(sketches.hll_union)
THETA_SKETCH = _make_union_folding(sketches.theta_union)
