"""The references that keep states of a table: its tags, branches and consumers.

Invariant: each class is a mapping that reads the table at each access; its methods delegate to operations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta

from attrs import field, frozen

from paimon.display.listings import EntriesDisplay
from paimon.domain.errors import InvalidRequest, NotFound
from paimon.domain.options.parse import parse_duration_millis, parse_duration_nanos
from paimon.domain.snapshot.snapshot import Snapshot, Tag
from paimon.operations.expire.references import list_branch_names
from paimon.operations.metadata.consumers import read_consumers
from paimon.operations.metadata.schemas import on_same_table
from paimon.operations.metadata.snapshots import latest_snapshot, load_tag, tag_names
from paimon.operations.metadata.storage_time import OlderThan
from paimon.operations.read.time_travel import to_epoch_millis
from paimon.operations.refs import branches, consumers, tags
from paimon.operations.table_context import TableContext
from paimon.ports.engine import Engine

Age = timedelta | int | str
"""A length of time: a timedelta, milliseconds, or text such as ``"7 d"``."""


def age_millis(age: Age) -> int:
    """Return a length of time in milliseconds."""
    if isinstance(age, timedelta):
        return age // timedelta(milliseconds=1)
    return parse_duration_millis(age, "age") if isinstance(age, str) else int(age)


def before_millis(engine: Engine, moment: object) -> int:
    """Return the epoch milliseconds of an age (timedelta) before now, or of a moment as in `Table.scan`."""
    if isinstance(moment, timedelta):
        return engine.clock.now_millis() - age_millis(moment)
    return to_epoch_millis(engine, moment)


def to_older_than(engine: Engine, moment: object) -> OlderThan:
    """Return the files that are older than an age (timedelta), or than a moment as in `Table.scan`."""
    if isinstance(moment, timedelta):
        return OlderThan(age_millis(moment))
    return OlderThan(0, to_epoch_millis(engine, moment))


@frozen(eq=False, repr=False)
class Tags(EntriesDisplay, Mapping[str, Tag]):
    """The tags of a table by name: ``table.tags["release"]``, ``table.tags.create("release")``.

    Parameters
    ----------
    context : TableContext
        Engine and table.
    """

    _context: TableContext = field(alias="context")

    def __getitem__(self, name: str) -> Tag:
        try:
            return load_tag(self._context, name)
        except (NotFound, InvalidRequest) as missing:
            raise KeyError(name) from missing

    def __iter__(self) -> Iterator[str]:
        return iter(tag_names(self._context))

    def __len__(self) -> int:
        return len(tag_names(self._context))

    def create_due(self) -> list[str]:
        """Create the tags that are due by the options `tag.automatic-creation` and `tag.creation-*`; return the names.

        Writers do so after each commit. Call it for a table without writers, or a `write-only` one.
        """
        before = set(self)
        on_same_table(tags.create_due_tags)(self._context)
        return [name for name in self if name not in before]

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
        """Create a tag, a named copy of a snapshot that does not expire.

        Parameters
        ----------
        name : str
            The name of the tag.
        snapshot : int, optional
            The snapshot id; by default the latest. At most one of `snapshot`, `since` and `watermark` is given.
        since : int, str or datetime, optional
            The first snapshot or tag that was committed at this time or later; a time as in `Table.scan`.
        watermark : int, optional
            The first snapshot or tag with at least this watermark, in epoch milliseconds.
        time_retained : timedelta, int or str, optional
            The time to live of the tag, in milliseconds or as text (``"30 d"``). The default is the option
            `tag.default-time-retained`; without it the tag does not expire.
        exist_ok : bool
            Return an existing tag of this name.

        Returns
        -------
        Tag
            The tag with its snapshot.

        Raises
        ------
        AlreadyExists
            There is a tag of this name.
        NotFound
            There is no such snapshot.
        InvalidRequest
            The name is not possible, or more than one state is given.
        """
        if sum(way is not None for way in (snapshot, since, watermark)) > 1:
            raise InvalidRequest("A tag takes at most one of snapshot, since and watermark.", subject=name)
        if since is not None or watermark is not None:
            millis = None if since is None else to_epoch_millis(self._context.engine, since)
            snapshot = tags.find_first_reaching(self._context, millis, watermark).id
        return tags.create_tag(self._context, name, snapshot, _to_retained_millis(name, time_retained), exist_ok)

    def replace(self, name: str, snapshot: int | None = None, *, time_retained: Age | None = None) -> Tag:
        """Make a tag name another snapshot, with a new time to live.

        Parameters
        ----------
        name : str
            The name of an existing tag.
        snapshot : int, optional
            The snapshot id; by default the latest.
        time_retained : timedelta, int or str, optional
            As in `create`.

        Returns
        -------
        Tag
            The tag with its new snapshot.

        Raises
        ------
        NotFound
            There is no such tag or snapshot.
        """
        return tags.replace_tag(self._context, name, snapshot, _to_retained_millis(name, time_retained))

    def rename(self, name: str, to: str) -> Tag:
        """Give a tag another name, and return the tag."""
        return tags.rename_tag(self._context, name, to)

    def delete(self, name: str) -> int:
        """Delete a tag and the files that only it references; return the number of deleted files."""
        return tags.delete_tag(self._context, name)

    def _table_name(self) -> str:
        return self._context.table.table_name

    def __repr__(self) -> str:
        return f"Tags({self._context.table.table_name!r}: {', '.join(self) or 'none'})"


@frozen(eq=False, repr=False)
class Branches(EntriesDisplay, Mapping[str, "Snapshot | None"]):
    """The branches of a table other than main, each with its latest snapshot; read one as ``table$branch_<name>``.

    Parameters
    ----------
    context : TableContext
        Engine and table.
    """

    _context: TableContext = field(alias="context")

    def __getitem__(self, name: str) -> Snapshot | None:
        if name not in list_branch_names(self._context.engine, self._context.paths):
            raise KeyError(name)
        return latest_snapshot(self._context.at_branch(name))

    def __iter__(self) -> Iterator[str]:
        return iter(list_branch_names(self._context.engine, self._context.paths))

    def __len__(self) -> int:
        return len(list_branch_names(self._context.engine, self._context.paths))

    def create(self, name: str, tag: str | None = None, *, exist_ok: bool = False) -> None:
        """Create a branch.

        Parameters
        ----------
        name : str
            The name of the branch.
        tag : str, optional
            The tag whose state the branch starts with; without a tag it has the schemas of the table and no rows.
        exist_ok : bool
            Accept an existing branch of this name.

        Raises
        ------
        AlreadyExists
            There is a branch of this name.
        NotFound
            There is no such tag.
        """
        branches.create_branch(self._context, name, tag, exist_ok)

    def delete(self, name: str) -> None:
        """Delete a branch; the files that only it references become orphan files (see `Maintain.remove_orphans`)."""
        branches.delete_branch(self._context, name)

    def rename(self, name: str, to: str) -> None:
        """Give a branch another name. No writer may use the branch at that time."""
        branches.rename_branch(self._context, name, to)

    def fast_forward(self, name: str) -> int:
        """Continue this table with the snapshots of a branch, and return the newest snapshot id.

        Snapshots and tags that only this table has after the common ones are removed.
        """
        return branches.fast_forward(self._context, name)

    def _table_name(self) -> str:
        return self._context.table.table_name

    def __repr__(self) -> str:
        return f"Branches({self._context.table.table_name!r}: {', '.join(self) or 'none'})"


@frozen(eq=False, repr=False)
class Consumers(EntriesDisplay, Mapping[str, int]):
    """The consumers of a table, each with the next snapshot it reads; snapshots from there on do not expire.

    Parameters
    ----------
    context : TableContext
        Engine and table.
    """

    _context: TableContext = field(alias="context")

    def __getitem__(self, name: str) -> int:
        return read_consumers(self._context)[name]

    def __iter__(self) -> Iterator[str]:
        return iter(read_consumers(self._context))

    def __len__(self) -> int:
        return len(read_consumers(self._context))

    def reset(self, name: str, next_snapshot: int) -> None:
        """Set the next snapshot of a consumer, which is created if it does not exist."""
        consumers.reset_consumer(self._context, name, next_snapshot)

    def delete(self, name: str) -> None:
        """Delete a consumer."""
        consumers.delete_consumer(self._context, name)

    def clear(self, including: str = ".*", excluding: str | None = None) -> list[str]:
        """Delete the consumers whose whole name matches `including` and not `excluding`; return their names.

        Parameters
        ----------
        including : str
            A regular expression.
        excluding : str, optional
            A regular expression.

        Returns
        -------
        list of str
            The names of the deleted consumers.
        """
        return consumers.clear_consumers(self._context, including, excluding)

    def expire(self, older_than: object) -> list[str]:
        """Delete the consumers without progress since a moment, or for an age (timedelta); return their names."""
        older = to_older_than(self._context.engine, older_than)
        return on_same_table(consumers.expire_consumers)(self._context, older)

    def _table_name(self) -> str:
        return self._context.table.table_name

    def __repr__(self) -> str:
        listed = ", ".join(f"{name} at {at}" for name, at in self.items())
        return f"Consumers({self._context.table.table_name!r}: {listed or 'none'})"


def _to_retained_millis(name: str, age: Age | None) -> float | None:
    """Return the time to live of a tag in milliseconds; fractions are microseconds, and smaller ones are refused."""
    if isinstance(age, timedelta):
        return age / timedelta(milliseconds=1)
    if not isinstance(age, str):
        return None if age is None else int(age)
    micros, rest = divmod(parse_duration_nanos(age, "age"), 1_000)
    if rest:
        raise InvalidRequest(
            f"Tag {name!r}: time to live {age!r} has fractions of a microsecond",
            subject=name,
            hint="give whole microseconds",
        )
    return micros / 1_000
