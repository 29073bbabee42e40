"""Upkeep of a table, asked for by hand, and what keeps its states: ``table.maintain``, ``table.tags`` and the like.

Law: what anything still needs is never removed; each verb answers what it did and can be run again after a crash.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pyarrow as pa
from attrs import evolve, field, frozen

from paimon.domain.errors import InvalidRequest
from paimon.domain.maintenance.health.fault import HealthReport
from paimon.domain.maintenance.retention.expiry import Retention
from paimon.domain.schema.table_definition import TableDefinition
from paimon.operations.maintain.refs.rollback import RolledBack, roll_back
from paimon.operations.maintain.refs.tags import expire_tags
from paimon.operations.maintain.retention.expire_changelogs import expire_changelogs
from paimon.operations.maintain.retention.expire_partitions import drop_partitions, expire_partitions, life_of
from paimon.operations.maintain.retention.expire_snapshots import Expired, expire_snapshots
from paimon.operations.maintain.retention.orphans import DAY_MILLIS, orphan_files, remove_orphans
from paimon.operations.read.time_travel import epoch_millis
from paimon.ports.engine import Engine
from paimon.upkeep.retention import Age, Branches, Consumers, Tags, age_millis, before_millis

_DAY = timedelta(milliseconds=DAY_MILLIS)


@frozen(eq=False, repr=False)
class Maintain:
    """The verbs of upkeep."""

    _engine: Engine = field(alias="engine")
    _table: TableDefinition = field(alias="table")

    def expire_snapshots(
        self,
        *,
        retain_min: int | None = None,
        retain_max: int | None = None,
        older_than: object = None,
        max_deletes: int | None = None,
    ) -> Expired:
        """Remove the oldest snapshots and the files that only they had, as the options `snapshot.*` say.

        Parameters
        ----------
        retain_min, retain_max : int
            So many stay at least, and at most, instead of `snapshot.num-retained.min` and `.max`.
        older_than
            Snapshots replaced before this moment go, instead of `snapshot.time-retained`: an age (timedelta), or a
            time as `Table.scan` takes it.
        max_deletes : int
            At most so many now, instead of `snapshot.expire.limit`.
        """
        kept = self._retention(
            Retention.of_snapshots(self._table.options), retain_min, retain_max, older_than, max_deletes
        )
        return expire_snapshots(self._engine, self._table, kept, everything=True)

    def expire_changelogs(
        self,
        *,
        retain_min: int | None = None,
        retain_max: int | None = None,
        older_than: object = None,
        max_deletes: int | None = None,
        delete_all: bool = False,
    ) -> Expired:
        """Remove the oldest long-lived changelogs, as the options `changelog.*` say, or all; see `expire_snapshots`."""
        kept = self._retention(
            Retention.of_changelogs(self._table.options), retain_min, retain_max, older_than, max_deletes
        )
        return expire_changelogs(self._engine, self._table, kept, delete_all)

    def expire_tags(self, older_than: object = None) -> list[str]:
        """Delete the tags whose time to live is over, and all made before a moment where one is given; their names."""
        before = None if older_than is None else before_millis(self._engine, older_than)
        return expire_tags(self._engine, self._table, before)

    def expire_partitions(
        self, age: Age | None = None, *, max_partitions: int | None = None
    ) -> list[Mapping[str, str | None]]:
        """Drop the partitions that are older than an age, by default `partition.expiration-time`; their values."""
        life = life_of(self._table, None if age is None else age_millis(age), max_partitions)
        return expire_partitions(self._engine, self._table, self._engine.ids.uuid(), life)

    def check(self, *, deep: bool = False) -> HealthReport:
        """Prove that the table is whole, or name each fault, the states that it touches and what can be done.

        Every reference of every snapshot, tag and long-lived changelog on all branches is followed: files exist, sizes
        and row counts agree, levels do not overlap, hints are not ahead of the truth, nothing lies outside the table.

        Parameters
        ----------
        deep : bool
            Read the data files of the newest states and tags too: rows, keys in order and unique, statistics.
        """
        from paimon.operations.maintain.check.check import check  # loaded by those who check

        return check(self._engine, self._table, deep)

    def remove_orphans(
        self, older_than: object = None, *, dry_run: bool = True, allow_young: bool = False
    ) -> pa.Table:
        """List the files that no snapshot, tag or changelog of any branch has, or delete them (``dry_run=False``).

        Parameters
        ----------
        older_than
            Only files last written before this moment, or older than this age (timedelta); one day by default.
        dry_run : bool
            Delete nothing, only list; the default. ``False`` deletes what is listed.
        allow_young : bool
            Let `older_than` be less than a day ago: files of writers that have yet to commit go then.

        Returns
        -------
        pa.Table
            One row a file: `path`, `size` (bytes), `modified`.

        Raises
        ------
        InvalidRequest
            The moment is too young.
        CorruptTable, StorageError
            Something that may hold files cannot be read; nothing was deleted.
        """
        before = before_millis(self._engine, _DAY if older_than is None else older_than)
        now = self._engine.clock.now_millis()
        if before > now or (before > now - DAY_MILLIS and not (dry_run or allow_young)):
            raise InvalidRequest(
                "files younger than a day may belong to writers that have yet to commit",
                subject="older_than",
                hint="give an earlier time, or allow_young=True if nobody is writing",
            )
        return (orphan_files if dry_run else remove_orphans)(self._engine, self._table, before)

    def rollback_to(
        self, snapshot: int | None = None, *, tag: str | None = None, timestamp: object = None
    ) -> RolledBack:
        """Make an earlier state the latest, and forget everything after it, later tags among them.

        Exactly one is given: a snapshot's id, a tag's name, or a moment (the last snapshot at or before it).
        """
        if sum(way is not None for way in (snapshot, tag, timestamp)) != 1:
            raise InvalidRequest("rollback needs exactly one of snapshot, tag, timestamp", subject="snapshot")
        millis = None if timestamp is None else epoch_millis(self._engine, timestamp)
        return roll_back(self._engine, self._table, snapshot, tag, millis)

    def _retention(
        self, kept: Retention, least: int | None, most: int | None, older_than: object, limit: int | None
    ) -> Retention:
        given: dict[str, Any] = {"num_min": least, "num_max": most, "limit": limit}
        if older_than is not None:
            given["time_millis"] = self._engine.clock.now_millis() - before_millis(self._engine, older_than)
        given = {name: value for name, value in given.items() if value is not None}
        if most is not None and least is None:
            given["num_min"] = min(kept.num_min, most)
        return evolve(kept, **given)

    def __repr__(self) -> str:
        return f"Maintain({self._table.identifier!r})"


class Kept:
    """What a table offers for its upkeep; mixed into `Table`, which has the engine and the definition."""

    __slots__ = ()
    engine: Engine
    definition: TableDefinition

    @property
    def tags(self) -> Tags:
        """The tags by name, and the verbs that make, replace, rename and delete them."""
        return Tags(self.engine, self.definition)

    @property
    def branches(self) -> Branches:
        """The branches but main, and the verbs that make, delete and fast-forward to them."""
        return Branches(self.engine, self.definition)

    @property
    def consumers(self) -> Consumers:
        """Who follows the table under a name, and the verbs that reset and forget them."""
        return Consumers(self.engine, self.definition)

    @property
    def maintain(self) -> Maintain:
        """Expiry, removal of orphan files, rollback."""
        return Maintain(self.engine, self.definition)

    def drop_partitions(self, *partitions: Mapping[str, object]) -> tuple[int, ...]:
        """Drop partitions (``{"day": "2026-01-01"}``; some of the columns are enough) in one commit; its snapshot ids.
        """
        return drop_partitions(self.engine, self.definition, self.engine.ids.uuid(), partitions)
