"""Columnar predicates and pruning equal their row-wise references, and simplified predicates equal both."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from paimon.domain.predicate.bind import bind
from paimon.domain.predicate.evaluate_columnar import evaluate
from paimon.domain.predicate.evaluate_row import matches
from paimon.domain.predicate.prune_file import may_match
from paimon.domain.predicate.sql import parse_predicate
from paimon.domain.predicate.transform import (
    columns_of,
    rename_columns,
    restrict_to_columns,
    rewrite_for_stored_rows,
    simplify,
    split_conjuncts,
)
from paimon.domain.stats import collect
from paimon.domain.stats.collect import collect_column_stats
from paimon.domain.stats.simple_stats import ColumnStats
from paimon.domain.types.data_types import NESTED_TYPES, BlobType, DataField, DoubleType, FloatType, VariantType
from paimon.domain.types.ddl import parse_columns
from paimon.testing.strategies import atomic_types, column_names, data_types, fields_of, rows
from paimon.testing.strategies import to_arrow_table as table_of
from paimon.testing.strategies.predicates import predicates
from paimon.testing.strategies.values import values_of


@st.composite
def drawn(draw: st.DrawFn, nan: bool = True) -> tuple[Any, tuple[DataField, ...], list[tuple[Any, ...]]]:
    """A predicate, columns, and rows."""
    types = draw(st.lists(st.one_of(atomic_types(), data_types(max_depth=1)), min_size=1, max_size=3))
    names = draw(st.lists(column_names(), min_size=len(types), max_size=len(types), unique=True))
    fields = fields_of(types, names)
    table_rows = draw(rows(fields, max_size=6, nan=nan))
    return draw(predicates(fields, rows=table_rows, nan=nan)), fields, table_rows


def _to_dict(fields: tuple[DataField, ...], row: tuple[Any, ...]) -> dict[str, Any]:
    return dict(zip((f.name for f in fields), row, strict=True))


@given(drawn())
def test_columns_equal_rows(case: Any) -> None:
    predicate, fields, table_rows = case
    table = table_of(fields, table_rows)
    expected = [matches(predicate, _to_dict(fields, row)) is True for row in table_rows]
    assert evaluate(predicate, table).to_pylist() == expected
    assert evaluate(predicate, table.slice(1)).to_pylist() == expected[1:]


@given(drawn())
def test_simplification_preserves_all_three_logical_values(case: Any) -> None:
    predicate, fields, table_rows = case
    simple = simplify(predicate)
    for row in table_rows:
        truth = matches(predicate, _to_dict(fields, row))
        assert matches(simple, _to_dict(fields, row)) is truth
        assert all(matches(part, _to_dict(fields, row)) for part in split_conjuncts(simple)) is (truth is True)


@given(drawn(), st.data())
def test_predicates_use_the_defaults_of_nulls(case: Any, data: st.DataObject) -> None:
    predicate, fields, table_rows = case
    atomic = [f for f in fields if not isinstance(f.type, (*NESTED_TYPES, VariantType, BlobType))]
    chosen = data.draw(st.lists(st.sampled_from(atomic), unique=True)) if atomic else []
    defaults = {f.name: data.draw(values_of(f.type.with_nullable(False))) for f in chosen}
    for row in table_rows:
        stored = _to_dict(fields, row)
        visible = {name: defaults.get(name) if value is None else value for name, value in stored.items()}
        assert matches(rewrite_for_stored_rows(predicate, defaults), stored) is matches(predicate, visible)


@given(drawn())
def test_a_part_over_some_columns_is_weaker(case: Any) -> None:
    predicate, fields, table_rows = case
    available_names = [f.name for f in fields[:1]]
    weak = restrict_to_columns(predicate, available_names)
    if weak is not None:
        assert columns_of(weak) <= set(available_names)
        for row in table_rows:
            if matches(predicate, _to_dict(fields, row)):
                assert matches(weak, _to_dict(fields, row)) is True


@given(drawn())
def test_predicates_follow_renamed_columns(case: Any) -> None:
    predicate, fields, table_rows = case
    renamed = rename_columns(predicate, {f.name: f"new {f.name}" for f in fields})
    for row in table_rows:
        moved = {f"new {name}": value for name, value in _to_dict(fields, row).items()}
        assert matches(renamed, moved) is matches(predicate, _to_dict(fields, row))


@settings(max_examples=200)
@given(drawn(), st.sampled_from(["none", "counts", "truncate(1)", "truncate(4)", "full"]), st.data())
def test_pruning_never_loses_a_row(case: Any, mode: str, data: st.DataObject) -> None:
    predicate, fields, table_rows = case
    table = table_of(fields, table_rows)
    nan_in_bounds = data.draw(st.booleans())
    stats_by_name = {}
    for field in fields:
        column = table.column(field.name)
        full = collect_column_stats(column, field.type)
        if isinstance(field.type, FloatType | DoubleType) and not nan_in_bounds:
            full = _drop_nan([row[fields.index(field)] for row in table_rows], full)
        stats_by_name[field.name] = collect.apply_stats_mode(full, field.type, collect.parse_mode(mode))
    known = data.draw(st.sets(st.sampled_from([f.name for f in fields])))
    row_count = data.draw(st.sampled_from([None, len(table_rows)]))
    types = {f.name: f.type for f in fields}
    may_contain = may_match(
        predicate, lambda n: stats_by_name[n] if n in known else None, types, row_count, nan_in_bounds
    )
    if any(matches(predicate, _to_dict(fields, row)) for row in table_rows):
        assert may_contain


def _drop_nan(values: list[Any], full: ColumnStats) -> ColumnStats:
    """As in ORC: a NaN in the first row makes both bounds invalid, a later NaN is ignored."""
    present = [v for v in values if v is not None]
    if present and present[0] != present[0]:
        return ColumnStats(present[0], present[0], full.null_count)
    numbers = [v for v in present if v == v]
    return ColumnStats(min(numbers), max(numbers), full.null_count) if numbers else full


def test_pruning_does_prune() -> None:
    fields = parse_columns("i INT, s STRING, d DOUBLE")
    stats = {"i": ColumnStats(1, 9, 0), "s": ColumnStats("b", "c", 3), "d": ColumnStats(1.0, 2.0, 0)}
    types = {f.name: f.type for f in fields}

    def may(text: str, nan_in_bounds: bool = False) -> bool:
        return may_match(bind(parse_predicate(text), fields), stats.get, types, 3, nan_in_bounds)

    excluded = ["i > 9", "i < 1", "i = 10", "NOT i <= 9", "i IN (0, 10)", "i IS NULL", "i BETWEEN 10 AND 12", "i = 1.5"]
    excluded += ["s = 'b'", "s IS NOT NULL", "s LIKE 'x%'", "d < 1", "i > 3 AND i > 9", "i > 9 OR d < 0", "FALSE"]
    assert [text for text in excluded if may(text)] == []
    assert all(may(text) for text in ["i > 8", "i <> 1", "s IS NULL", "d > 2", "d <= 1", "i NOT IN (1)"])
    assert not may("d > 2", nan_in_bounds=True)
