"""How far a stream scan has read: a snapshot, and the number of its splits that are read.

Invariant: a range between two positions always means the same rows. A position inside a snapshot names the plan that it
counts in. The first position after the start contains the start, because it was found at that time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

from attrs import evolve, frozen

from paimon.domain.errors import InvalidRequest
from paimon.domain.scan.splits import DataSplit
from paimon.domain.snapshot.snapshot import Snapshot

_BEGIN = "begin"
_HINT = "start again with a new checkpoint, or with the checkpoint of this table"


@frozen
class StreamPosition:
    """A position of a stream scan; positions of one stream are ordered.

    Parameters
    ----------
    snapshot_id : int
        The snapshot that is read next.
    splits : int
        How many of its splits are read.
    is_state : bool
        The splits are those of the complete state; the changes after it come next. Otherwise those of the changes.
    start_id : int
        The snapshot at which the stream started.
    start_is_state : bool
        Whether it started with the complete state of this snapshot.
    plan : str
        Identifies the splits that are counted; empty if none is read.
    last_id : int
        The newest snapshot of which something was read; 0 at the start.
    last_identity : str
        Its delta manifest list, by which a snapshot is recognized; empty at the start.
    created_millis : int
        The time of the table's first schema, by which the table is recognized; 0 if it is not known.
    """

    snapshot_id: int
    splits: int
    is_state: bool
    start_id: int
    start_is_state: bool
    plan: str = ""
    last_id: int = 0
    last_identity: str = ""
    created_millis: int = 0

    @classmethod
    def starting(cls, next_id: int, state: Snapshot | None, created_millis: int) -> StreamPosition:
        """Return the start of a stream.

        Parameters
        ----------
        next_id : int
            The snapshot whose changes are read first.
        state : Snapshot, optional
            The state to read before these changes.
        created_millis : int
            The time of the table's first schema.

        Returns
        -------
        StreamPosition
            A position before all splits.
        """
        first = next_id if state is None else state.id
        return cls(first, 0, state is not None, first, state is not None, created_millis=created_millis)

    @property
    def start(self) -> StreamPosition:
        """The position at which the stream started."""
        first, is_state = self.start_id, self.start_is_state
        return StreamPosition(first, 0, is_state, first, is_state, created_millis=self.created_millis)

    @property
    def next_id(self) -> int:
        """The first snapshot whose changes are not read completely."""
        return self.snapshot_id + 1 if self.is_state else self.snapshot_id

    def within(self, snapshot: Snapshot, splits: int, plan: str) -> StreamPosition:
        """Return the position after some splits of the current snapshot.

        Parameters
        ----------
        snapshot : Snapshot
            The current snapshot.
        splits : int
            The number of splits, at least 1.
        plan : str
            Identifies all its splits.

        Returns
        -------
        StreamPosition
            A position in the same snapshot.
        """
        last = snapshot.delta_manifest_list
        return evolve(self, splits=splits, plan=plan, last_id=snapshot.id, last_identity=last)

    def after(self, snapshot: Snapshot) -> StreamPosition:
        """Return the position after the current snapshot."""
        return evolve(self.within(snapshot, 0, ""), snapshot_id=snapshot.id + 1, is_state=False)

    def is_before(self, other: StreamPosition) -> bool:
        """Return whether rows may lie between this position and a later one of the same stream."""
        return (self.next_id, not self.is_state, self.splits) < (other.next_id, not other.is_state, other.splits)

    def is_in_same_plan(self, other: StreamPosition) -> bool:
        """Return whether both positions count splits of the same snapshot."""
        return (self.snapshot_id, self.is_state) == (other.snapshot_id, other.is_state)

    def to_json(self) -> dict[str, Any]:
        """Return the position as a JSON object."""
        return {
            "snapshot": self.snapshot_id, "splits": self.splits, "state": self.is_state,
            "startSnapshot": self.start_id, "startState": self.start_is_state,
            "plan": self.plan, "lastSnapshot": self.last_id, "lastIdentity": self.last_identity,
            "tableCreated": self.created_millis,
        }  # fmt: skip


def encode_position(position: StreamPosition | None) -> dict[str, Any]:
    """Return a position, or the beginning (None), whose place in the table is not known yet, as a JSON object."""
    return {_BEGIN: True} if position is None else position.to_json()


def decode_position(stored: Mapping[str, Any]) -> StreamPosition | None:
    """Return the position of `encode_position`.

    Raises
    ------
    InvalidRequest
        The object is not the position of a stream of this library.
    """
    if _BEGIN in stored:
        return None
    try:
        return StreamPosition(
            stored["snapshot"], stored["splits"], stored["state"],
            stored["startSnapshot"], stored["startState"],
            stored["plan"], stored["lastSnapshot"], stored["lastIdentity"],
            stored.get("tableCreated", 0),
        )  # fmt: skip
    except KeyError as error:
        raise InvalidRequest(
            f"The offset of the stream has no member {error}.", subject="checkpointLocation", hint=_HINT
        ) from error


def check_table(position: StreamPosition, table_name: str, created_millis: int) -> None:
    """Check that a position belongs to a table.

    Parameters
    ----------
    position : StreamPosition
        The position.
    table_name : str
        The table.
    created_millis : int
        The time of its first schema.

    Raises
    ------
    InvalidRequest
        The position belongs to another table, or to one that was dropped.
    """
    if position.created_millis not in (0, created_millis):
        raise InvalidRequest(
            f"The offset of the stream belongs to another table than {table_name!r}, or the table was dropped and "
            "created again since.",
            subject="checkpointLocation",
            hint=_HINT,
        )


def identify_plan(splits: Iterable[DataSplit]) -> str:
    """Return a text that differs between plans with other splits, or with another order of splits."""
    digest = hashlib.sha256()
    for split in splits:
        names = [file.file_name for file in (*split.before_files, *split.files)]
        digest.update(f"{split.partition.hex()}/{split.bucket}/{','.join(names)};".encode())
    return digest.hexdigest()[:16]


def check_plan(position: StreamPosition, plan: str) -> None:
    """Check that a position counts the splits of a plan.

    Raises
    ------
    InvalidRequest
        The plan has other splits.
    """
    if position.plan not in ("", plan):
        raise InvalidRequest(
            f"The splits of snapshot {position.snapshot_id} are others than when the stream read the first "
            f"{position.splits} of them.",
            subject="checkpointLocation",
            hint="restore the options that change splits, such as 'source.split.target-size', until the stream has "
            "read this snapshot",
        )
