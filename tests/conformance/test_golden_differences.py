"""On tables that Java wrote: a state and the difference to a later one, or the changelog in between, make the later."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from golden_tables import golden_directory
from rendering import rendered, text, types_of

import paimon

HOME = golden_directory()
State = dict[tuple[str, ...], str]
COMBINED = [
    "agg_sum", "cl_churn_lookup_dv", "cl_lookup_agg", "dv_pk", "first_row_lookup", "overwrite_pk", "pk_lsm_levels",
    "pu_group_agg", "seq_desc",
]  # fmt: skip
TOLD = ["cl_churn_full", "cl_churn_lookup", "cl_churn_lookup_dv", "cl_full", "cl_full_pu", "cl_lookup", "cl_lookup_agg"]


def lines(scan: Any, table: paimon.Table) -> list[dict[str, Any]]:
    result, types = scan.to_arrow(), types_of(table.table_schema.fields)
    columns = {n: rendered(result[n], types[n]) if n in types else result[n].to_pylist() for n in result.column_names}
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def applied(table: paimon.Table, state: State, rows: list[dict[str, Any]], kind: str) -> State:
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
    return applied(table, {}, lines(table.scan(snapshot=snapshot), table), "")


def opened(case: str) -> paimon.Table:
    table = paimon.open_table(HOME / case / "table")
    assert isinstance(table, paimon.Table)
    return table


@pytest.mark.parametrize("case", COMBINED)
def test_a_state_and_the_difference_make_the_later_state(case: str) -> None:
    table = opened(case)
    states = {s.id: state_at(table, s.id) for s in table.snapshots()[:8]}
    first, *_ = states
    for start, end in {*pairwise(states), *((first, later) for later in states)}:
        between = {"incremental-between": f"{start},{end}", "incremental-between-scan-mode": "diff"}
        rows = lines(table.with_options(between).system_table("audit_log").scan(), table)
        assert applied(table, states[start], rows, "rowkind") == states[end], f"{start} to {end}"


@pytest.mark.parametrize("case", TOLD)
def test_a_state_and_the_changelog_make_the_later_state(case: str) -> None:
    table = opened(case)
    compacted = [s.id for s in table.snapshots() if s.changelog_manifest_list is not None]
    states = {snapshot: state_at(table, snapshot) for snapshot in compacted}
    assert len(states) > 1
    for start, end in pairwise(states):
        rows = lines(table.changes(after=start, through=end), table)
        assert applied(table, states[start], rows, "_row_kind") == states[end], f"{start} to {end}"
