"""The snapshot that a change reads expires during the call: a retry from the newest snapshot, or a conflict."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

import paimon
from paimon.domain.errors import CorruptTable, SnapshotExpired

FIXED = {"bucket": "1"}
VECTORS = {"deletion-vectors.enabled": "true"}
POSTPONED = {"bucket": "-2"}
KEYED, APPEND = ["k"], list[str]()


class ExpiringFiles:
    """Files of which the first data file that is opened was replaced just before, and its snapshot expired."""

    def __init__(self, inner: Any, replace: Callable[[], object]) -> None:
        self.inner = inner
        self.waiting = [replace]

    def open(self, path: str) -> Any:
        if self.waiting and path.rpartition("/")[2].startswith("data-"):
            self.waiting.pop()()
        return self.inner.open(path)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def create(home: Path, keys: list[str], options: dict[str, str]) -> paimon.Table:
    catalog = paimon.connect(home)
    catalog.create_database("db")
    table = catalog.create_table("db.t", "k INT NOT NULL, v INT", primary_keys=keys, options=options)
    for k in range(3):
        table.write([{"k": k, "v": k}])
    return table


def with_expiry(table: paimon.Table) -> paimon.Table:
    """Return the table; during its next call another process compacts, and expires all older snapshots."""

    def replace() -> None:
        table.compact(full=True)
        table.write([{"k": 9, "v": 9}])
        table.maintain.expire_snapshots(retain_min=1, retain_max=1)

    return table.with_engine(evolve(table.engine, files=ExpiringFiles(table.engine.files, replace)))


def list_orphans(table: paimon.Table) -> list[object]:
    """Return the files that no snapshot names: an attempt that was refused deletes its files."""
    return table.maintain.remove_orphans(older_than=timedelta(0), dry_run=True, allow_young=True).to_pylist()


CHANGES: dict[str, tuple[Callable[[paimon.Table], object], dict[int, int]]] = {
    "delete": (lambda t: t.delete("k >= 2"), {0: 0, 1: 1}),
    "update": (lambda t: t.update({"v": "v + 10"}, "k >= 2"), {0: 0, 1: 1, 2: 12, 9: 19}),
    "merge": (
        lambda t: (
            t.merge([{"k": 2, "v": 5}, {"k": 9, "v": 5}, {"k": 7, "v": 5}], "k")
            .when_matched_update({"v": "target.v + source.v"})
            .when_not_matched_insert_all()
            .execute()
        ),
        {0: 0, 1: 1, 2: 7, 7: 5, 9: 14},
    ),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(("keys", "options"), [(KEYED, FIXED), (APPEND, {}), (APPEND, VECTORS)])
def test_row_changes_start_again(tmp_path: Path, keys: list[str], options: dict[str, str], change: str) -> None:
    table = create(tmp_path, keys, options)
    run, expected = CHANGES[change]
    run(with_expiry(table))
    assert {r["k"]: r["v"] for r in table.scan().to_arrow().to_pylist()} == expected
    assert not list_orphans(table)


@pytest.mark.parametrize("options", [FIXED, POSTPONED])
def test_compactions_are_refused(tmp_path: Path, options: dict[str, str]) -> None:
    table = create(tmp_path, KEYED, options)
    with pytest.raises(SnapshotExpired, match=r"Snapshot 3 of table 'db\.t' expired.* Compact again"):
        with_expiry(table).compact(full=True)
    assert not list_orphans(table)
    table.compact(full=True)
    assert {r["k"] for r in table.scan().to_arrow().to_pylist()} == {0, 1, 2, 9}


def test_a_rescale_starts_again(tmp_path: Path) -> None:
    table = create(tmp_path, KEYED, FIXED)
    done = with_expiry(table).rescale(2)
    assert done.partitions == 1 and not list_orphans(table)
    rescaled = paimon.open_table(table.location)
    assert {r["k"] for r in rescaled.scan().to_arrow().to_pylist()} == {0, 1, 2, 9}


def test_a_file_that_is_missing_from_the_newest_snapshot_is_damage(tmp_path: Path) -> None:
    table = create(tmp_path, KEYED, FIXED)
    for path in Path(table.location).rglob("data-*"):
        path.unlink()
    runs = [lambda t: t.compact(full=True), lambda t: t.rescale(2), *(run for run, _ in CHANGES.values())]
    for run in runs:
        with pytest.raises(CorruptTable):
            run(table)
