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
    """A position of a stream scan; positions of one stream are ordered."""

    # the snapshot that is read next
    snapshot_id: int
    # how many of its splits are already read
    splits: int
    # whether the splits are those of the complete state, otherwise those of the changes
    is_state: bool
    # the snapshot at which the stream started
    start_id: int
    # whether the stream started with the complete state of this snapshot
    start_is_state: bool
    # identifies the splits that are counted; empty if none is read
    plan: str = ""
    # the newest snapshot of which something was read; 0 at the start
    last_id: int = 0
    # delta manifest list of `last_id`, which detects a replaced snapshot; empty at the start
    last_identity: str = ""
    # time of the first schema, which detects a replaced table; 0 if unknown
    created_millis: int = 0

    @classmethod
    def starting(cls, next_id: int, state: Snapshot | None, created_millis: int) -> StreamPosition:
        """Return the position before all splits of a stream.

        The stream reads the complete `state`, if any, then the changes from `next_id` on.
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
        """Return the position after `splits` (at least 1) of a snapshot; `plan` identifies all its splits."""
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
    """Return the position that `encode_position` stored.

    Raises `InvalidRequest` if the object is not a stream position of this library.
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
    """Refuse a position of another table, or of a table that was dropped and created again.

    `created_millis` is the time of the table's first schema.
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
    """Check that a position counts the splits of a plan."""
    if position.plan not in ("", plan):
        raise InvalidRequest(
            f"The splits of snapshot {position.snapshot_id} are others than when the stream read the first "
            f"{position.splits} of them.",
            subject="checkpointLocation",
            hint="restore the options that change splits, such as 'source.split.target-size', until the stream has "
            "read this snapshot",
        )
