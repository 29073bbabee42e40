"""rbm32, rbm64, hll_sketch and theta_sketch, value by value: stored sets that are united.

Law: nulls are skipped, and what was not united is left as it is. Bitmaps of 32 bits are in the portable form,
run-optimised. Source: `FieldRoaringBitmap32Agg`, `FieldRoaringBitmap64Agg`, `FieldHllSketchAgg`, `FieldThetaSketchAgg`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from pyroaring import BitMap

from paimon.domain.errors import InvalidRequest
from paimon.domain.merge.aggregate.reference import roaring64, sketches
from paimon.domain.merge.aggregate.reference.fold import Folding
from paimon.domain.merge.aggregate.rule import Aggregate

# RecursionError is a RuntimeError, and so is what the sketches' library raises.
_DAMAGES = (ValueError, RuntimeError, IndexError, KeyError, MemoryError, OverflowError, struct.error)


def _united(unite: Callable[[bytes, bytes], bytes]) -> Folding:
    def add(state: Any, value: Any, aggregate: Aggregate) -> Any:
        if state is None or value is None:
            return value if state is None else state
        try:
            return unite(state, value)
        except _DAMAGES as error:
            name = aggregate.column.name
            raise InvalidRequest(
                f"column {name!r} holds bytes that aggregate function {aggregate.function!r} cannot read: {error}",
                subject=name,
            ) from error

    return Folding(add, add_older=add)


def _or_of_32_bits(a: bytes, b: bytes) -> bytes:
    both = BitMap.deserialize(a) | BitMap.deserialize(b)
    both.run_optimize()
    return bytes(both.serialize())


RBM32 = _united(_or_of_32_bits)
RBM64 = _united(roaring64.union)
HLL_SKETCH = _united(sketches.hll_union)
THETA_SKETCH = _united(sketches.theta_union)
