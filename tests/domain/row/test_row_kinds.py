"""Row kinds as texts and as numbers."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

from paimon.domain.errors import InvalidRequest
from paimon.domain.row.kinds import KIND_TEXTS, RowKind, parse_row_kinds, repeat_kind

TEXT_TYPES = [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]


@pytest.mark.parametrize("text_type", TEXT_TYPES, ids=str)
def test_texts_are_parsed(text_type: pa.DataType) -> None:
    column = pa.chunked_array([pa.array(["-D", "+I"], text_type), pa.array(["+U", "-U"], text_type)])
    found = parse_row_kinds(column, "kind")
    assert found.type == pa.int8() and found.to_pylist() == [3, 0, 2, 1]


@pytest.mark.parametrize("value", [None, "I", "+D", ""])
def test_other_texts_and_nulls_are_refused(value: str | None) -> None:
    with pytest.raises(InvalidRequest, match=re.escape(f"'kind' contains {value!r}")) as raised:
        parse_row_kinds(pa.chunked_array([pa.array(["+I", value, "bad"], pa.string())]), "kind")
    assert raised.value.subject == "kind"


def test_numbers_are_refused() -> None:
    with pytest.raises(InvalidRequest, match="has the type int8, not text"):
        parse_row_kinds(pa.chunked_array([pa.array([0], pa.int8())]), "kind")


def test_a_kind_is_repeated_and_has_a_text() -> None:
    assert repeat_kind(RowKind.DELETE, 2).to_pylist() == [3, 3]
    assert tuple(kind.text for kind in RowKind) == KIND_TEXTS
