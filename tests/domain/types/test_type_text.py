"""Types as SQL text, JSON and Arrow, and columns as DDL, are read back as written."""

from __future__ import annotations

import itertools
from contextlib import suppress

import pyarrow as pa
import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from paimon.domain.errors import CorruptTable, InvalidRequest, Unsupported
from paimon.domain.types import data_types as dt
from paimon.domain.types.arrow import TYPE_METADATA, arrow_field, arrow_schema, arrow_type, fields_from_arrow
from paimon.domain.types.data_types import DataField
from paimon.domain.types.ddl import parse_columns
from paimon.domain.types.field_ids import all_fields, assign_ids, element_id, key_id, value_id
from paimon.domain.types.system_columns import KEY_ID_START, is_system_name, to_key_field
from paimon.domain.types.type_text import format_field, format_type, parse_type, type_from_json, type_to_json
from paimon.testing.strategies import append_schemas, column_names, data_types

_descriptions = st.none() | st.text(max_size=5)


@given(data_types(max_depth=3))
def test_text_is_read_back(data_type: dt.DataType) -> None:
    assert parse_type(format_type(data_type)) == data_type


@given(data_types(max_depth=3))
def test_case_and_blanks_of_type_text_do_not_matter(data_type: dt.DataType) -> None:
    text = format_type(data_type)
    if "`" not in text:
        assert parse_type(f"  {text.lower().replace('(', ' ( ').replace(' ', chr(10))} ") == data_type


@given(data_types(max_depth=3))
def test_json_is_read_back(data_type: dt.DataType) -> None:
    assert type_from_json(type_to_json(data_type), "schema-0") == data_type


@given(append_schemas(max_depth=2))
def test_arrow_schema_is_read_back(schema: object) -> None:
    fields = schema.fields  # type: ignore[attr-defined]
    assert fields_from_arrow(arrow_schema(fields)) == fields


@given(st.lists(st.tuples(column_names(odd=True), data_types(), _descriptions, _descriptions), min_size=1, max_size=4))
def test_ddl_is_read_back(columns: list[tuple[str, dt.DataType, str | None, str | None]]) -> None:
    fields = assign_ids(DataField(0, name, t, text, default) for name, t, text, default in columns)[0]
    assert parse_columns(",\n".join(map(format_field, fields))) == fields


@given(append_schemas(max_depth=3), st.integers(0, 1000))
def test_ids_are_given_depth_first(schema: object, start: int) -> None:
    numbered, highest = assign_ids(schema.fields, start)  # type: ignore[attr-defined]
    assert sorted(f.id for f in all_fields(numbered)) == list(range(start, highest + 1))
    for column, following in itertools.pairwise(numbered):
        assert column == next(iter(all_fields((column,))))
        assert all(column.id <= f.id < following.id for f in all_fields((column,)))


def test_a_nested_field_has_its_id_after_the_fields_in_it() -> None:
    columns = parse_columns(
        "a INT, b ROW<x INT, y ROW<z STRING, w ARRAY<ROW<v INT>>>>, c MAP<STRING, ROW<u ROW<t INT>>>"
    )
    names = {f.name: f.id for f in all_fields(columns)}
    assert names == {"a": 0, "b": 1, "x": 2, "z": 3, "v": 4, "w": 5, "y": 6, "c": 7, "t": 8, "u": 9}


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("integer", "INT"),
        ("double precision", "DOUBLE"),
        ("numeric", "DECIMAL(10, 0)"),
        ("dec(5)", "DECIMAL(5, 0)"),
        ("char", "CHAR(1)"),
        ("varchar", "VARCHAR(1)"),
        ("varchar(2147483647)", "STRING"),
        ("varbinary(2147483647) not null", "BYTES NOT NULL"),
        ("time without time zone", "TIME(0)"),
        ("timestamp", "TIMESTAMP(6)"),
        ("timestamp_ltz(3)", "TIMESTAMP(3) WITH LOCAL TIME ZONE"),
        ("timestamp(0) with local time zone null", "TIMESTAMP(0) WITH LOCAL TIME ZONE"),
        ("map<string, array<int not null>> not null", "MAP<STRING, ARRAY<INT NOT NULL>> NOT NULL"),
        ("row<a int comment 'it''s', `b c` row<>>", "ROW<`a` INT COMMENT 'it''s', `b c` ROW<>>"),
        ("struct<a: int, b: struct<c: string not null>>", "ROW<`a` INT, `b` ROW<`c` STRING NOT NULL>>"),
        ("timestamp_ntz", "TIMESTAMP(6)"),
        ("timestamp_ntz(3) not null", "TIMESTAMP(3) NOT NULL"),
        ("multiset<string>", "MULTISET<STRING>"),
        ("vector<float, 3>", "VECTOR<FLOAT, 3>"),
    ],
)
def test_accepted_forms(text: str, written: str) -> None:
    assert format_type(parse_type(text)) == written


@pytest.mark.parametrize(
    "text",
    ["", "OBJECT<a INT>", "INTT", "DECIMAL(39, 0)", "DECIMAL(4, 5)", "CHAR(0)", "VARCHAR(99999999999)", "TIMESTAMP(10)",
     "INT INT", "INT(4)", "ARRAY<INT", "ARRAY", "MAP<INT>", "TIME(-1)", "INT NOT", "INT;", "ARRAY<" * 200 + "INT",
     "TIMESTAMP_NTZ WITH LOCAL TIME ZONE", "STRUCT"],
)  # fmt: skip
def test_refused_texts(text: str) -> None:
    with pytest.raises(InvalidRequest):
        parse_type(text)


def test_newer_types_are_unsupported_and_name_the_file() -> None:
    with pytest.raises(Unsupported, match="schema-7"):
        type_from_json("GEOMETRY(4326)", "t/schema/schema-7")


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda v: st.lists(v) | st.dictionaries(
    st.sampled_from(["type", "element", "fields", "key", "value", "id", "name", "length"]) , v)))  # fmt: skip
def test_any_json_is_a_type_or_corrupt(value: object) -> None:
    try:
        type_from_json(value, "the-file")
    except CorruptTable as error:
        assert error.path == "the-file"


@given(st.text(max_size=30) | st.text("ARYINTMPOW<>(), 0123456789'`", max_size=30))
def test_any_text_is_a_type_or_refused(text: str) -> None:
    with suppress(InvalidRequest, Unsupported):
        parse_type(text)


@pytest.mark.parametrize("text", ["", "()", "a", "a INT b INT", "a INT,", "PRIMARY KEY (a)", "a INT, PRIMARY KEY (a)"])
def test_refused_column_lists(text: str) -> None:
    with pytest.raises(InvalidRequest):
        parse_columns(text)


def test_types_that_arrow_has_need_no_metadata() -> None:
    plain = parse_columns(
        "a INT, b STRING NOT NULL, c ARRAY<ROW<x TIMESTAMP(6)>>, d DECIMAL(9, 2), e TIMESTAMP_LTZ(3), f VARIANT"
    )
    assert all(arrow_field(f).metadata is None for f in plain)
    fields = parse_columns("a CHAR(3), b TIME(0), c TIMESTAMP(4), d MULTISET<STRING>, e BLOB, f BINARY(2)")
    assert all(TYPE_METADATA in arrow_field(f).metadata for f in fields)


def test_metadata_that_contradicts_the_data_is_ignored() -> None:
    stale = pa.field("a", pa.int64(), metadata={TYPE_METADATA: b"CHAR(3)"})
    assert fields_from_arrow(pa.schema([stale])) == (DataField(0, "a", dt.BigIntType()),)
    broken = pa.field("a", pa.string(), metadata={TYPE_METADATA: b"\xff<"})
    assert fields_from_arrow(pa.schema([broken])) == (DataField(0, "a", dt.VarCharType()),)


@pytest.mark.parametrize(
    ("arrow", "expected"),
    [
        (pa.uint64(), "DECIMAL(20, 0)"),
        (pa.uint32(), "BIGINT"),
        (pa.large_string(), "STRING"),
        (pa.dictionary(pa.int8(), pa.string()), "STRING"),
        (pa.binary(16), "BINARY(16)"),
        (pa.timestamp("ns", tz="Europe/Berlin"), "TIMESTAMP(9) WITH LOCAL TIME ZONE"),
        (pa.large_list(pa.field("item", pa.float16(), nullable=False)), "ARRAY<FLOAT NOT NULL>"),
        (pa.list_(pa.int8(), 3), "ARRAY<TINYINT>"),
        (pa.map_(pa.string(), pa.int32()), "MAP<STRING, INT>"),
        (pa.date64(), "DATE"),
        (pa.uuid(), "BINARY(16)"),
    ],
)
def test_arrow_types_of_users(arrow: pa.DataType, expected: str) -> None:
    assert format_type(fields_from_arrow(pa.schema([("a", arrow)]))[0].type) == expected


@pytest.mark.parametrize("arrow", [pa.null(), pa.duration("s"), pa.list_(pa.null()), pa.decimal256(50, 2)])
def test_arrow_types_without_counterpart_are_refused(arrow: pa.DataType) -> None:
    with pytest.raises(InvalidRequest, match="'a"):
        fields_from_arrow(pa.schema([("a", arrow)]))


def test_canonical_arrow_types() -> None:
    units = [arrow_type(dt.TimestampType(p)).unit for p in range(10)]
    assert units == ["s", *["ms"] * 3, *["us"] * 3, *["ns"] * 3]
    assert arrow_type(parse_type("TIMESTAMP(7) WITH LOCAL TIME ZONE")) == pa.timestamp("ns", tz="UTC")
    assert arrow_type(parse_type("TIME(2)")) == pa.time32("ms")


def test_ids_of_system_columns_and_nested_parts() -> None:
    # Numbers as in Java's Parquet files.
    assert (element_id(1, 1), key_id(3, 1), value_id(3, 1)) == (536871936, 536867838, 536873984)
    key = to_key_field(DataField(4, "id", dt.IntType(nullable=False), "text"))
    assert (key.id, key.name, key.description) == (KEY_ID_START + 4, "_KEY_id", None)
    assert is_system_name("_KEY_x") and is_system_name("rowkind") and not is_system_name("_KE")
    assert evolve(key, id=4).type == dt.IntType(nullable=False)
