"""Every registered aggregate function fulfils the contract of aggregate functions."""

from __future__ import annotations

from collections.abc import Sequence

import datasketches
from hypothesis import strategies as st
from pyroaring import BitMap

from paimon.domain.merge.aggregate import set_foldings
from paimon.domain.merge.aggregate.aggregate_functions import AGGREGATE_FUNCTIONS
from paimon.domain.merge.aggregate.rule import Aggregate
from paimon.domain.types import data_types as dt
from paimon.domain.types.data_types import DataField
from paimon.testing.contracts import AggregateContract
from paimon.testing.contracts.aggregates import ARRAY_OF_ROWS, Samples

NUMBERS = st.lists(st.sampled_from([0, 1, 2, 65_535, 65_536, 2**31, 2**32 - 1]), max_size=6)


def serialize_64(numbers: list[int]) -> bytes:
    containers: dict[bytes, tuple[int, ...]] = {}
    for number in numbers:
        key = (number * 65_537 >> 16).to_bytes(6, "big")
        containers[key] = tuple(sorted({*containers.get(key, ()), number & 0xFFFF}))
    return set_foldings.serialize_bitmap(containers)


def serialize_hll(numbers: list[int]) -> bytes:
    sketch = datasketches.hll_sketch(12, datasketches.tgt_hll_type.HLL_4)
    for number in numbers:
        sketch.update(number)
    return bytes(sketch.serialize_compact())


def serialize_theta(numbers: list[int]) -> bytes:
    sketch = datasketches.update_theta_sketch()
    for number in numbers:
        sketch.update(number)
    return bytes(sketch.compact().serialize())


STORED = {
    "rbm32": NUMBERS.map(lambda numbers: bytes(BitMap(numbers).serialize())),
    "rbm64": NUMBERS.map(serialize_64),
    "hll_sketch": NUMBERS.map(serialize_hll),
    "theta_sketch": NUMBERS.map(serialize_theta),
}
"""Serialized sets: of all bytes, these functions can read only such values."""


class SketchContract(AggregateContract):
    def list_samples(self) -> Sequence[Samples]:
        return [(dt.VarBinaryType(), STORED[self.function_name])]


class NestedContract(AggregateContract):
    def list_samples(self) -> Sequence[Samples]:
        return [ARRAY_OF_ROWS]

    def draw_aggregate(self, draw: st.DrawFn, column: DataField) -> Aggregate:
        is_keyed = self.function_name == "nested_partial_update" or draw(st.booleans())
        return Aggregate(
            column,
            self.function_name,
            ignore_retract=draw(st.booleans()),
            nested_key=("id",) if is_keyed else (),
            nested_sequence=("v",) if is_keyed and draw(st.booleans()) else (),
            null_keys=draw(st.sampled_from(["merge", "ignore", "error"])) if is_keyed else "merge",
            count_limit=draw(st.none() | st.integers(0, 3)),
        )


CONTRACTS = {
    **dict.fromkeys(STORED, SketchContract),
    "nested_update": NestedContract,
    "nested_partial_update": NestedContract,
}
"""Functions with values or options of their own; all others follow the plain contract."""

for name in AGGREGATE_FUNCTIONS:
    title = "Test" + name.replace("-", "_").title().replace("_", "")
    globals()[title] = type(title, (CONTRACTS.get(name, AggregateContract),), {"function_name": name})


def test_special_contracts_belong_to_registered_functions() -> None:
    assert {*CONTRACTS} <= {*AGGREGATE_FUNCTIONS}
