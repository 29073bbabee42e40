"""A writer stalls while its base expires, publishes at an id that is free again, and dies before it can check.

Its snapshot is detached: no reader, writer or maintenance treats it as a part of the history.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve, frozen
from support.tables import create_table

import paimon
from paimon.adapters.cache import LruCache
from paimon.adapters.files.local import LocalFiles
from paimon.domain.maintenance.fault import FaultKind
from paimon.domain.paths import TablePaths
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.ports.files import WHOLE_BYTES
from paimon.ports.snapshots import PublishOutcome, SnapshotCommit

NOW = timedelta(0)
KINDS: dict[str, dict[str, str]] = {
    "append": {},
    "keyed": {"bucket": "1", "write-only": "true"},
}


class Dead(BaseException):
    """The process ends."""


@frozen(eq=False)
class Stalling:
    """Run an action before the first publish, then die unless it `lives`."""

    other: SnapshotCommit
    concurrent_actions: list[Callable[[], None]]
    lives: bool = False

    def lock(self, paths: TablePaths) -> AbstractContextManager[None]:
        return nullcontext()

    def publish(self, paths: TablePaths, snapshot: Snapshot, base: Snapshot | None) -> PublishOutcome:
        while self.concurrent_actions:
            self.concurrent_actions.pop()()
        outcome = self.other.publish(paths, snapshot, base)
        if not self.lives:
            assert outcome is PublishOutcome.PUBLISHED
            raise Dead
        return outcome


class Passing(LocalFiles):
    """A disk on which another process expires snapshots before the writer deletes a detached snapshot."""

    def __init__(self, table: Any, detached_id: int) -> None:
        super().__init__()
        self._table = table
        self._detached_id = detached_id

    def delete(self, paths: Sequence[str]) -> None:
        if any(path.endswith(f"/snapshot-{self._detached_id}") for path in paths):
            Path(self._table.location, "snapshot", "EARLIEST").write_text(str(self._detached_id))
            self._table.maintain.expire_snapshots(retain_min=1, retain_max=1, older_than=NOW)
        super().delete(paths)


class Expiring(LocalFiles):
    """A disk on which another process expires all snapshots but one before a file is read for the first time."""

    def __init__(self, table: Any, name: str) -> None:
        super().__init__()
        self._table = table
        self._names = {name}

    def read(self, path: str, max_bytes: int = WHOLE_BYTES) -> bytes:
        name = path.rpartition("/")[2]
        if name in self._names:
            self._names.clear()
            self._table.maintain.expire_snapshots(retain_min=1, retain_max=1, older_than=NOW)
        return super().read(path, max_bytes)


def create_table_of_kind(root: Path, kind: str, *, empty: bool = False) -> Any:
    keys = ["id"] if kind == "keyed" else []
    table = create_table(root, "id INT NOT NULL, v STRING", "d.t", primary_keys=keys, options=KINDS[kind])
    if not empty:
        table.write({"id": [1], "v": ["first"]})
    return table


def commit(table: Any, identifier: int) -> Any:
    """The stalled job's commit."""
    return table.write({"id": [100 + identifier], "v": ["job"]}, commit_user="job", identifier=identifier)


def detach_snapshot(table: Any, keep: int) -> None:
    """Create a detached snapshot 2. After the expiry the history has `keep` snapshots."""

    def others() -> None:
        for number in range(2, 6):
            table.write({"id": [number], "v": ["other"]})
        table.maintain.expire_snapshots(retain_min=keep, retain_max=keep, older_than=NOW)

    snapshots = Stalling(table.engine.snapshots, [others])
    with pytest.raises(Dead):
        commit(table.with_engine(evolve(table.engine, snapshots=snapshots)), 7)
    assert Path(table.location, "snapshot", "snapshot-2").exists()


@pytest.mark.parametrize("keep", [1, 3], ids=["behind a gap", "next to the history"])
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_detached_snapshot_is_not_committed(tmp_path: Path, kind: str, keep: int) -> None:
    table = create_table_of_kind(tmp_path, kind)
    detach_snapshot(table, keep)
    assert commit(table, 7).snapshot_ids == (6,)
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 2, 3, 4, 5, 107]
    assert commit(table, 7).snapshot_ids == ()


@pytest.mark.parametrize("keep", [1, 3], ids=["behind a gap", "next to the history"])
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_orphan_removal_deletes_it_with_its_files(tmp_path: Path, kind: str, keep: int) -> None:
    table = create_table_of_kind(tmp_path, kind)
    detach_snapshot(table, keep)
    report = table.maintain.check(deep=True)
    assert [(f.kind, f.states) for f in report.faults] == [(FaultKind.DETACHED, ("snapshot 2",))]
    assert report.is_whole
    assert table.maintain.remove_orphans(timedelta(days=2), dry_run=False).num_rows == 0
    found = table.maintain.remove_orphans(NOW, allow_young=True, dry_run=False)["path"].to_pylist()
    assert f"{table.location}/snapshot/snapshot-2" in found
    assert any("/bucket-" in path for path in found)
    assert table.maintain.check(deep=True).faults == ()
    assert table.maintain.remove_orphans(NOW, allow_young=True, dry_run=False).num_rows == 0
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 2, 3, 4, 5]
    for snapshot in table.snapshots():
        assert table.scan(snapshot=snapshot.id).count() == snapshot.id


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_snapshots_before_a_gap_are_not_deleted(tmp_path: Path, kind: str) -> None:
    table = create_table_of_kind(tmp_path, kind)
    for number in range(2, 6):
        table.write({"id": [number], "v": ["other"]})
    Path(table.location, "snapshot", "snapshot-3").unlink()
    faults = table.maintain.check().faults
    assert [f.kind for f in faults] == [FaultKind.GAP]
    table.maintain.remove_orphans(NOW, allow_young=True, dry_run=False)
    assert table.scan(snapshot=2).count() == 2
    table.maintain.expire_snapshots(retain_min=1, retain_max=1, older_than=NOW)
    assert table.scan().count() == 5


@pytest.mark.parametrize("empty", [False, True], ids=["on a base", "the table's first"])
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_expired_files_of_a_detached_snapshot_are_not_named_again(tmp_path: Path, kind: str, *, empty: bool) -> None:
    table = create_table_of_kind(tmp_path, kind, empty=empty)
    before = 0 if empty else 1

    def others() -> None:
        for number in range(before + 1, 6):
            table.write({"id": [number], "v": ["other"]})
        table.maintain.expire_snapshots(retain_min=3, retain_max=3, older_than=NOW)

    snapshots = Stalling(table.engine.snapshots, [others], lives=True)
    files = Passing(table, before + 1)
    assert commit(table.with_engine(evolve(table.engine, snapshots=snapshots, files=files)), 7).snapshot_ids == (6,)
    table = paimon.connect(tmp_path).table("d.t")  # a new engine without cached manifests
    assert table.maintain.check(deep=True).faults == ()
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 2, 3, 4, 5, 107]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("part", ["base_manifest_list", "delta_manifest_list"])
def test_a_snapshot_that_expires_while_it_is_checked_does_not_stop_orphan_removal(
    tmp_path: Path, kind: str, part: str
) -> None:
    table = create_table_of_kind(tmp_path, kind)
    for number in (2, 3):
        table.write({"id": [number], "v": ["next"]})
    checked = table.snapshots()[1 if part == "base_manifest_list" else 0]
    files = Expiring(table, getattr(checked, part))
    other = table.with_engine(evolve(table.engine, files=files, cache=LruCache()))
    other.maintain.remove_orphans(NOW, allow_young=True, dry_run=False)
    assert [snapshot.id for snapshot in table.snapshots()] == [3]
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 2, 3]


def test_a_snapshot_without_its_files_stops_orphan_removal(tmp_path: Path) -> None:
    table = create_table_of_kind(tmp_path, "append")
    table.write({"id": [2], "v": ["second"]})
    Path(table.location, "manifest", table.snapshots()[0].delta_manifest_list).unlink()
    other = table.with_engine(evolve(table.engine, cache=LruCache()))
    with pytest.raises(paimon.CorruptTable, match="does not exist"):
        other.maintain.remove_orphans(NOW, allow_young=True, dry_run=False)
