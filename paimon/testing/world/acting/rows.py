"""The rows of the simulated world: what each commit of a writer does to its keys, and what a state then holds.

Law: a writer owns its keys, so that a state tells of each writer how far its commits go, and nobody else's come in
between. Not every commit touches every key: a deleted one that comes back, or a change in the middle that is gone,
shows. Rows that were loaded before anybody began belong to nobody and never change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa

COLUMNS = "id INT NOT NULL, version INT, writer INT"
KEYS = 3
_FIRST_LOADED = 1_000


def commit_rows(writer: int, version: int) -> pa.Table:
    """What a writer's commit of this number (from 1) writes, with the kinds of its rows in `kind`."""
    changes = _changes(writer, version)
    return _table(list(changes), [version] * len(changes), writer, list(changes.values()))


def loaded_rows(count: int) -> pa.Table:
    """What is there before anybody begins; the numbers are such that they take their room on storage."""
    ids = list(range(_FIRST_LOADED, _FIRST_LOADED + count))
    return _table(ids, [_loaded_version(i) for i in ids], -1, ["+I"] * count)


def state_after(writer: int, version: int) -> dict[int, int]:
    """The versions by key of a writer, after its commits up to this number."""
    held: dict[int, int] = {}
    for number in range(1, version + 1):
        for key, kind in _changes(writer, number).items():
            if kind == "-D":
                held.pop(key, None)
            else:
                held[key] = number
    return held


def reached(rows: Mapping[int, int], writers: Sequence[int], loaded: int) -> tuple[dict[int, int], str]:
    """How far each writer's commits go in a state; a text where the state is none that they could have made."""
    found: dict[int, int] = {}
    left = dict(rows)
    for writer in writers:
        held = {key: left.pop(key) for key in _keys(writer) if key in left}
        version = max(held.values(), default=0)
        if held != state_after(writer, version):
            return {}, f"holds {held} of writer {writer}, and no commit of it made that"
        found[writer] = version
    expected = {i: _loaded_version(i) for i in range(_FIRST_LOADED, _FIRST_LOADED + loaded)}
    if left != expected:
        strange = sorted(set(left.items()) ^ set(expected.items()))
        return found, f"holds or lacks rows of nobody: {strange[:6]}"
    return found, ""


def _keys(writer: int) -> range:
    return range(writer * KEYS, (writer + 1) * KEYS)


def _changes(writer: int, version: int) -> dict[int, str]:
    """The first key comes and goes and is left alone, the second only comes at times, the third always."""
    first, second, third = _keys(writer)
    changes = {third: "+I"}
    if version % 3:
        changes[first] = "-D" if version % 3 == 2 else "+I"
    if version % 2:
        changes[second] = "+I"
    return changes


def _loaded_version(key: int) -> int:
    return key * 7919 * 7919 % 2_000_003


def _table(ids: Sequence[int], versions: Sequence[int], writer: int, kinds: Iterable[str]) -> pa.Table:
    columns = {
        "id": pa.array(ids, pa.int32()),
        "version": pa.array(versions, pa.int32()),
        "writer": pa.array([writer] * len(ids), pa.int32()),
        "kind": pa.array(list(kinds), pa.string()),
    }
    return pa.table(columns)
