"""What keeps states of a table: its tags, branches and consumers.

Law: each is a live view: a mapping that is read when it is looked at, and verbs that delegate.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta

from attrs import field, frozen

from paimon.domain.errors import InvalidRequest, NotFound
from paimon.domain.options.parse import parse_duration_millis
from paimon.domain.paths import TablePaths
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import BATCH_COMMIT_IDENTIFIER, Snapshot, Tag
from paimon.operations.maintain.refs import branches, consumers, tags
from paimon.operations.maintain.retention.after_commit import after_commit
from paimon.operations.maintain.retention.holders import branch_names
from paimon.operations.read.snapshots import latest_snapshot, load_tag, tag_names
from paimon.operations.read.time_travel import epoch_millis
from paimon.ports.engine import Engine

Age = timedelta | int | str
"""A length of time: a timedelta, milliseconds, or text such as ``"7 d"``."""


def age_millis(age: Age) -> int:
    """A length of time in milliseconds."""
    if isinstance(age, timedelta):
        return age // timedelta(milliseconds=1)
    return parse_duration_millis(age, "age") if isinstance(age, str) else int(age)


def before_millis(engine: Engine, moment: object) -> int:
    """A time before which things are old: an age (timedelta), or a moment as `Table.scan` takes it, in epoch millis."""
    if isinstance(moment, timedelta):
        return engine.clock.now_millis() - age_millis(moment)
    return epoch_millis(engine, moment)


@frozen(eq=False, repr=False)
class Tags(Mapping[str, Tag]):
    """The tags of a table by name: ``table.tags["release"]``, ``table.tags.create("release")``."""

    _engine: Engine = field(alias="engine")
    _table: TableDefinition = field(alias="table")

    def __getitem__(self, name: str) -> Tag:
        try:
            return load_tag(self._engine, self._table.paths, name)
        except (NotFound, InvalidRequest) as missing:
            raise KeyError(name) from missing

    def __iter__(self) -> Iterator[str]:
        return iter(tag_names(self._engine, self._table.paths))

    def __len__(self) -> int:
        return len(tag_names(self._engine, self._table.paths))

    def create(
        self,
        name: str,
        snapshot: int | None = None,
        *,
        since: object = None,
        watermark: int | None = None,
        time_retained: Age | None = None,
        exist_ok: bool = False,
    ) -> Tag:
        """Name a snapshot, so that it does not expire.

        Parameters
        ----------
        snapshot : int
            Its id; by default the latest.
        since, watermark
            Instead, the first state, of a snapshot or a tag, that was committed at this time (as `Table.scan` takes
            it) or later; or the first whose watermark (epoch milliseconds) is at least this one.
        time_retained : timedelta, int, str
            The tag's time to live, also in milliseconds or as text (``"30 d"``); by default that of the option
            `tag.default-time-retained`, and without it for ever.
        exist_ok : bool
            Answer a tag of this name that is there already.

        Raises
        ------
        AlreadyExists, NotFound, InvalidRequest
            There is such a tag; no such snapshot; a name that cannot be one.
        """
        if sum(way is not None for way in (snapshot, since, watermark)) > 1:
            raise InvalidRequest("a tag takes one of snapshot, since, watermark", subject=name)
        if since is not None or watermark is not None:
            millis = None if since is None else epoch_millis(self._engine, since)
            snapshot = tags.first_reaching(self._engine, self._table, millis, watermark).id
        return tags.create_tag(self._engine, self._table, name, snapshot, _millis(time_retained), exist_ok)

    def replace(self, name: str, snapshot: int | None = None, *, time_retained: Age | None = None) -> Tag:
        """Let a tag name another snapshot (by default the latest), with a new time to live."""
        return tags.replace_tag(self._engine, self._table, name, snapshot, _millis(time_retained))

    def rename(self, name: str, to: str) -> Tag:
        """Give a tag another name."""
        return tags.rename_tag(self._engine, self._table, name, to)

    def delete(self, name: str) -> int:
        """Delete a tag, and the files that only it kept; answers how many files."""
        return tags.delete_tag(self._engine, self._table, name)

    def __repr__(self) -> str:
        return f"Tags({self._table.identifier!r}: {', '.join(self) or 'none'})"


@frozen(eq=False, repr=False)
class Branches(Mapping[str, "Snapshot | None"]):
    """The branches of a table but main, each with its latest snapshot; read one by ``table$branch_<name>``."""

    _engine: Engine = field(alias="engine")
    _table: TableDefinition = field(alias="table")

    def __getitem__(self, name: str) -> Snapshot | None:
        if name not in branch_names(self._engine, self._table.paths):
            raise KeyError(name)
        return latest_snapshot(self._engine, TablePaths(self._table.location, name))

    def __iter__(self) -> Iterator[str]:
        return iter(branch_names(self._engine, self._table.paths))

    def __len__(self) -> int:
        return len(branch_names(self._engine, self._table.paths))

    def create(self, name: str, tag: str | None = None, *, exist_ok: bool = False) -> None:
        """Make a branch at a tag's state, or without a tag an empty one with the table's schemas."""
        branches.create_branch(self._engine, self._table, name, tag, exist_ok)

    def delete(self, name: str) -> None:
        """Remove a branch; the files that only it had are orphans then (see `Maintain.remove_orphans`)."""
        branches.delete_branch(self._engine, self._table, name)

    def rename(self, name: str, to: str) -> None:
        """Give a branch another name, while nobody writes to it."""
        branches.rename_branch(self._engine, self._table, name, to)

    def fast_forward(self, name: str) -> int:
        """Let this table go on as the branch did, and forget what it did since; answers the newest snapshot."""
        return branches.fast_forward(self._engine, self._table, name)

    def __repr__(self) -> str:
        return f"Branches({self._table.identifier!r}: {', '.join(self) or 'none'})"


@frozen(eq=False, repr=False)
class Consumers(Mapping[str, int]):
    """Who follows the table, each with the snapshot that it reads next; snapshots from there on do not expire."""

    _engine: Engine = field(alias="engine")
    _table: TableDefinition = field(alias="table")

    def __getitem__(self, name: str) -> int:
        return consumers.consumers(self._engine, self._table.paths)[name]

    def __iter__(self) -> Iterator[str]:
        return iter(consumers.consumers(self._engine, self._table.paths))

    def __len__(self) -> int:
        return len(consumers.consumers(self._engine, self._table.paths))

    def reset(self, name: str, next_snapshot: int) -> None:
        """Let a consumer, new or not, go on from this snapshot."""
        consumers.reset_consumer(self._engine, self._table.paths, name, next_snapshot)

    def delete(self, name: str) -> None:
        """Forget a consumer."""
        consumers.delete_consumer(self._engine, self._table.paths, name)

    def clear(self, including: str = ".*", excluding: str | None = None) -> list[str]:
        """Forget the consumers whose whole name matches one regular expression and not the other."""
        return consumers.clear_consumers(self._engine, self._table.paths, including, excluding)

    def expire(self, older_than: object) -> list[str]:
        """Forget those that made no progress since a moment, or for an age (timedelta); answers their names."""
        before = before_millis(self._engine, older_than)
        return consumers.expire_consumers(self._engine, self._table.paths, before)

    def __repr__(self) -> str:
        listed = ", ".join(f"{name} at {at}" for name, at in self.items())
        return f"Consumers({self._table.identifier!r}: {listed or 'none'})"


def _millis(age: Age | None) -> int | None:
    return None if age is None else age_millis(age)


def keep_up(
    engine: Engine,
    table: TableDefinition,
    snapshot_ids: Sequence[int],
    identifier: int = BATCH_COMMIT_IDENTIFIER,
) -> None:
    """Do what follows a commit (see `after_commit`); where that fails, the commit stands and a warning says why."""
    if not snapshot_ids:
        return
    failure = after_commit(engine, table, snapshot_ids[-1], identifier).failure
    if failure is not None:
        what = f"the commit to {table.identifier} stands, but tags and expiry after it failed: {failure}"
        warnings.warn(what, RuntimeWarning, stacklevel=3)
