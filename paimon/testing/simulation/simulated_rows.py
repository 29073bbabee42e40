"""The rows of the simulation: what each commit of a writer changes, and which state follows.

Invariant: each key belongs to one writer, so that a state shows which commits of each writer it contains. Not every
commit changes every key. Therefore a deleted key that comes back is detected, and so is a lost change between two
others. The initial rows belong to no writer and never change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa

COLUMNS = "id INT NOT NULL, version INT, writer INT"
KEYS_PER_WRITER = 3
_FIRST_INITIAL_KEY = 1_000


def build_commit_rows(writer: int, version: int) -> pa.Table:
    """Return the rows that the commit of this number (from 1) of a writer writes, with row kinds in `kind`."""
    changes = _list_changes(writer, version)
    return _build_table(list(changes), [version] * len(changes), writer, list(changes.values()))


def build_initial_rows(count: int) -> pa.Table:
    """Return the rows that are in the table before the actors start; their versions do not compress well."""
    ids = list(range(_FIRST_INITIAL_KEY, _FIRST_INITIAL_KEY + count))
    return _build_table(ids, [_compute_initial_version(i) for i in ids], -1, ["+I"] * count)


def compute_state_after(writer: int, version: int) -> dict[int, int]:
    """Return the versions by key of a writer after its commits up to this number."""
    versions: dict[int, int] = {}
    for number in range(1, version + 1):
        for key, kind in _list_changes(writer, number).items():
            if kind == "-D":
                versions.pop(key, None)
            else:
                versions[key] = number
    return versions


def find_progress(versions: Mapping[int, int], writers: Sequence[int], initial_rows: int) -> tuple[dict[int, int], str]:
    """Find the last commit of each writer in a state.

    Parameters
    ----------
    versions : mapping
        The versions by key in the state.
    writers : sequence of int
        The positions of the writers in the plan.
    initial_rows : int
        The number of rows that were in the table before the actors started.

    Returns
    -------
    tuple
        The number of the last commit by writer, and a description of what is wrong with the state ("" if it is
        correct).
    """
    last_commits: dict[int, int] = {}
    other_rows = dict(versions)
    for writer in writers:
        own_rows = {key: other_rows.pop(key) for key in _keys_of(writer) if key in other_rows}
        last_commit = max(own_rows.values(), default=0)
        if own_rows != compute_state_after(writer, last_commit):
            return {}, f"contains {own_rows} of writer {writer}, which is the state after none of its commits"
        last_commits[writer] = last_commit
    initial_keys = range(_FIRST_INITIAL_KEY, _FIRST_INITIAL_KEY + initial_rows)
    expected = {key: _compute_initial_version(key) for key in initial_keys}
    if other_rows != expected:
        difference = sorted(set(other_rows.items()) ^ set(expected.items()))
        return last_commits, f"has or lacks rows that belong to no writer: {difference[:6]}"
    return last_commits, ""


def _keys_of(writer: int) -> range:
    return range(writer * KEYS_PER_WRITER, (writer + 1) * KEYS_PER_WRITER)


def _list_changes(writer: int, version: int) -> dict[int, str]:
    """Return row kinds by key: the first key is inserted, deleted and skipped; every other commit writes the second."""
    first, second, third = _keys_of(writer)
    changes = {third: "+I"}
    if version % 3:
        changes[first] = "-D" if version % 3 == 2 else "+I"
    if version % 2:
        changes[second] = "+I"
    return changes


def _compute_initial_version(key: int) -> int:
    return key * 7919 * 7919 % 2_000_003


def _build_table(ids: Sequence[int], versions: Sequence[int], writer: int, kinds: Iterable[str]) -> pa.Table:
    columns = {
        "id": pa.array(ids, pa.int32()),
        "version": pa.array(versions, pa.int32()),
        "writer": pa.array([writer] * len(ids), pa.int32()),
        "kind": pa.array(list(kinds), pa.string()),
    }
    return pa.table(columns)
