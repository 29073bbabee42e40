"""Normalized keys of texts have the order of the texts: texts of equal length, digits, and others."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from paimon.domain.merge.ordering.key_groups import mask_newest_rows
from paimon.domain.merge.ordering.normalized_keys import pack_keys, to_key_parts, to_key_parts_by_chunk

PREFIXES = st.sampled_from(["", "0", "customer-000", "id:", "a prefix that is longer than all words together "])
CHARACTERS = st.sampled_from(["0123456789", "0123456789abcdef", "/09:", "ab", "0\x00", "é0"])


@st.composite
def chunks(draw: st.DrawFn) -> list[list[str]]:
    """Chunks of texts, most often all equally long."""
    prefix, characters, width = draw(PREFIXES), draw(CHARACTERS), draw(st.integers(0, 34))
    shortest = width if draw(st.booleans()) else 0
    text = st.text(characters, min_size=shortest, max_size=width).map(lambda tail: prefix + tail)
    return draw(st.lists(st.lists(text, max_size=6), min_size=1, max_size=4))


@settings(max_examples=100, deadline=None)
@given(chunks())
@example([["9", "10"], ["10"]])
def test_words_order_texts_as_their_bytes_do(texts: list[list[str]]) -> None:
    column = pa.chunked_array([pa.array(chunk, pa.string()) for chunk in texts])
    values = [value.encode() for chunk in texts for value in chunk]
    for parts in (to_key_parts_by_chunk(column), to_key_parts(column.combine_chunks())):
        words = [tuple(word[row].item() for word in pack_keys(parts)) for row in range(len(values))]
        for left, low in zip(values, words, strict=True):
            assert [low < high for high in words] == [left < right for right in values]


@settings(max_examples=60, deadline=None)
@given(chunks())
def test_the_newest_of_each_text_is_its_last(texts: list[list[str]]) -> None:
    column = pa.chunked_array([pa.array(chunk, pa.string()) for chunk in texts])
    values = [value for chunk in texts for value in chunk]
    last = {value: row for row, value in enumerate(values)}
    assert mask_newest_rows([column]).tolist() == [last[value] == row for row, value in enumerate(values)]


@pytest.mark.parametrize("width", [1, 7, 8, 9, 16, 20])
def test_numbers_that_text_spells_need_few_bits(width: int) -> None:
    column = pa.chunked_array([[f"k{number:0{width}}" for number in chunk] for chunk in (range(9), range(3, 9))])
    (part,) = to_key_parts_by_chunk(column)
    assert (part.values.tolist(), part.bits) == ([*range(9), *range(3, 9)], 4)
