"""Positions on curves equal Java's and those of the reference, for each type that has an order."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from paimon.domain.maintenance.curves_columnar import compute_hilbert_positions, compute_zorder_positions
from paimon.domain.maintenance.curves_reference import compute_hilbert_position, compute_zorder_position
from paimon.domain.row.values import to_array
from paimon.domain.types import data_types as dt
from paimon.domain.types.data_types import DataType
from paimon.domain.types.type_text import parse_type
from paimon.testing.strategies import atomic_types, values_of

VECTORS = Path(__file__).parents[2] / "data" / "vectors" / "curves.jsonl"
"""What Java 1.4.2 computes; `tests/interop/java/CurveVectors.java` prints it."""


def parse_value(text: str | None, kind: DataType) -> Any:
    if text is None or isinstance(kind, dt.CharType | dt.VarCharType):
        return text
    if isinstance(kind, dt.BooleanType):
        return text == "true"
    if isinstance(kind, dt.BinaryType | dt.VarBinaryType):
        return bytes.fromhex(text)
    if isinstance(kind, dt.DecimalType):
        return Decimal(text).quantize(Decimal(1).scaleb(-kind.scale)) if kind.precision < 20 else Decimal(text)
    if isinstance(kind, dt.FloatType):
        return float(np.float32(text))
    return float(text) if isinstance(kind, dt.DoubleType) else int(text)


def read_vectors() -> list[tuple[list[DataType], list[Any], int, str, str | None]]:
    lines = [json.loads(line) for line in VECTORS.read_text("utf8").splitlines()]
    found = []
    for line in lines:
        types = [parse_type(text) for text in line["types"]]
        values = [parse_value(text, kind) for text, kind in zip(line["values"], types, strict=True)]
        found.append((types, values, line["text_bytes"], line["zorder"], line["hilbert"]))
    return found


def test_positions_equal_those_of_java() -> None:
    wrong = []
    for types, values, text_bytes, zorder, hilbert in read_vectors():
        columns = [to_array([value], kind) for value, kind in zip(values, types, strict=True)]
        found = [compute_zorder_positions(columns, types, text_bytes)[0].as_py().hex()]
        found.append(compute_zorder_position(values, types, text_bytes).hex())
        expected: list[str | None] = [zorder, zorder]
        if hilbert is not None:
            found.append(compute_hilbert_positions(columns, types)[0].as_py().hex())
            found.append(compute_hilbert_position(values, types).hex())
            expected += [hilbert, hilbert]
        if found != expected:
            wrong.append((types, values, found, expected))
    assert wrong == []


def test_the_vectors_have_each_type_that_can_be_sorted() -> None:
    kinds = {type(kind).__name__ for types, *_ in read_vectors() for kind in types}
    nested = {kind.__name__ for kind in (*dt.NESTED_TYPES, dt.VariantType, dt.BlobType)}
    # By names: `__subclasses__` also has the classes that attrs replaced, until they are collected.
    assert kinds == {kind.__name__ for kind in DataType.__subclasses__()} - nested


@st.composite
def columns_to_sort(draw: st.DrawFn) -> tuple[list[DataType], list[tuple[Any, ...]]]:
    kinds = atomic_types(nullable=True).filter(lambda kind: not isinstance(kind, dt.VariantType | dt.BlobType))
    types = draw(st.lists(kinds, min_size=2, max_size=9))
    row = st.tuples(*(st.none() | values_of(kind) for kind in types))
    return types, draw(st.lists(row, min_size=1, max_size=4))


@settings(max_examples=60, deadline=None)
@given(drawn=columns_to_sort(), text_bytes=st.integers(1, 12), start=st.integers(0, 1))
def test_columns_have_the_positions_of_their_rows(
    drawn: tuple[list[DataType], list[tuple[Any, ...]]], text_bytes: int, start: int
) -> None:
    types, rows = drawn
    columns = [to_array(list(cells), kind)[start:] for cells, kind in zip(zip(*rows, strict=True), types, strict=True)]
    expected = [compute_zorder_position(row, types, text_bytes) for row in rows[start:]]
    assert compute_zorder_positions(columns, types, text_bytes).to_pylist() == expected
    expected = [compute_hilbert_position(row, types) for row in rows[start:]]
    assert compute_hilbert_positions(columns, types).to_pylist() == expected
