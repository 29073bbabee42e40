"""On tables of Java, a state and the difference or changelog to a later state lead to the later state."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from support.canonical_rows import render_column, text, types_of
from support.golden_tables import golden_directory

import paimon

HOME = golden_directory()
State = dict[tuple[str, ...], str]
COMBINED = [
    "agg_sum", "cl_churn_lookup_dv", "cl_lookup_agg", "dv_pk", "first_row_lookup", "overwrite_pk", "pk_lsm_levels",
    "pu_group_agg", "seq_desc",
]  # fmt: skip
CHANGELOG_CASES = [
    "cl_churn_full",
    "cl_churn_lookup",
    "cl_churn_lookup_dv",
    "cl_full",
    "cl_full_pu",
    "cl_lookup",
    "cl_lookup_agg",
]


def lines(scan: Any, table: paimon.Table) -> list[dict[str, Any]]:
    result, types = scan.to_arrow(), types_of(table.table_schema.fields)
    columns = {
        n: render_column(result[n], types[n]) if n in types else result[n].to_pylist() for n in result.column_names
    }
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def apply_changes(table: paimon.Table, state: State, rows: list[dict[str, Any]], kind: str) -> State:
    state = dict(state)
    for row in rows:
        values = {name: row[name] for name in table.table_schema.names}
        key = tuple(text(row[name]) for name in table.primary_keys)
        if row.get(kind, "+I") in ("+I", "+U"):
            state[key] = text(values)
        else:
            state.pop(key, None)
    return state


def state_at(table: paimon.Table, snapshot: int) -> State:
    return apply_changes(table, {}, lines(table.scan(snapshot=snapshot), table), "")


def open_case(case: str) -> paimon.Table:
    table = paimon.open_table(HOME / case / "table")
    assert isinstance(table, paimon.Table)
    return table


@pytest.mark.parametrize("case", COMBINED)
def test_a_state_and_the_difference_make_the_later_state(case: str) -> None:
    table = open_case(case)
    states = {s.id: state_at(table, s.id) for s in table.snapshots()[:8]}
    first, *_ = states
    for start, end in {*pairwise(states), *((first, later) for later in states)}:
        between = {"incremental-between": f"{start},{end}", "incremental-between-scan-mode": "diff"}
        rows = lines(table.with_options(between).system_table("audit_log").scan(), table)
        assert apply_changes(table, states[start], rows, "rowkind") == states[end], f"{start} to {end}"


@pytest.mark.parametrize("case", CHANGELOG_CASES)
def test_a_state_and_the_changelog_make_the_later_state(case: str) -> None:
    table = open_case(case)
    compacted = [s.id for s in table.snapshots() if s.changelog_manifest_list is not None]
    states = {snapshot: state_at(table, snapshot) for snapshot in compacted}
    assert len(states) > 1
    for start, end in pairwise(states):
        rows = lines(table.changes(after=start, through=end), table)
        assert apply_changes(table, states[start], rows, "_row_kind") == states[end], f"{start} to {end}"
