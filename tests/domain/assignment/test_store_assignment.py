"""Numbers of rows are rounded to their columns, and refused if they are too large."""

from __future__ import annotations

from decimal import Decimal
from math import inf, isnan, nan

import pyarrow as pa
import pytest

from paimon.domain.assignment.store_assignment import RoundNumbers
from paimon.domain.errors import InvalidRequest
from paimon.domain.types.data_types import DataField
from paimon.domain.types.type_text import parse_type

ROUND = RoundNumbers(
    [
        DataField(n, name, parse_type(text))
        for n, (name, text) in enumerate({"f": "FLOAT", "d": "DECIMAL(5, 2)"}.items())
    ]
)


def test_numbers_lose_digits() -> None:
    given = pa.record_batch({"f": [0.1, None, inf, nan], "d": [Decimal("1.255"), Decimal("-1.255"), None, Decimal(1)]})
    (rows,) = ROUND([given])
    assert rows.schema.types == [pa.float32(), pa.decimal128(5, 2)]
    assert rows["d"].to_pylist() == [Decimal("1.26"), Decimal("-1.26"), None, Decimal("1.00")]
    singles = rows["f"].to_pylist()
    assert singles[:3] == [0.10000000149011612, None, inf] and isnan(singles[3])
    assert ROUND.round_rows(pa.table({"f": [Decimal("0.5")]}))["f"].to_pylist() == [0.5]


@pytest.mark.parametrize(
    "values", [pa.array(["0.1"]), pa.array([1]), pa.array([Decimal("1.5")]), pa.array([0.5], pa.float32())]
)
def test_other_values_are_left_to_the_writer(values: pa.Array) -> None:
    name = "d" if pa.types.is_decimal(values.type) else "f"
    given = pa.table({name: values, "other": values})
    assert ROUND.round_rows(given) is given


@pytest.mark.parametrize(("name", "value"), [("f", 1e39), ("f", -1e300), ("d", Decimal("999.995"))])
def test_numbers_that_are_too_large_are_refused(name: str, value: object) -> None:
    with pytest.raises(InvalidRequest, match=f"Column '{name}'"):
        ROUND.round_rows(pa.table({name: [value]}))
