"""Columns of files are matched with columns of the table by field id."""

from __future__ import annotations

from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from paimon.domain.schema.read_mapping import has_same_values, map_fields, prune_type
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.types.data_types import DataField, DataType, RowType
from paimon.domain.types.ddl import parse_columns
from paimon.domain.types.field_ids import all_fields
from paimon.domain.types.type_text import parse_type
from paimon.testing.strategies import schemas


@given(schemas(max_depth=2))
def test_a_file_of_the_same_schema_needs_no_mapping(schema: TableSchema) -> None:
    for mapping in map_fields(schema.fields, schema.fields):
        assert mapping.source == mapping.wanted and not mapping.needs_cast


@given(schemas(max_depth=2), st.data())
def test_every_requested_field_is_found_by_its_id(schema: TableSchema, data: st.DataObject) -> None:
    """Against a file whose fields were renamed, dropped and shuffled at random."""
    file_fields = data.draw(_change_columns(schema.fields))
    file_fields_by_id = {f.id: f for f in all_fields(file_fields)}
    for mapping in map_fields(schema.fields, file_fields):
        if mapping.source is None:
            continue
        assert mapping.source.id == mapping.wanted.id
        wanted_ids = {f.id for f in all_fields((mapping.wanted,))}
        for part in all_fields((mapping.source,)):
            assert part.id in wanted_ids and part.name == file_fields_by_id[part.id].name
        if not mapping.needs_cast:
            assert has_same_values(mapping.source.type, mapping.wanted.type)


@st.composite
def _change_columns(draw: st.DrawFn, fields: tuple[DataField, ...]) -> tuple[DataField, ...]:
    columns = []
    for column in draw(st.permutations(fields)):
        if draw(st.integers(0, 4)) == 0:
            continue
        data_type: DataType = column.type
        if isinstance(data_type, RowType):
            data_type = evolve(data_type, fields=draw(_change_columns(data_type.fields)))
        columns.append(evolve(column, name=f"old_{column.name}", type=data_type))
    return tuple(columns)


def test_types_and_nested_names_decide_on_a_cast() -> None:
    (old,) = parse_columns("r ROW<a INT, b STRING>")
    renamed = evolve(old, name="s")
    (longer,) = parse_columns("r ROW<a BIGINT, b STRING>")
    (inner,) = parse_columns("r ROW<a INT, c STRING>")
    assert [m.needs_cast for w in (renamed, longer, inner) for m in map_fields((w,), (old,))] == [False, True, True]
    (nullable,) = parse_columns("r ROW<a INT NOT NULL, b STRING> NOT NULL")
    assert not map_fields((nullable,), (old,))[0].needs_cast


def test_nested_rows_are_pruned_to_the_requested_fields() -> None:
    (file_field,) = parse_columns("m MAP<STRING, ARRAY<ROW<a INT, b STRING, c ROW<d INT, e INT>>>>")
    # ids: m 0, a 1, b 2, d 3, e 4, c 5
    wanted = _remove_fields(file_field, {1, 4})
    (mapping,) = map_fields((wanted,), (file_field,))
    assert mapping.source is not None and mapping.source.type == wanted.type and not mapping.needs_cast


def _remove_fields(column: DataField, ids: set[int]) -> DataField:
    text = "MAP<STRING, ARRAY<ROW<`b` STRING, `c` ROW<`d` INT>>>>"
    numbered = iter(sorted({1, 2, 3, 4, 5} - ids))

    def renumber(t: DataType) -> DataType:
        if isinstance(t, RowType):
            return RowType(evolve(f, type=renumber(f.type), id=next(numbered)) for f in t.fields)
        for part in ("element", "value"):
            if hasattr(t, part):
                return evolve(t, **{part: renumber(getattr(t, part))})  # type: ignore[arg-type]
        return t

    return evolve(column, type=renumber(parse_type(text)))


def test_a_row_without_remaining_fields_is_null() -> None:
    """As Java reads it: the row itself, not its fields."""
    (file_field,) = parse_columns("r ARRAY<ROW<a INT>>")
    wanted = evolve(file_field, type=parse_type("ARRAY<ROW<b INT>>"))
    other_id = evolve(wanted, type=evolve(wanted.type, element=RowType((DataField(9, "b", parse_type("INT")),))))  # type: ignore[call-arg]
    assert prune_type(file_field.type, other_id.type) is None
    assert map_fields((other_id,), (file_field,))[0].source is None
