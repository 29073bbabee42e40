"""The contract of a merge engine as tests: what a read, a flush and a compaction rely on, whatever the engine.

A correct engine of `paimon.domain.merge.merge_engines.MERGE_ENGINES` passes. Derive a class from `MergeEngineContract`,
set `engine_name`, and let pytest collect the class.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import pyarrow as pa
from attrs import evolve, frozen
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from paimon.domain.errors import InvalidRequest
from paimon.domain.merge.merge_columnar import mask_surviving_rows, merge
from paimon.domain.merge.merge_engines import MERGE_ENGINES, get_merge_engine
from paimon.domain.merge.merge_reference import merge as merge_by_reference
from paimon.domain.merge.merge_spec import MergeSpec
from paimon.domain.merge.record import DELETE, Record
from paimon.domain.merge.windows import Piece, cut_into_windows
from paimon.domain.options.table_options import TableOptions
from paimon.domain.row.kinds import RowKind
from paimon.domain.types import data_types as dt
from paimon.domain.types.arrow import arrow_type
from paimon.domain.types.data_types import DataField
from paimon.domain.types.system_columns import LEVEL, SEQUENCE_NUMBER, VALUE_KIND

Options = dict[str, str]

KEYS = (DataField(0, "k", dt.IntType(nullable=False)), DataField(1, "j", dt.VarCharType(nullable=False)))
COLUMNS = (
    DataField(2, "s", dt.IntType()),
    DataField(3, "g", dt.DoubleType()),
    DataField(4, "a", dt.IntType()),
    DataField(5, "b", dt.BigIntType()),
    DataField(6, "d", dt.DoubleType()),
    DataField(7, "t", dt.VarCharType()),
)
"""The value columns of every drawn table. `s` and `g` may order records."""
ADDS = (RowKind.INSERT, RowKind.UPDATE_AFTER)
ALL_KINDS = tuple(RowKind)
NO_SEQUENCE: tuple[tuple[str, ...], ...] = ((),)
WITHOUT_NAN: tuple[tuple[str, ...], ...] = ((), ("s",))
ANY_SEQUENCE: tuple[tuple[str, ...], ...] = ((), ("s",), ("g", "s"))
"""Sequence fields. `g` may hold a NaN, so that the result depends on the order in which records are compared."""

_THOROUGH = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
_QUICK = settings(_THOROUGH, max_examples=20)
_DOUBLES = st.sampled_from([0.0, -0.0, 1.5, -2.25, float("inf"), float("nan")])
_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "s": st.integers(-1, 2),
    "g": _DOUBLES,
    "a": st.integers(-3, 3),
    "b": st.integers(-3, 3),
    "d": _DOUBLES,
    "t": st.sampled_from(["", "x", "yy", "é"]),
}


@frozen
class MergeCase:
    """Records and the spec that merges them; the sequence numbers are the positions of the records."""

    spec: MergeSpec
    records: tuple[Record, ...]

    def to_table(self, rows: Sequence[int] | None = None) -> pa.Table:
        """Return the records at these positions (None: all) as the table that `merge` takes."""
        chosen = self.records if rows is None else [self.records[row] for row in rows]
        return build_table(chosen, self.spec)


def build_table(records: Sequence[Record], spec: MergeSpec) -> pa.Table:
    """Return records as a table with the columns of the spec and the system columns."""
    columns = {f.name: pa.array([r.values[f.name] for r in records], arrow_type(f.type)) for f in spec.fields}
    columns[SEQUENCE_NUMBER.name] = pa.array([r.sequence for r in records], pa.int64())
    columns[VALUE_KIND.name] = pa.array([r.kind for r in records], pa.int8())
    columns[LEVEL.name] = pa.array([r.level for r in records], pa.int32())
    return pa.table(columns)


class MergeEngineContract:
    """Derive, and set `engine_name`.

    Attributes
    ----------
    engine_name : str
        The value of the option `merge-engine`.
    options : strategy of dict
        Options of the engine, for the tests that compare with the reference.
    associative_options : strategy of dict
        Options with which merging parts, and then their results, equals merging everything at once, for adds without a
        sequence field.
    """

    engine_name: str
    options: st.SearchStrategy[Options] = st.just({})
    associative_options: st.SearchStrategy[Options] = st.just({})

    def test_engine_is_registered(self) -> None:
        """The engine is found by its name."""
        assert get_merge_engine(self._make_spec({})) is MERGE_ENGINES[self.engine_name]

    @_THOROUGH
    @given(st.data())
    def test_columnar_equals_reference(self, data: st.DataObject) -> None:
        """Values, row kinds and sequence numbers are equal, or both refuse the records."""
        case = data.draw(self._cases(ALL_KINDS))
        try:
            expected = merge_by_reference(case.records, case.spec)
        except InvalidRequest:
            assert merge_or_refuse(case.to_table(), case.spec) is None
            return
        merged = merge(case.to_table(), case.spec)
        assert merged.column_names == [n for n in case.to_table().column_names if n != LEVEL.name]
        assert to_rows(merged) == to_rows(build_table(expected, case.spec))

    @_QUICK
    @given(st.data())
    def test_rows_ascend_by_key_and_keys_are_unique(self, data: st.DataObject) -> None:
        """The result has no key that the records do not have."""
        case = data.draw(self._cases(ADDS))
        merged = merge_or_refuse(case.to_table(), case.spec)
        assume(merged is not None)
        assert merged is not None
        names = [f.name for f in KEYS]
        keys = list(zip(*(merged[name].to_pylist() for name in names), strict=True))
        assert keys == sorted({tuple(r.values[n] for n in names) for r in case.records})

    @_QUICK
    @given(st.data())
    def test_arrival_and_chunks_do_not_matter(self, data: st.DataObject) -> None:
        """Sequence numbers order the records, not their position in the table or its chunks."""
        case = data.draw(self._cases(ALL_KINDS, sequences=WITHOUT_NAN))
        order = data.draw(st.permutations(range(len(case.records))))
        cut = data.draw(st.integers(0, len(order)))
        moved = pa.concat_tables([case.to_table(order[:cut]), case.to_table(order[cut:])])
        expected = merge_or_refuse(case.to_table(), case.spec)
        found = merge_or_refuse(moved, case.spec)
        assert (found is None) == (expected is None)
        if found is not None and expected is not None:
            assert to_rows(found) == to_rows(expected)

    @_QUICK
    @given(st.data())
    def test_runs_and_batches_do_not_matter(self, data: st.DataObject) -> None:
        """Windows over sorted runs (files or spilled buffers) of any number, batch size and memory budget."""
        case = data.draw(self._cases(ALL_KINDS, sequences=WITHOUT_NAN))
        whole = merge_or_refuse(case.to_table(), case.spec)
        runs = _cut_into_runs(case, data.draw(st.lists(st.integers(0, 3), min_size=25, max_size=25)))
        batch_rows, budget = data.draw(st.integers(1, 5)), data.draw(st.sampled_from([0, 100, 1 << 20]))
        pieces = [
            iter([Piece(batch, age) for batch in run.to_batches(max_chunksize=batch_rows)])
            for age, run in enumerate(runs)
        ]
        tables = [pa.Table.from_batches([p.batch for p in window]) for window in cut_into_windows(pieces, KEYS, budget)]
        parts = [merge_or_refuse(table, case.spec) for table in tables]
        assert (whole is None) == any(part is None for part in parts)
        if whole is not None:
            assert [row for part in parts for row in to_rows(part)] == to_rows(whole)

    @_QUICK
    @given(st.data())
    def test_compaction_is_idempotent(self, data: st.DataObject) -> None:
        """Merged rows are singletons, and merging them again returns them unchanged."""
        case = data.draw(self._cases(ALL_KINDS))
        once = merge_or_refuse(case.to_table(), case.spec)
        assume(once is not None)
        assert to_rows(merge(once, case.spec)) == to_rows(once)

    @_QUICK
    @given(st.data())
    def test_parts_merge_to_the_whole(self, data: st.DataObject) -> None:
        """Compacting the older records first changes nothing, for adds in the order of their sequence numbers."""
        case = data.draw(self._cases(ADDS, self.associative_options, NO_SEQUENCE))
        cut = data.draw(st.integers(0, len(case.records)))
        whole = merge_or_refuse(case.to_table(), case.spec)
        assume(whole is not None)
        older = merge(build_table(case.records[:cut], case.spec), case.spec)
        newer = build_table(case.records[cut:], case.spec).drop_columns([LEVEL.name])
        merged = merge(pa.concat_tables([older, newer]), case.spec)
        assert to_rows(merged, without_kind=True) == to_rows(whole, without_kind=True)

    @_QUICK
    @given(st.data())
    def test_the_registry_describes_the_engine(self, data: st.DataObject) -> None:
        """With `newest_wins` and `oldest_wins`, that record is returned; with `keeps_rows`, one of the records."""
        case = data.draw(self._cases(ADDS))
        merged = merge_or_refuse(case.to_table(), case.spec)
        assume(merged is not None)
        engine, found = MERGE_ENGINES[self.engine_name], to_rows(merged)
        if engine.newest_wins:
            newest = case.to_table().filter(pa.array(mask_surviving_rows(case.to_table(), case.spec)))
            assert sorted(found) == sorted(to_rows(newest))
        if engine.oldest_wins and not case.spec.sequence_fields:
            oldest = {tuple(r.values[f.name] for f in KEYS): r for r in reversed(case.records)}
            assert sorted(found) == sorted(to_rows(build_table(list(oldest.values()), case.spec)))
        if engine.keeps_rows:
            assert set(found) <= set(to_rows(case.to_table()))

    @_QUICK
    @given(st.data())
    def test_nulls_stay_null(self, data: st.DataObject) -> None:
        """A column without any value has no value after merging."""
        case = data.draw(self._cases(ADDS))
        names = data.draw(st.sets(st.sampled_from([f.name for f in COLUMNS]), min_size=1))
        blank = [evolve(r, values={**r.values, **dict.fromkeys(names)}) for r in case.records]
        merged = merge_or_refuse(build_table(blank, case.spec), case.spec)
        assume(merged is not None)
        assert merged is not None
        assert all(merged[name].null_count == merged.num_rows for name in names)

    @_QUICK
    @given(st.data())
    def test_ignored_retracts_change_nothing(self, data: st.DataObject) -> None:
        """With `ignore-delete`, the keys that have an add become what their adds alone become."""
        case = data.draw(self._cases(ALL_KINDS, self.associative_options, NO_SEQUENCE))
        spec = evolve(case.spec, ignore_delete=True)
        adds = [r for r in case.records if r.is_add]
        expected = to_rows(merge(build_table(adds, spec), spec), without_kind=True)
        keys = {tuple(row[f.name] for f in KEYS) for row in merge(build_table(adds, spec), spec).to_pylist()}
        kept = [r for r in case.records if tuple(r.values[f.name] for f in KEYS) in keys]
        assert to_rows(merge(build_table(kept, spec), spec), without_kind=True) == expected

    @_QUICK
    @given(st.data())
    def test_retracts_are_refused_or_honored(self, data: st.DataObject) -> None:
        """An add and a -D of one key are refused with a hint, or they do not leave the add as it was."""
        spec = self._make_spec(data.draw(self.options))
        (values, others) = (data.draw(_rows()) for _ in range(2))
        others = {**others, **{f.name: values[f.name] for f in KEYS}}
        records = (Record(values, 0), Record(others, 1, DELETE))
        try:
            (merged,) = merge(build_table(records, spec), spec).to_pylist()
        except InvalidRequest as error:
            assert error.hint is not None
            return
        is_deleted = merged[VALUE_KIND.name] == DELETE
        assert is_deleted or merged[SEQUENCE_NUMBER.name] == 1

    @_QUICK
    @given(st.data())
    def test_columns_that_are_not_read_do_not_matter(self, data: st.DataObject) -> None:
        """A merge of `columns_needed` returns the wanted columns as a merge of all columns does."""
        case = data.draw(self._cases(ADDS))
        wanted = data.draw(st.sets(st.sampled_from([f.name for f in COLUMNS])))
        whole = merge_or_refuse(case.to_table(), case.spec)
        assume(whole is not None)
        assert whole is not None
        names = [*sorted(case.spec.columns_needed(wanted)), SEQUENCE_NUMBER.name, VALUE_KIND.name, LEVEL.name]
        narrow = merge(case.to_table().select(names), case.spec)
        shown = [*(f.name for f in KEYS), *sorted(wanted)]
        assert to_rows(narrow.select(shown)) == to_rows(whole.select(shown))

    def _make_spec(self, options: Options, **more: Any) -> MergeSpec:
        return MergeSpec(KEYS, COLUMNS, engine=self.engine_name, options=TableOptions.of(options), **more)

    def _cases(
        self,
        kinds: Collection[int],
        options: st.SearchStrategy[Options] | None = None,
        sequences: Sequence[tuple[str, ...]] = ANY_SEQUENCE,
    ) -> st.SearchStrategy[MergeCase]:
        row = st.tuples(_rows(), st.sampled_from(sorted(kinds)), st.integers(0, 2))
        return st.builds(
            _build_case,
            st.builds(
                lambda chosen, sequence, descending, ignoring: self._make_spec(
                    chosen, sequence_fields=sequence, sequence_descending=descending, ignore_delete=ignoring
                ),
                self.options if options is None else options,
                st.sampled_from(sequences),
                st.booleans(),
                st.sampled_from([False, False, False, True]),
            ),
            st.sampled_from([0, 6, 12]).flatmap(lambda size: st.lists(row, min_size=size, max_size=size + 8)),
        )


def _rows() -> st.SearchStrategy[dict[str, Any]]:
    values = {name: st.none() | strategy for name, strategy in _VALUES.items()}
    return st.fixed_dictionaries({"k": st.integers(0, 1), "j": st.sampled_from(["", "", "z"]), **values})


def _build_case(spec: MergeSpec, rows: Sequence[tuple[dict[str, Any], int, int]]) -> MergeCase:
    records = (Record(values, number, int(kind), level) for number, (values, kind, level) in enumerate(rows))
    return MergeCase(spec, tuple(records))


def _cut_into_runs(case: MergeCase, choices: Sequence[int]) -> list[pa.Table]:
    """Deal the records to sorted runs, each of which holds a key once; the oldest run has the oldest records."""
    runs: list[list[Record]] = []
    newest: dict[tuple[Any, ...], int] = {}
    for record, gap in zip(case.records, choices, strict=False):
        key = tuple(record.values[f.name] for f in KEYS)
        number = newest.get(key, -1) + 1 + gap
        newest[key] = number
        runs += [[] for _ in range(number + 1 - len(runs))]
        runs[number].append(record)
    ordered = (sorted(run, key=lambda r: tuple(r.values[f.name] for f in KEYS)) for run in runs)
    return [build_table(run, case.spec) for run in ordered]


def merge_or_refuse(table: pa.Table, spec: MergeSpec) -> pa.Table | None:
    """Return the merged table; None where the engine refuses the records."""
    try:
        return merge(table, spec)
    except InvalidRequest:
        return None


def to_rows(table: pa.Table | None, without_kind: bool = False) -> list[str]:
    """Return the rows as texts, in which NaN equals NaN and the zeros show their signs; levels are left out."""
    hidden = {LEVEL.name, VALUE_KIND.name} if without_kind else {LEVEL.name}
    names = [] if table is None else [name for name in table.column_names if name not in hidden]
    return [] if table is None else [repr(row) for row in table.select(names).to_pylist()]
