"""The managers of snapshots, tags, branches, changelogs and consumers by the names of pypaimon.

Source: `pypaimon.snapshot.snapshot_manager` and its like.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, NoReturn, Self

from attrs import define, evolve

import paimon
from paimon.compat.catalog_values import (
    DEFAULT_MAIN_BRANCH,
    TagAlreadyExistException,
    TagNotExistException,
    catalog_errors,
)
from paimon.compat.file_io import FileIO
from paimon.compat.refused import PeerClass
from paimon.compat.snapshot import Changelog, Snapshot, Tag, from_paimon_snapshot, from_paimon_tag
from paimon.domain.json_text import dump_json, load_json
from paimon.domain.paths import STATE_SUFFIX
from paimon.engines import open_with_engine


class TableManager(PeerClass):
    """The base of all managers: what is stored about a table on one branch."""

    def __init__(self, file_io: FileIO, table_path: str, branch: str | None = None) -> None:
        self._file_io = file_io
        self.table_path = table_path.rstrip("/")
        self.branch = BranchManager.normalize_branch(branch)
        self._opened: paimon.Table | None = None

    @classmethod
    def of(cls, table: paimon.Table) -> Self:
        """Return the manager of an open table."""
        made = cls(FileIO(table.engine), table.location, table.context.paths.branch)
        made._opened = table
        return made

    @property
    def file_io(self) -> FileIO:
        """The storage of the table."""
        return self._file_io

    @property
    def table(self) -> paimon.Table:
        """The table, seen from the branch."""
        if self._opened is None:
            main: Any = open_with_engine(self.file_io.engine, self.table_path)
            self._opened = evolve(main, context=main.context.at_branch(self.branch))
        assert self._opened is not None
        return self._opened

    @property
    def _root(self) -> str:
        """The directory of the metadata of the branch."""
        return BranchManager.branch_path(self.table_path, self.branch)

    def on_branch(self, branch: str | None) -> Self:
        """Return the manager of another branch; None for the main one."""
        made = type(self)(self.file_io, self.table_path, branch)
        if self._opened is not None:
            made._opened = evolve(self._opened, context=self._opened.context.at_branch(made.branch))
        return made


class SnapshotManager(TableManager):
    """The snapshots of a table."""

    @property
    def snapshot_dir(self) -> str:
        """The directory of the files of snapshots."""
        return f"{self._root}/snapshot"

    @property
    def latest_file(self) -> str:
        """The path of the hint to the latest snapshot."""
        return f"{self.snapshot_dir}/LATEST"

    def get_latest_snapshot(self) -> Snapshot | None:
        """Return the latest snapshot; None for a table without one."""
        found = self.table.snapshot()
        return None if found is None else from_paimon_snapshot(found)

    def list_snapshots(self) -> list[Snapshot]:
        """Return all snapshots, oldest first."""
        return [from_paimon_snapshot(snapshot) for snapshot in self.table.snapshots()]

    def try_get_earliest_snapshot(self, stop_snapshot_id: int | None = None) -> Snapshot | None:
        """Return the oldest snapshot, up to the given id; None if there is none."""
        found = self.list_snapshots()[:1]
        too_late = found and stop_snapshot_id is not None and found[0].id > stop_snapshot_id
        return None if not found or too_late else found[0]

    def get_snapshot_by_id(self, snapshot_id: int) -> Snapshot | None:
        """Return the snapshot of an id; None if there is none."""
        found = next((s for s in self.table.snapshots() if s.id == snapshot_id), None)
        return None if found is None else from_paimon_snapshot(found)

    def get_snapshots_batch(self, snapshot_ids: list[int], max_workers: int = 4) -> dict[int, Snapshot | None]:
        """Return the snapshots by id; None for those that do not exist."""
        known = {snapshot.id: snapshot for snapshot in self.list_snapshots()}
        return {number: known.get(number) for number in snapshot_ids}

    def earlier_or_equal_time_mills(self, timestamp: int) -> Snapshot | None:
        """Return the last snapshot at or before a time in epoch milliseconds."""
        return next((s for s in reversed(self.list_snapshots()) if s.time_millis <= timestamp), None)

    def later_or_equal_watermark(self, watermark: int) -> Snapshot | None:
        """Return the first snapshot with at least this watermark."""
        return next((s for s in self.list_snapshots() if s.watermark is not None and s.watermark >= watermark), None)

    def get_snapshot_path(self, snapshot_id: int) -> str:
        """Return the path of the file of a snapshot."""
        return f"{self.snapshot_dir}/snapshot-{snapshot_id}"

    def read_latest_file(self, max_retries: int = 5) -> str | None:
        """Return the id of the latest snapshot as a text; None for a table without one."""
        found = self.table.snapshot()
        return None if found is None else str(found.id)

    def copy_with_branch(self, branch_name: str) -> SnapshotManager:
        """Return the snapshots of another branch."""
        return self.on_branch(branch_name)

    def find_next_scannable(
        self,
        start_id: int,
        should_scan: Callable[[Snapshot], bool],
        lookahead_size: int = 10,
        max_workers: int = 4,
    ) -> tuple[Snapshot | None, int, int]:
        """Return the first of some following snapshots for which a function is true."""
        known = self.get_snapshots_batch(list(range(start_id, start_id + lookahead_size)), max_workers)
        for skipped, (number, found) in enumerate(known.items()):
            if found is None:
                return None, number, skipped
            if should_scan(found):
                return found, number + 1, skipped
        return None, start_id + lookahead_size, lookahead_size


class TagManager(TableManager):
    """The tags of a table."""

    def tag_directory(self) -> str:
        """Return the directory of the files of tags."""
        return f"{self._root}/tag"

    def tag_path(self, tag_name: str) -> str:
        """Return the path of the file of a tag."""
        return f"{self.tag_directory()}/tag-{tag_name}"

    def tag_exists(self, tag_name: str) -> bool:
        """Return whether there is a tag of this name."""
        return tag_name in self.table.tags

    def get(self, tag_name: str) -> Tag | None:
        """Return a tag; None if there is none."""
        if not tag_name or tag_name.isspace():
            raise ValueError("Tag name shouldn't be blank.")
        found = self.table.tags.get(tag_name)
        return None if found is None else from_paimon_tag(found)

    def get_or_throw(self, tag_name: str) -> Tag:
        """Return a tag."""
        found = self.get(tag_name)
        if found is None:
            raise ValueError(f"Tag '{tag_name}' doesn't exist.")
        return found

    def list_tags(self) -> list[str]:
        """Return the names of the tags, sorted."""
        return sorted(self.table.tags)

    def create_tag(
        self, snapshot: Snapshot, tag_name: str, ignore_if_exists: bool = False, time_retained: str | None = None
    ) -> None:
        """Create a tag of a snapshot."""
        self.create(tag_name, snapshot.id, ignore_if_exists, time_retained)

    def create(
        self, name: str, snapshot_id: int | None, ignore_if_exists: bool = False, time_retained: str | None = None
    ) -> None:
        """Create a tag of a snapshot that is given by its id."""
        try:
            with catalog_errors():
                self.table.tags.create(name, snapshot_id, time_retained=time_retained, exist_ok=ignore_if_exists)
        except TagAlreadyExistException as error:
            raise ValueError(f"Tag '{name}' already exists.") from error
        except paimon.NotFound as error:
            missing = "No snapshot exists in this table." if snapshot_id is None else None
            raise ValueError(missing or f"Snapshot with id {snapshot_id} doesn't exist.") from error

    def replace_tag(self, snapshot: Snapshot, tag_name: str, time_retained: str | None = None) -> None:
        """Make a tag name another snapshot."""
        self.replace(tag_name, snapshot.id, time_retained)

    def replace(self, name: str, snapshot_id: int | None, time_retained: str | None = None) -> None:
        """Make a tag name another snapshot that is given by its id."""
        if name not in self.table.tags:
            raise ValueError(f"Tag '{name}' doesn't exist.")
        try:
            self.table.tags.replace(name, snapshot_id, time_retained=time_retained)
        except paimon.NotFound as error:
            raise ValueError(f"Snapshot with id {snapshot_id} doesn't exist.") from error

    def rename_tag(self, old_name: str, new_name: str) -> None:
        """Give a tag another name."""
        try:
            with catalog_errors():
                self.table.tags.rename(old_name, new_name)
        except TagNotExistException as error:
            raise ValueError(f"Tag '{old_name}' doesn't exist.") from error
        except TagAlreadyExistException as error:
            raise ValueError(f"Tag '{new_name}' already exists.") from error

    def delete_tag(self, tag_name: str) -> bool:
        """Delete a tag; return whether there was one."""
        if tag_name not in self.table.tags:
            return False
        self.table.tags.delete(tag_name)
        return True


class BranchManager(PeerClass):
    """The names and paths of branches; the branches of a table are those of `FileSystemBranchManager`."""

    @staticmethod
    def branch_path(table_path: str, branch: str) -> str:
        """Return the directory of the metadata of a branch."""
        return table_path if BranchManager.is_main_branch(branch) else f"{table_path}/branch/branch-{branch}"

    @staticmethod
    def normalize_branch(branch: str | None) -> str:
        """Return the name of a branch; a blank one means main."""
        return branch.strip() if branch and branch.strip() else DEFAULT_MAIN_BRANCH

    @staticmethod
    def is_main_branch(branch: str) -> bool:
        """Return whether a name is that of the main branch."""
        return branch == DEFAULT_MAIN_BRANCH

    @staticmethod
    def validate_branch(branch_name: str) -> None:
        """Check the name of a new branch."""
        if BranchManager.is_main_branch(branch_name):
            raise ValueError(f"Branch name '{branch_name}' is the default branch and cannot be used.")
        if not branch_name or branch_name.isspace():
            raise ValueError("Branch name is blank.")
        if branch_name.strip().isdigit():
            raise ValueError(f"Branch name cannot be pure numeric string but is '{branch_name}'.")

    @staticmethod
    def fast_forward_validate(branch_name: str, current_branch: str) -> None:
        """Check that a branch can be fast-forwarded to."""
        if BranchManager.is_main_branch(branch_name):
            raise ValueError(f"Branch name '{branch_name}' do not use in fast-forward.")
        if not branch_name or branch_name.isspace():
            raise ValueError("Branch name is blank.")
        if branch_name == current_branch:
            raise ValueError(f"Fast-forward from the current branch '{current_branch}' is not allowed.")

    def branches(self) -> list[str]:
        """Return the names of the branches other than main."""
        refuse_table()

    def branch_exists(self, branch_name: str) -> bool:
        """Return whether there is a branch of this name."""
        refuse_table()

    def create_branch(self, branch_name: str, tag_name: str | None = None, ignore_if_exists: bool = False) -> None:
        """Create a branch."""
        refuse_table()

    def drop_branch(self, branch_name: str) -> None:
        """Delete a branch."""
        refuse_table()

    def rename_branch(self, from_branch: str, to_branch: str) -> None:
        """Give a branch another name."""
        refuse_table()

    def fast_forward(self, branch_name: str) -> None:
        """Continue the table with the snapshots of a branch."""
        refuse_table()


def refuse_table() -> NoReturn:
    """Raise the error of a `BranchManager` that belongs to no table."""
    raise NotImplementedError("This BranchManager belongs to no table. Call FileStoreTable.branch_manager().")


class FileSystemBranchManager(BranchManager, TableManager):
    """The branches of a table; the managers and the current branch that pypaimon takes are those of the path."""

    def __init__(
        self,
        file_io: FileIO,
        table_path: str,
        snapshot_manager: SnapshotManager | None = None,
        tag_manager: TagManager | None = None,
        schema_manager: Any = None,
        current_branch: str = DEFAULT_MAIN_BRANCH,
    ) -> None:
        TableManager.__init__(self, file_io, table_path, current_branch)
        self.current_branch = self.branch

    def branch_path(self, branch_name: str) -> str:  # type: ignore[override]
        """Return the directory of the metadata of a branch."""
        return BranchManager.branch_path(self.table_path, branch_name)

    def branches(self) -> list[str]:
        """Return the names of the branches other than main."""
        return list(self.table.branches)

    def branch_exists(self, branch_name: str) -> bool:
        """Return whether there is a branch of this name."""
        return branch_name in self.table.branches

    def create_branch(self, branch_name: str, tag_name: str | None = None, ignore_if_exists: bool = False) -> None:
        """Create a branch."""
        self.validate_branch(branch_name)
        try:
            self.table.branches.create(branch_name, tag_name, exist_ok=ignore_if_exists)
        except paimon.AlreadyExists as error:
            raise ValueError(f"Branch '{branch_name}' already exists.") from error
        except paimon.NotFound as error:
            raise ValueError(f"Tag '{tag_name}' doesn't exist.") from error

    def drop_branch(self, branch_name: str) -> None:
        """Delete a branch."""
        self._check_exists(branch_name)
        self.table.branches.delete(branch_name)

    def rename_branch(self, from_branch: str, to_branch: str) -> None:
        """Give a branch another name."""
        if self.is_main_branch(from_branch):
            raise ValueError("Cannot rename the main branch.")
        self._check_exists(from_branch)
        try:
            self.table.branches.rename(from_branch, to_branch)
        except paimon.AlreadyExists as error:
            raise ValueError(f"Branch '{to_branch}' already exists.") from error

    def fast_forward(self, branch_name: str) -> None:
        """Continue the table with the snapshots of a branch."""
        self._check_exists(branch_name)
        self.table.branches.fast_forward(branch_name)

    def _check_exists(self, branch_name: str) -> None:
        if branch_name not in self.table.branches:
            raise ValueError(f"Branch '{branch_name}' doesn't exist.")


@define
class Consumer:
    """The progress of a stream reader."""

    next_snapshot: int

    def to_json(self) -> str:
        """Return the content of the file of a consumer."""
        return dump_json({"nextSnapshot": self.next_snapshot}).decode()

    @staticmethod
    def from_json(json_str: str) -> Consumer:
        """Parse the content of the file of a consumer."""
        return Consumer(int(load_json(json_str)["nextSnapshot"]))

    @classmethod
    def from_path(cls, file_io: FileIO, path: str) -> Consumer | None:
        """Return the consumer of a file; None if there is none."""
        text = file_io.read_overwritten_file_utf8(path)
        return None if text is None else cls.from_json(text)


class ConsumerManager(TableManager):
    """The consumers of a table."""

    def consumer(self, consumer_id: str) -> Consumer | None:
        """Return a consumer; None if there is none."""
        found = self.table.consumers.get(consumer_id)
        return None if found is None else Consumer(found)

    def consumers(self) -> dict[str, int]:
        """Return the next snapshot of each consumer; consumers that protect a state for another one are left out."""
        return {name: at for name, at in self.table.consumers.items() if not name.endswith(STATE_SUFFIX)}

    def list_all_ids(self) -> list[str]:
        """Return the names of the consumers."""
        return list(self.consumers())

    def min_next_snapshot(self) -> int | None:
        """Return the first snapshot that a consumer has not read; None without consumers."""
        return min(self.consumers().values(), default=None)

    def reset_consumer(self, consumer_id: str, consumer: Consumer) -> None:
        """Set the progress of a consumer; as in pypaimon, its snapshot need not exist."""
        path = f"{self._root}/consumer/consumer-{_check_consumer_id(consumer_id)}"
        self.file_io.overwrite_file_utf8(path, consumer.to_json())

    def delete_consumer(self, consumer_id: str) -> None:
        """Delete a consumer; nothing happens if there is none."""
        if consumer_id in self.table.consumers:
            self.table.consumers.delete(consumer_id)

    def expire(self, expire_datetime: datetime) -> None:
        """Delete the consumers without progress since a time."""
        self.table.consumers.expire(expire_datetime)

    def clear_consumers(self, including_pattern: str, excluding_pattern: str | None = None) -> None:
        """Delete the consumers whose names match the first pattern and not the second."""
        self.table.consumers.clear(including_pattern, excluding_pattern)

    def with_branch(self, branch: str | None) -> ConsumerManager:
        """Return the consumers of another branch; None for the main one."""
        return self.on_branch(branch)


def _check_consumer_id(consumer_id: str) -> str:
    if not consumer_id:
        raise ValueError("consumer_id cannot be empty")
    if "/" in consumer_id or "\\" in consumer_id or consumer_id in (".", ".."):
        raise ValueError(f"consumer_id cannot contain path separators: {consumer_id}")
    return consumer_id


class ChangelogManager(TableManager):
    """The decoupled changelogs of a table."""

    def changelog_directory(self) -> str:
        """Return the directory of the files of changelogs."""
        return f"{self._root}/changelog"

    def long_lived_changelog_path(self, snapshot_id: int) -> str:
        """Return the path of the file of a changelog."""
        return f"{self.changelog_directory()}/changelog-{snapshot_id}"

    def long_lived_changelog_exists(self, snapshot_id: int) -> bool:
        """Return whether there is a changelog of this snapshot."""
        return snapshot_id in self._list_ids()

    def latest_long_lived_changelog_id(self) -> int | None:
        """Return the last snapshot with a decoupled changelog; None without one."""
        return max(self._list_ids(), default=None)

    def earliest_long_lived_changelog_id(self) -> int | None:
        """Return the first snapshot with a decoupled changelog; None without one."""
        return min(self._list_ids(), default=None)

    def try_get_changelog(self, snapshot_id: int) -> Changelog:
        """Return the changelog of a snapshot."""
        return Changelog.try_from_path(self.file_io, self.long_lived_changelog_path(snapshot_id))

    def changelog(self, snapshot_id: int) -> Changelog:
        """Return the changelog of a snapshot."""
        return Changelog.from_path(self.file_io, self.long_lived_changelog_path(snapshot_id))

    def long_lived_changelog(self, snapshot_id: int) -> Changelog:
        """Return the changelog of a snapshot; as `changelog`."""
        return self.changelog(snapshot_id)

    def changelogs(self) -> Iterator[Changelog]:
        """Yield all changelogs, oldest first."""
        for snapshot_id in self._list_ids():
            yield self.changelog(snapshot_id)

    def safely_get_all_changelogs(self) -> list[Changelog]:
        """Return all changelogs, oldest first, without those that are deleted concurrently."""
        texts = [self.file_io.read_overwritten_file_utf8(self.long_lived_changelog_path(n)) for n in self._list_ids()]
        return [Changelog.from_json(text) for text in texts if text]

    def _list_ids(self) -> list[int]:
        names = self.file_io.list_names(self.changelog_directory())
        numbers = [name.removeprefix("changelog-") for name in names if name.startswith("changelog-")]
        return sorted(int(number) for number in numbers if number.isdigit())
