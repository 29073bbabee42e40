"""A verb whose metadata file is visible, but not flushed to disk, reports it, and deletes nothing because of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

import paimon
from paimon.domain.errors import StorageError
from paimon.testing.faulty_files import Fault, FaultyFiles

Verb = Callable[[paimon.Table], object]


def expire(table: paimon.Table) -> object:
    return table.maintain.expire_snapshots(retain_min=1, retain_max=1, older_than=timedelta(0))


VERBS: dict[str, Verb] = {
    "tag": lambda t: t.tags.create("new"),
    "renamed tag": lambda t: t.tags.rename("first", "new"),
    "branch": lambda t: t.branches.create("new", "first"),
    "fast-forward": lambda t: t.branches.fast_forward("later"),
    "rollback": lambda t: t.maintain.rollback_to(tag="first"),
    "changelog": expire,
}


@pytest.fixture
def table(tmp_path: Path) -> paimon.Table:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("d")
    retained = {"snapshot.num-retained.max": "20", "changelog.num-retained.max": "30", "changelog-producer": "input"}
    columns = "id INT NOT NULL"
    made = catalog.create_table("d.t", columns, primary_keys=["id"], options={"bucket": "1", **retained})
    made.write({"id": [1]})
    made.tags.create("first", 1)
    made.branches.create("later", "first")
    for i in (2, 3, 4):
        paimon.open_table(f"{made.location}$branch_later").write({"id": [i]})
    made.write({"id": [2]})
    made.maintain.expire_snapshots(retain_min=1, retain_max=1, older_than=timedelta(0))
    made.write({"id": [3]})
    return made


def without_flush(table: paimon.Table) -> paimon.Table:
    files = FaultyFiles(
        table.engine.files, lambda operation, _: Fault.REPLY_NOT_DURABLE if operation == "put_if_absent" else None
    )
    return table.with_engine(evolve(table.engine, files=files))


@pytest.mark.parametrize("name", VERBS)
def test_metadata_that_a_power_loss_may_take_is_reported(table: paimon.Table, name: str) -> None:
    before = [s.id for s in table.snapshots()]
    tags = set(table.tags)
    with pytest.raises(StorageError, match="failed to flush it to disk"):
        VERBS[name](without_flush(table))
    assert {s.id for s in table.snapshots()} >= set(before)
    assert set(table.tags) >= tags


@pytest.mark.parametrize(("name", "snapshot_id"), [("fast-forward", 4), ("rollback", 1)])
def test_a_repeated_verb_flushes_the_file_that_it_finds(
    table: paimon.Table, monkeypatch: pytest.MonkeyPatch, name: str, snapshot_id: int
) -> None:
    with pytest.raises(StorageError):
        VERBS[name](without_flush(table))
    kind, flushed = type(table.engine.files), list[str]()
    flush = kind.flush_and_create

    def record(files: Any, deferred: Collection[str], others: Mapping[str, bytes]) -> None:
        flushed.extend(deferred)
        flush(files, deferred, others)

    monkeypatch.setattr(kind, "flush_and_create", record)
    VERBS[name](table)
    assert table.context.paths.snapshot(snapshot_id) in flushed
    if name == "rollback":
        assert [s.id for s in table.snapshots()] == [1]
        assert table.engine.files.read(table.context.paths.earliest_hint) == b"1"
