"""Consumers and decoupled changelogs of a table by the names of pypaimon's managers.

Source: `pypaimon.consumer`, `pypaimon.changelog`.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from attrs import define

from paimon.compat.file_io import FileIO
from paimon.compat.managers import TableManager
from paimon.compat.snapshot import Changelog
from paimon.domain.json_text import dump_json, load_json
from paimon.domain.paths import STATE_SUFFIX


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
        found = self._table.consumers.get(consumer_id)
        return None if found is None else Consumer(found)

    def consumers(self) -> dict[str, int]:
        """Return the next snapshot of each consumer; consumers that protect a state for another one are left out."""
        return {name: at for name, at in self._table.consumers.items() if not name.endswith(STATE_SUFFIX)}

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
        if consumer_id in self._table.consumers:
            self._table.consumers.delete(consumer_id)

    def expire(self, expire_datetime: datetime) -> None:
        """Delete the consumers without progress since a time."""
        self._table.consumers.expire(expire_datetime)

    def clear_consumers(self, including_pattern: str, excluding_pattern: str | None = None) -> None:
        """Delete the consumers whose names match the first pattern and not the second."""
        self._table.consumers.clear(including_pattern, excluding_pattern)

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
        """Return all changelogs, oldest first, without those that are deleted meanwhile."""
        texts = [self.file_io.read_overwritten_file_utf8(self.long_lived_changelog_path(n)) for n in self._list_ids()]
        return [Changelog.from_json(text) for text in texts if text]

    def _list_ids(self) -> list[int]:
        names = self.file_io.list_names(self.changelog_directory())
        numbers = [name.removeprefix("changelog-") for name in names if name.startswith("changelog-")]
        return sorted(int(number) for number in numbers if number.isdigit())
