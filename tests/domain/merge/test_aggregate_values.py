"""Bitmaps of 64-bit numbers and sketches against their libraries."""

from __future__ import annotations

import datasketches
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paimon.domain.merge.aggregate import set_foldings


def serialize_hll(numbers: list[int]) -> bytes:
    sketch = datasketches.hll_sketch(12, datasketches.tgt_hll_type.HLL_4)
    for number in numbers:
        sketch.update(number)
    return bytes(sketch.serialize_compact())


@settings(max_examples=25)
@given(st.lists(st.lists(st.integers(0, 2**63 - 1), min_size=1, max_size=60), min_size=2, max_size=3))
def test_64_bit_bitmaps_contain_the_inserted_values(parts: list[list[int]]) -> None:
    def numbers_of(data: bytes) -> set[int]:
        bitmap = set_foldings.parse_bitmap(data)
        return {int.from_bytes(key, "big") << 16 | low for key, values in bitmap.items() for low in values}

    def serialize(numbers: list[int]) -> bytes:
        keys = sorted({n >> 16 for n in numbers})
        return set_foldings.serialize_bitmap(
            {key.to_bytes(6, "big"): tuple(sorted({n & 0xFFFF for n in numbers if n >> 16 == key})) for key in keys}
        )

    united = serialize(parts[0])
    for part in parts[1:]:
        united = set_foldings.unite_64_bit_bitmaps(united, serialize(part))
    assert numbers_of(united) == {n for part in parts for n in part}


@given(st.sets(st.integers(0, 500), min_size=1, max_size=80), st.sets(st.integers(0, 500), max_size=80))
def test_unions_of_hll_sketches_count_as_the_library_does(a: set[int], b: set[int]) -> None:
    union = datasketches.hll_union(12)
    for numbers in (a, b):
        union.update(datasketches.hll_sketch.deserialize(serialize_hll(sorted(numbers))))
    found = datasketches.hll_sketch.deserialize(
        set_foldings.hll_union(serialize_hll(sorted(a)), serialize_hll(sorted(b)))
    )
    assert found.get_estimate() == pytest.approx(union.get_result().get_estimate(), rel=1e-6)
