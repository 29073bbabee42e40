"""File indexes: columnar builders equal their reference, and selections never lose a row that matches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from attrs import frozen
from hypothesis import example, given, settings
from hypothesis import strategies as st

from paimon.domain.errors import CorruptTable, InvalidRequest, Unsupported
from paimon.domain.index.bloom_filter import xx_hash, xx_hash_texts
from paimon.domain.index.build_indexes import IndexBuilder
from paimon.domain.index.container import decode_head, encode_container
from paimon.domain.index.index_bytes import mask_to_bitmap, pack_bitmap, to_bitmap
from paimon.domain.index.index_reference import build_index
from paimon.domain.index.select_rows import FileIndexes
from paimon.domain.predicate.evaluate_row import matches
from paimon.domain.predicate.expression import And, Compare, In, IsNull, Like, Operator, Or, Predicate
from paimon.domain.row.row_hash import hash_bytes
from paimon.domain.row.row_hash_columnar import hash_texts
from paimon.domain.row.values import to_array
from paimon.domain.schema.declared_indexes import DeclaredIndex, supports_type
from paimon.domain.types import data_types as dt
from paimon.domain.types.arrow import arrow_schema
from paimon.domain.types.data_types import DataField, DataType
from paimon.testing.strategies.predicates import predicates
from paimon.testing.strategies.values import values_of

KINDS = ("bloom-filter", "bitmap", "bsi", "range-bitmap")
TYPES: tuple[DataType, ...] = (
    dt.BooleanType(), dt.TinyIntType(), dt.SmallIntType(), dt.IntType(), dt.BigIntType(), dt.FloatType(),
    dt.DoubleType(), dt.DecimalType(12, 3), dt.VarCharType(), dt.CharType(4), dt.VarBinaryType(), dt.DateType(),
    dt.TimeType(3), dt.TimestampType(0), dt.TimestampType(3), dt.LocalZonedTimestampType(6), dt.TimestampType(9),
)  # fmt: skip
SETTINGS = {"items": "20", "version": "2", "index-block-size": "48 b", "chunk-size": "20 b"}


@frozen
class Indexed:
    """A column `a` with one index."""

    index: DeclaredIndex
    data_type: DataType
    values: list[Any]

    @property
    def fields(self) -> tuple[DataField, ...]:
        return (DataField(0, "a", self.data_type),)

    def build(self, step: int = 5) -> bytes:
        rows = pa.Table.from_arrays([to_array(self.values, self.data_type)], schema=arrow_schema(self.fields))
        builder = IndexBuilder([self.index], self.fields)
        for start in range(0, len(self.values), step):
            builder.add(rows.slice(start, step))
        return encode_container(builder.close())

    def open(self, data: bytes) -> FileIndexes:
        entries = decode_head(data, "f.index")
        return FileIndexes(
            "f.index", len(self.values), {"a": self.data_type}, entries, lambda e: e.cut(data, "f.index")
        )


@st.composite
def indexed_columns(draw: st.DrawFn, kinds: Sequence[str] = KINDS) -> Indexed:
    kind = draw(st.sampled_from(kinds))
    data_type = draw(st.sampled_from([t for t in TYPES if supports_type(kind, t)]))
    pool = draw(st.lists(values_of(data_type), min_size=1, max_size=20))
    values = draw(st.lists(st.sampled_from(pool), min_size=1, max_size=40))
    has_settings = draw(st.booleans())
    found = SETTINGS | {"version": draw(st.sampled_from("12"))} if has_settings else {"items": "20"}
    return Indexed(DeclaredIndex(kind, "a", None, found), data_type, values)


@settings(max_examples=60)
@given(indexed_columns())
@example(Indexed(DeclaredIndex("bsi", "a"), dt.BigIntType(), [1, -(1 << 63)]))
@example(Indexed(DeclaredIndex("bitmap", "a"), dt.IntType(), [*range(13)]))
@example(Indexed(DeclaredIndex("bitmap", "a"), dt.IntType(), [*range(13), 0]))
@example(Indexed(DeclaredIndex("bitmap", "a"), dt.VarCharType(), ["x" * n for n in (0, 40, 5_000)]))
@example(Indexed(DeclaredIndex("bloom-filter", "a", None, {"items": "9"}), dt.VarCharType(), ["y" * 5_000, "z" * 33]))
def test_builders_equal_their_reference(column: Indexed) -> None:
    data = column.build()
    wanted = build_index(column.index, column.data_type, column.values)
    found = {e.kind: e.cut(data, "f") for e in decode_head(data, "f")}
    assert found == ({} if wanted is None else {column.index.kind: wanted})


@settings(max_examples=60)
@given(st.data())
def test_selections_contain_each_matching_row(data: st.DataObject) -> None:
    column = data.draw(indexed_columns())
    predicate = data.draw(predicates(column.fields, rows=[(v,) for v in column.values]))
    selection = column.open(column.build()).select(predicate)
    matching = {i for i, value in enumerate(column.values) if matches(predicate, {"a": value})}
    assert selection.rows is None or matching <= set(selection.rows)


@settings(max_examples=60)
@given(st.data())
def test_selections_of_exact_indexes_are_the_matching_rows(data: st.DataObject) -> None:
    column = data.draw(indexed_columns(("bitmap", "range-bitmap", "bsi")))
    literal = data.draw(st.sampled_from(column.values) | values_of(column.data_type))
    operator = data.draw(
        st.sampled_from((Operator.EQ, Operator.NE) if column.index.kind == "bitmap" else list(Operator))
    )
    comparison = Compare("a", operator, literal)
    is_exact = not isinstance(column.data_type, dt.CharType) and column.data_type != dt.TimestampType(9)
    predicate = data.draw(st.sampled_from([IsNull("a"), comparison, Or((comparison, IsNull("a")))]))
    if not is_exact:
        predicate = IsNull("a")
    selection = column.open(column.build()).select(predicate)
    if column.index.kind == "bsi" and -(1 << 63) in column.values:
        assert selection.rows is None  # no index
        return
    matching = {i for i, value in enumerate(column.values) if matches(predicate, {"a": value})}
    assert set(range(len(column.values)) if selection.rows is None else selection.rows) == matching


def select(kind: str, data_type: DataType, values: list[Any], predicate: Predicate) -> list[int] | None:
    column = Indexed(DeclaredIndex(kind, "a", None, {"items": "50"}), data_type, values)
    rows = column.open(column.build()).select(predicate).rows
    return None if rows is None else list(rows)


def test_prefixes_select_by_a_sorted_dictionary() -> None:
    texts = ["ab", "abc", "b", None, "abé", "aa"]
    assert select("range-bitmap", dt.VarCharType(), texts, Like("a", "ab%")) == [0, 1, 4]
    assert select("bitmap", dt.VarCharType(), texts, Like("a", "ab")) == [0]
    assert select("bitmap", dt.VarCharType(), texts, Like("a", "ab%")) is None


def test_a_bloom_filter_skips_files_without_a_value() -> None:
    assert select("bloom-filter", dt.IntType(), [1, 2, 3], Compare("a", Operator.EQ, 2)) is None
    assert select("bloom-filter", dt.IntType(), [1, 2, 3], Compare("a", Operator.EQ, 77)) == []
    assert select("bloom-filter", dt.IntType(), [1, 2, 3], In("a", (77, 78))) == []
    assert select("bloom-filter", dt.IntType(), [1, 2, 3], Compare("a", Operator.NE, 77)) is None


def test_texts_of_char_columns_are_not_searched() -> None:
    assert select("bitmap", dt.CharType(4), ["ab ", "x"], Compare("a", Operator.EQ, "ab")) is None
    assert select("bitmap", dt.CharType(4), ["ab ", None], IsNull("a")) == [1]


def test_timestamps_beyond_microseconds_are_widened() -> None:
    values = [1_000, 1_001, 3_000]
    kind = dt.TimestampType(9)
    assert select("bsi", kind, values, Compare("a", Operator.NE, 1_000)) is None
    assert select("bsi", kind, values, Compare("a", Operator.LT, 1_001)) == [0, 1]
    assert select("bitmap", kind, values, Compare("a", Operator.EQ, 1_001)) == [0, 1]


def test_indexes_of_several_columns_narrow_each_other() -> None:
    fields = (DataField(0, "a", dt.IntType()), DataField(1, "m", dt.MapType(dt.VarCharType(), dt.IntType())))
    rows = pa.table({"a": pa.array([1, 2, 1, 3], pa.int32()),
                     "m": pa.array([[("k", 5)], None, [("k", 6)], []], pa.map_(pa.string(), pa.int32()))})  # fmt: skip
    builder = IndexBuilder([DeclaredIndex("bitmap", "a"), DeclaredIndex("bitmap", "m", "k")], fields)
    builder.add(rows)
    data = encode_container(builder.close())
    types = {f.name: f.type for f in fields}
    indexes = FileIndexes("f", 4, types, decode_head(data, "f"), lambda e: e.cut(data, "f"))
    both = indexes.select(And((Compare("a", Operator.EQ, 1), Compare("m[k]", Operator.EQ, 6))))
    assert (list(both.rows or ()), both.indexes) == ([2], ("bitmap(a)", "bitmap(m[k])"))
    assert list(indexes.select(IsNull("m[k]")).rows or ()) == [1, 3]


def test_an_empty_index_of_a_map_key_selects_no_value() -> None:
    data = encode_container([("m[k]", "bitmap", None)])
    types: dict[str, DataType] = {"m": dt.MapType(dt.VarCharType(), dt.IntType())}
    indexes = FileIndexes("f", 4, types, decode_head(data, "f"), lambda e: e.cut(data, "f"))
    assert indexes.select(Compare("m[k]", Operator.EQ, 6)).is_empty
    assert indexes.select(IsNull("m[k]")).rows is None
    assert indexes.select(IsNull("m[k]", negated=True)).is_empty


@settings(max_examples=60)
@given(st.data())
def test_damage_is_an_error_or_rows_of_the_file(data: st.DataObject) -> None:
    column = data.draw(indexed_columns())
    stored = bytearray(column.build())
    if data.draw(st.booleans()):
        stored = stored[: data.draw(st.integers(0, len(stored) - 1))]
    else:
        for _ in range(data.draw(st.integers(1, 3))):
            stored[data.draw(st.integers(0, len(stored) - 1))] = data.draw(st.integers(0, 255))
    predicate = data.draw(predicates(column.fields, rows=[(v,) for v in column.values]))
    try:
        rows = column.open(bytes(stored)).select(predicate).rows
    except (CorruptTable, Unsupported):
        return
    assert rows is None or not rows or rows.max() < len(column.values)


def test_a_truncated_index_is_refused() -> None:
    column = Indexed(DeclaredIndex("bitmap", "a"), dt.IntType(), [1, 1, 2, 3])
    data = column.build()
    for size in range(len(data) - 1):
        with pytest.raises(CorruptTable):
            column.open(data[:size]).select(Compare("a", Operator.EQ, 1))


def test_a_later_version_of_the_container_is_unsupported() -> None:
    data = bytearray(encode_container([]))
    data[11] = 2
    with pytest.raises(Unsupported, match="version 2"):
        decode_head(bytes(data), "f.index")


def test_filters_of_impossible_sizes_are_refused() -> None:
    for settings_of_filter in ({"items": "0"}, {"fpp": "1"}, {"items": "2000000000"}):
        with pytest.raises(InvalidRequest, match="bloom filter"):
            Indexed(DeclaredIndex("bloom-filter", "a", None, settings_of_filter), dt.IntType(), [1]).build()


@given(st.lists(st.binary(max_size=120) | st.binary(min_size=30, max_size=34)))
@example([b"x" * 3_000, b"", b"y" * 2_048])
def test_hashes_of_many_texts_equal_those_of_single_ones(texts: list[bytes]) -> None:
    column = pa.array([b"other", *texts], pa.binary()).slice(1)
    assert xx_hash_texts(column).tolist() == [xx_hash(text) for text in texts]
    assert hash_texts(column).tolist() == [hash_bytes(text) for text in texts]


def test_hashes_equal_published_ones() -> None:
    assert xx_hash(b"") == 0xEF46DB3751D8E999
    assert xx_hash(b"a") == 0xD24EC4F1A98C6E5B
    assert xx_hash(b"abc") == 0x44BC2CF5AD770999


@given(st.data())
@settings(max_examples=25)
def test_a_bitmap_of_a_mask_is_that_of_its_positions(data: st.DataObject) -> None:
    size = data.draw(st.sampled_from([0, 1, 9, 4_097, 65_536, 65_537, 140_001]))
    share = data.draw(st.sampled_from([0.0, 0.001, 0.0625, 0.5, 1.0]))
    mask = np.random.default_rng(data.draw(st.integers(0, 99))).random(size) < share
    found, wanted = mask_to_bitmap(mask), to_bitmap(np.flatnonzero(mask))
    assert found == wanted and pack_bitmap(found) == pack_bitmap(wanted)
