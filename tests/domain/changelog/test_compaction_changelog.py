"""Rows and changelog of a columnar compaction equal the row-wise reference, for every merge engine. The changelog leads
from the rows before to the rows after."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from paimon.domain.changelog import compaction_changelog_columnar as columnar
from paimon.domain.changelog import compaction_changelog_reference as reference
from paimon.domain.changelog.compaction_changelog_rules import ChangeRules
from paimon.domain.changelog.difference_reference import is_equal_value
from paimon.domain.errors import InvalidRequest
from paimon.domain.merge.merge_engines import MERGE_ENGINES
from paimon.domain.merge.merge_spec import MergeSpec
from paimon.domain.merge.record import Record
from paimon.domain.options.table_options import TableOptions
from paimon.domain.row.kinds import RowKind
from paimon.domain.types.data_types import DataField, DoubleType, IntType, VarCharType

KEYS = (DataField(0, "k", IntType(nullable=False)), DataField(1, "j", VarCharType(nullable=False)))
FIELDS = (DataField(2, "s", IntType()), DataField(3, "a", IntType()), DataField(4, "b", DoubleType()))
TYPES = {"k": pa.int32(), "j": pa.string(), "s": pa.int32(), "a": pa.int32(), "b": pa.float64()}
SMALL = st.none() | st.integers(-1, 2)
DOUBLE = st.none() | st.sampled_from([0.0, -0.0, 1.5, float("nan")])
TOP, ABOVE = 5, 7
EVERY = st.sampled_from(list(RowKind))
ADDS = st.sampled_from([RowKind.INSERT, RowKind.UPDATE_AFTER])
Drawn = tuple[MergeSpec, st.SearchStrategy[RowKind]]


def deduplicate(draw: st.DrawFn) -> Drawn:
    fields = draw(st.sampled_from([(), ("s",), ("b", "s")]))
    spec = MergeSpec(KEYS, FIELDS, fields, draw(st.booleans()), ignore_delete=draw(st.booleans()))
    return spec, EVERY


def first_row(draw: st.DrawFn) -> Drawn:
    ignoring = draw(st.booleans())
    return MergeSpec(KEYS, FIELDS, ignore_delete=ignoring), EVERY if ignoring else ADDS


def aggregation(draw: st.DrawFn) -> Drawn:
    retractable = ["sum", "last_value", "last_non_null_value", "product"]
    functions = [f"fields.{n}.aggregate-function" for n in ("s", "a", "b")]
    chosen = {name: draw(st.sampled_from([*retractable, "max", "first_value"])) for name in functions}
    chosen["aggregation.remove-record-on-delete"] = str(draw(st.booleans())).lower()
    exact = set(chosen.values()) <= {*retractable, "true", "false"}
    fields = draw(st.sampled_from([(), ("b",)]))
    return MergeSpec(KEYS, FIELDS, fields, options=TableOptions.of(chosen)), EVERY if exact else ADDS


def partial_update(draw: st.DrawFn) -> Drawn:
    options, kinds = draw(st.sampled_from([
        ({}, ADDS),
        ({"partial-update.remove-record-on-delete": "true"}, EVERY),
        ({"fields.s.sequence-group": "a"}, EVERY),
        ({"fields.s.sequence-group": "a,b", "fields.a.aggregate-function": "sum",
          "partial-update.remove-record-on-sequence-group": "s"}, EVERY),
    ]))  # fmt: skip
    return MergeSpec(KEYS, FIELDS, options=TableOptions.of(options)), kinds


def draw_without_options(draw: st.DrawFn) -> Drawn:
    return MergeSpec(KEYS, FIELDS), ADDS


DRAWN: dict[str, Callable[[st.DrawFn], Drawn]] = {
    "deduplicate": deduplicate, "first-row": first_row, "aggregation": aggregation, "partial-update": partial_update,
}  # fmt: skip
"""The engines that have options or take retracts."""


@st.composite
def compactions(draw: st.DrawFn, engine: str, full: bool) -> tuple[ChangeRules, list[Record], list[Record]]:
    """Rules, the records to compact, and the records above the output level."""
    spec, kinds = DRAWN.get(engine, draw_without_options)(draw)
    spec = evolve(spec, engine=engine, lookup=engine != "first-row" and (not full or draw(st.booleans())))
    rules = ChangeRules(
        spec, TOP if full else None, draw(st.sampled_from([True, True, True, False])), draw(st.booleans()),
        draw(st.sets(st.sampled_from(["s", "a", "b", "k"]))), only_moves_file=draw(st.booleans()),
    )  # fmt: skip
    level = st.sampled_from([0, 0, 1, 3, TOP] if full else [0, 0, 1, 3, ABOVE])
    rows = draw(st.lists(st.tuples(st.integers(0, 3), st.sampled_from("xy"), level, kinds, SMALL, SMALL, DOUBLE),
                         max_size=20, unique_by=lambda r: r[:3] if r[2] else object()))  # fmt: skip
    rows.sort(key=lambda r: -r[2])
    records = [
        Record({"k": k, "j": j, "s": s, "a": a, "b": b}, n, kind, at)
        for n, (k, j, at, kind, s, a, b) in enumerate(rows)
    ]
    records = [evolve(r, kind=RowKind.INSERT) if r.level == TOP else r for r in records]
    order = draw(st.permutations([r for r in records if r.level != ABOVE]))
    return rules, list(order), [r for r in records if r.level == ABOVE]


def as_table(records: Sequence[Record]) -> pa.Table:
    columns = {n: pa.array([r.values[n] for r in records], t) for n, t in TYPES.items()}
    columns["_SEQUENCE_NUMBER"] = pa.array([r.sequence for r in records], pa.int64())
    columns["_VALUE_KIND"] = pa.array([r.kind for r in records], pa.int8())
    columns["_LEVEL"] = pa.array([r.level for r in records], pa.int32())
    return pa.table(columns)


def as_records(table: pa.Table) -> list[tuple[Any, ...]]:
    columns = table.select([*TYPES, "_SEQUENCE_NUMBER", "_VALUE_KIND"]).to_pylist()
    return [tuple(row.values()) for row in columns]


def as_rows(records: Sequence[Record]) -> list[tuple[Any, ...]]:
    return [(*(r.values[n] for n in TYPES), r.sequence, int(r.kind)) for r in records]


def key(record: Record) -> tuple[Any, ...]:
    return record.values["k"], record.values["j"]


def found_of(window: columnar.Window, above: Sequence[Record], rules: ChangeRules) -> columnar.Found | None:
    """Return what a lookup of the records above returns."""
    if rules.columns_above is None:
        return None
    upper_rows = {key(r): r for r in above}
    asked = [(row["k"], row["j"]) for row in columnar.select_keys_to_find(window, rules).to_pylist()]
    hits = [(upper_rows[k], place) for place, k in enumerate(asked) if k in upper_rows]
    return columnar.Found(as_table([r for r, _ in hits]), pa.array([p for _, p in hits], pa.int64()).to_numpy())


@pytest.mark.parametrize("full", [False, True], ids=["lookup", "full"])
@pytest.mark.parametrize("engine", sorted(MERGE_ENGINES))
@settings(max_examples=25)
@given(data=st.data())
def test_columns_equal_the_reference(engine: str, full: bool, data: st.DataObject) -> None:
    rules, records, above = data.draw(compactions(engine, full))
    upper_rows = {key(r): r for r in above}
    window = columnar.build_window(as_table(records), rules)
    try:
        rows, changes = reference.compact_records(records, lambda r: upper_rows.get(key(r)), rules)
    except InvalidRequest:
        with pytest.raises(InvalidRequest):
            columnar.compact_window(window, found_of(window, above, rules), rules)
        return
    made = columnar.compact_window(window, found_of(window, above, rules), rules)
    assert is_equal_value(as_records(made.rows), as_rows(rows))
    assert is_equal_value(as_records(made.changes), as_rows(changes))


@pytest.mark.parametrize("full", [False, True], ids=["lookup", "full"])
@pytest.mark.parametrize("engine", sorted(MERGE_ENGINES))
@settings(max_examples=25)
@given(data=st.data())
def test_changes_lead_from_the_rows_before_to_those_after(engine: str, full: bool, data: st.DataObject) -> None:
    rules, records, above = data.draw(compactions(engine, full))
    rules = evolve(rules, writes_changelog=True, ignored=frozenset())
    upper_rows = {key(r): r for r in above}
    try:
        rows, changes = reference.compact_records(records, lambda r: upper_rows.get(key(r)), rules)
    except InvalidRequest:
        return
    if engine == "first-row" and not full:
        state = {key(r): r.values for r in (*above, *records) if r.level > 0}
        after = state | {key(r): r.values for r in rows if r.is_add and key(r) not in state}
    else:
        levels = sorted((r for r in (*above, *records) if r.level > 0), key=lambda r: -r.level)
        before = levels if not full else [r for r in levels if r.level == TOP]
        newest = {key(r): r for r in before}
        state = {k: r.values for k, r in newest.items() if r.is_add}
        after = {k: r.values for k, r in newest.items() if k not in {key(r) for r in records} and r.is_add}
        after |= {key(r): r.values for r in rows if r.is_add}
    reported = dict(state)
    for change in changes:
        previous = reported.pop(key(change), None)
        if change.kind in (RowKind.UPDATE_BEFORE, RowKind.DELETE):
            assert previous is not None and is_equal_value(list(previous.items()), list(change.values.items()))
        else:
            assert previous is None
            reported[key(change)] = change.values
    assert is_equal_value(sorted(map(repr, reported.items())), sorted(map(repr, after.items())))


EXPECTED_CHANGES = {
    "new": (None, "+I 1", ["+I 1"]),
    "new by an update": (None, "+U 1", ["+I 1"]),
    "never there": (None, "-D 1", []),
    "nothing before": ("-D 1", "+I 2", ["+I 2"]),
    "gone": ("+I 1", "-D 2", ["-D 1"]),
    "gone without a trace": ("+U 1", None, ["-D 1"]),
    "changed": ("+I 1", "+I 2", ["-U 1", "+U 2"]),
    "the same": ("+I 1", "+U 1", []),
}


@pytest.mark.parametrize(("before", "after", "expected"), EXPECTED_CHANGES.values(), ids=EXPECTED_CHANGES)
def test_the_table_of_changes(before: str | None, after: str | None, expected: list[str]) -> None:
    kinds = ("+I", "-U", "+U", "-D")

    def record(text: str | None) -> Record | None:
        return text and Record({"k": int(text[3:])}, 0, kinds.index(text[:2]))  # type: ignore[return-value]

    rules = ChangeRules(MergeSpec(KEYS[:1]), skips_equal=True)
    reported = reference.derive_key_changes(record(before), record(after), rules)
    assert [f"{kinds[r.kind]} {r.values['k']}" for r in reported] == expected
