"""The age of a file is measured by the clock of the storage, and files that were deleted are not committed."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from attrs import evolve
from support.case_lists import mark_products

import paimon
from paimon.cli.main import main
from paimon.domain.commit.message import CommitMessage
from paimon.domain.errors import CommitConflict, PaimonWarning, StorageError, Unsupported
from paimon.ports.files import FileIO, FileStatus

DAY_SECONDS = 86_400
COLUMNS = "id BIGINT NOT NULL, v BIGINT"


class WrappedFiles:
    """Files that can refuse writes or give no times, and that note which directories are listed."""

    def __init__(self, inner: FileIO, *, is_read_only: bool = False, has_times: bool = True) -> None:
        self._inner, self._is_read_only, self._has_times = inner, is_read_only, has_times
        self.listed: list[str] = []

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)

    def replace(self, path: str, data: bytes) -> None:
        if self._is_read_only:
            raise StorageError(path, "read-only")
        self._inner.replace(path, data)

    def list(self, path: str) -> Sequence[FileStatus]:
        self.listed.append(path)
        return [self._convert(status) for status in self._inner.list(path)]

    def status(self, path: str) -> FileStatus | None:
        status = self._inner.status(path)
        return None if status is None else self._convert(status)

    def _convert(self, status: FileStatus) -> FileStatus:
        return status if self._has_times else evolve(status, modified_millis=None)


def wrap(table: paimon.Table, files: WrappedFiles) -> paimon.Table:
    return table.with_engine(evolve(table.engine, files=files))


@pytest.fixture
def catalog(tmp_path: Path) -> paimon.Catalog:
    catalog = paimon.connect(tmp_path / "lake")
    catalog.create_database("d")
    return catalog


def create_table(catalog: paimon.Catalog, **options: str) -> paimon.Table:
    texts = {name.replace("__", ".").replace("_", "-"): value for name, value in options.items()}
    table = catalog.create_table("d.t", COLUMNS, primary_keys=["id"], options={"bucket": "2"} | texts)
    table.write([{"id": n, "v": 1} for n in range(8)])
    return table


def prepare(table: paimon.Table, count: int = 8) -> list[CommitMessage]:
    with table.new_batch_write_builder().new_write() as writer:
        writer.write([{"id": n, "v": 2} for n in range(count)])
        return list(writer.prepare_commit())


def commit(table: paimon.Table, messages: Sequence[CommitMessage]) -> object:
    return table.new_batch_write_builder().new_commit().commit(messages)


def list_files(table: paimon.Table) -> set[Path]:
    return {path for path in Path(table.location).rglob("bucket-*/*") if path.is_file()}


def make_older(paths: set[Path], days: float = 2) -> None:
    for path in paths:
        written = path.stat().st_mtime - days * DAY_SECONDS
        os.utime(path, (written, written))


def shift_clock(monkeypatch: pytest.MonkeyPatch, days: int) -> None:
    true_time = time.time_ns
    monkeypatch.setattr("paimon.adapters.effects.time.time_ns", lambda: true_time() + days * DAY_SECONDS * 10**9)


REMOVALS: dict[str, Callable[[paimon.Catalog], object]] = {
    "method": lambda c: c.table("d.t").maintain.remove_orphans(dry_run=False),
    "age": lambda c: c.table("d.t").maintain.remove_orphans(timedelta(days=1), dry_run=False),
    "due": lambda c: c.table("d.t").maintain.run_due(orphans=True),
    "database": lambda c: c.maintain("d", orphans=True),
    "call": lambda c: c.sql("CALL sys.remove_orphan_files(table => 'd.t')"),
    "command": lambda c: main(["orphans", f"{c.warehouse}/d.db/t", "--delete"]),
}


@pytest.mark.parametrize(("entry", "days"), mark_products(REMOVALS, [3, 0, -3]))
def test_a_wrong_local_clock_removes_no_young_file(
    catalog: paimon.Catalog,
    entry: str,
    days: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    table = create_table(catalog)
    messages = prepare(table)
    old = Path(table.location, "bucket-0", "data-old.parquet")
    old.write_bytes(b"x")
    make_older({old})
    shift_clock(monkeypatch, days)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        REMOVALS[entry](catalog)
    shown = " ".join(str(w.message) for w in caught if issubclass(w.category, PaimonWarning)) + capsys.readouterr().err
    assert ("the clock of this machine is" in shown) == (days != 0)
    assert ("ahead of" in shown, "behind" in shown) == (days > 0, days < 0)
    assert not old.exists()
    commit(table, messages)
    assert table.maintain.check(deep=True).is_whole
    assert {row["v"] for row in table.scan().to_arrow().to_pylist()} == {2}
    assert not list(Path(table.location, "manifest").glob(".time-*"))


def test_a_list_counts_from_the_newest_file(catalog: paimon.Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    table = create_table(catalog)
    prepared = set(list_files(table))
    prepare(table)
    prepared = list_files(table) - prepared
    shift_clock(monkeypatch, 3)
    before = set(Path(table.location).rglob("*"))
    assert table.maintain.remove_orphans().num_rows == 0
    make_older(prepared)
    assert {Path(p) for p in table.maintain.remove_orphans()["path"].to_pylist()} == prepared
    make_older({path for path in Path(table.location).rglob("*") if path.is_file()} - prepared)
    assert table.maintain.remove_orphans().num_rows == 0, "now may be when the newest file was written"
    assert set(Path(table.location).rglob("*")) == before


def test_a_storage_that_refuses_writes_counts_from_the_newest_file(catalog: paimon.Catalog) -> None:
    table = create_table(catalog)
    live = list_files(table)
    prepare(table)
    prepared = list_files(table) - live
    read_only = wrap(table, WrappedFiles(table.engine.files, is_read_only=True))
    everything = {path for path in Path(table.location).rglob("*") if path.is_file()}
    make_older(everything, 5)
    assert read_only.maintain.remove_orphans(dry_run=False).num_rows == 0
    make_older(prepared, 2)
    assert read_only.maintain.remove_orphans(dry_run=False).num_rows == len(prepared)
    assert list_files(table) == live


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_storage_without_times_is_refused(catalog: paimon.Catalog, dry_run: bool) -> None:
    table = create_table(catalog)
    without = wrap(table, WrappedFiles(table.engine.files, has_times=False))
    with pytest.raises(Unsupported, match="without modification times"):
        without.maintain.remove_orphans(dry_run=dry_run)


@pytest.mark.parametrize("days", [3, -3])
def test_consumers_and_tags_expire_by_the_clock_of_the_storage(
    catalog: paimon.Catalog, days: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create_table(catalog, consumer__expiration_time="1 d")
    for name in ("young", "old"):
        table.consumers.reset(name, 1)
        table.tags.create(name)
    make_older({Path(table.location, "consumer", "consumer-old"), Path(table.location, "tag", "tag-old")})
    shift_clock(monkeypatch, days)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PaimonWarning)
        assert table.maintain.expire_tags(timedelta(days=1)) == ["old"]
        table.write([{"id": 1, "v": 3}])
        assert list(table.consumers) == ["young"]
        assert table.consumers.expire(timedelta(days=1)) == []


@pytest.mark.parametrize("options", [{}, {"file__format": "orc"}, {"bucket": "-1"}, {"changelog_producer": "input"}])
def test_a_commit_whose_files_were_removed_is_refused(catalog: paimon.Catalog, options: dict[str, str]) -> None:
    table = create_table(catalog, **options)
    live, rows = list_files(table), table.scan().to_arrow()
    messages = prepare(table)
    make_older(list_files(table) - live)
    gone = {Path(p).name for p in table.maintain.remove_orphans(dry_run=False)["path"].to_pylist()}
    assert len(gone) >= 1
    with pytest.raises(CommitConflict, match="does not exist any more") as refused:
        commit(table, messages)
    assert set(refused.value.files) >= {name for name in gone if name.startswith("data-")}
    assert [s.id for s in table.snapshots()] == [1] and table.scan().to_arrow().equals(rows)
    commit(table, prepare(table))
    assert table.maintain.check(deep=True).is_whole


def test_one_missing_file_of_an_old_commit_is_named(catalog: paimon.Catalog) -> None:
    table = create_table(catalog)
    live = list_files(table)
    messages = prepare(table)
    prepared = sorted(list_files(table) - live)
    make_older(set(prepared))
    prepared[-1].unlink()
    files = WrappedFiles(table.engine.files)
    with pytest.raises(CommitConflict, match=prepared[-1].name) as refused:
        commit(wrap(table, files), messages)
    assert refused.value.files == (prepared[-1].name,)
    assert sorted(d for d in files.listed if "bucket-" in d) == [f"{table.location}/bucket-{n}" for n in (0, 1)]


def test_old_files_that_exist_are_committed_and_young_ones_are_not_listed(catalog: paimon.Catalog) -> None:
    table = create_table(catalog, write_only="true")
    live = list_files(table)
    old = prepare(table)
    make_older(list_files(table) - live)
    files = WrappedFiles(table.engine.files)
    commit(wrap(table, files), old)
    assert len([d for d in files.listed if "bucket-" in d]) == 2
    files.listed.clear()
    commit(wrap(table, files), prepare(table))
    assert [d for d in files.listed if "bucket-" in d] == []


def test_removed_deletion_vectors_are_not_committed(catalog: paimon.Catalog) -> None:
    options = dict.fromkeys(("deletion-vectors.enabled", "row-tracking.enabled", "data-evolution.enabled"), "true")
    table = catalog.create_table("d.t", COLUMNS, options=options)
    table.write([{"id": n, "v": 1} for n in range(8)])
    builder = table.new_batch_write_builder()
    before = set(Path(table.location).rglob("*"))
    messages = builder.new_update().delete_where("id = 3")
    made = {p for p in set(Path(table.location).rglob("*")) - before if p.is_file()}
    make_older(made)
    table.maintain.remove_orphans(dry_run=False)
    with pytest.raises(CommitConflict, match="does not exist any more"):
        commit(table, messages)
    assert table.scan().count() == 8
