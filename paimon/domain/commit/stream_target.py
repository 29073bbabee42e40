"""The table that a stream writes to, as its checkpoint records it.

Invariant: a stream continues only with the table with which it began. A table that was dropped and created again under
the same name is another one, because its first schema has another time.
"""

from __future__ import annotations

from attrs import frozen

from paimon.domain.errors import InvalidRequest
from paimon.domain.json_text import Members, dump_json
from paimon.domain.schema.table_schema import TableSchema

_SUBJECT = "checkpointLocation"
_NEW_STREAM = "start a new stream with a new checkpoint"


@frozen
class StreamTarget:
    """What identifies the table of a stream."""

    # Root directory or URL of the table
    location: str
    branch: str
    # Time of the first schema, in epoch milliseconds
    created_millis: int
    primary_keys: tuple[str, ...]
    # The first batch of the stream that the table has
    first_batch: int = 0

    @classmethod
    def of(cls, location: str, branch: str, first: TableSchema, newest: TableSchema) -> StreamTarget:
        """Return the target for a table."""
        return cls(location, branch, first.time_millis, tuple(newest.primary_keys))

    @classmethod
    def parse(cls, stored: Members) -> StreamTarget:
        """Return the target that a checkpoint records."""
        keys = tuple(str(name) for name in stored.array("primaryKeys"))
        first_batch = stored.integer("firstBatch") if stored.get("firstBatch") is not None else 0
        return cls(stored.text("location"), stored.text("branch"), stored.integer("created"), keys, first_batch)

    def to_json(self) -> bytes:
        """Return the text of the record in the checkpoint."""
        members = {"version": 1, "location": self.location, "branch": self.branch, "created": self.created_millis}
        later = {"firstBatch": self.first_batch} if self.first_batch else {}
        return dump_json({**members, "primaryKeys": list(self.primary_keys), **later})

    def check_unchanged(self, table: StreamTarget) -> None:
        """Refuse a table that is not the one in the checkpoint, was created again, or has another primary key."""
        if (self.location, self.branch) != (table.location, table.branch):
            raise InvalidRequest(
                f"The checkpoint belongs to a stream into {self._describe()}, not into {table._describe()}.",
                subject=_SUBJECT,
                hint=f"give each stream a checkpoint of its own, or, if the table moved, {_NEW_STREAM}",
            )
        if self.created_millis != table.created_millis:
            raise InvalidRequest(
                f"Table {table._describe()} was dropped and created again since the stream began.",
                subject=_SUBJECT,
                hint=f"{_NEW_STREAM}, which writes all rows of its source again",
            )
        if self.primary_keys != table.primary_keys:
            raise InvalidRequest(
                f"The primary key of table {table._describe()} changed from ({', '.join(self.primary_keys)}) to "
                f"({', '.join(table.primary_keys)}) since the stream began.",
                subject=_SUBJECT,
                hint=f"restore the names of the columns, or {_NEW_STREAM}",
            )

    def _describe(self) -> str:
        return self.location if self.branch == "main" else f"{self.location}$branch_{self.branch}"


def check_first_batch(checkpoint: str, number: int) -> None:
    """Refuse a stream whose checkpoint records no table but has earlier batches, because these went elsewhere."""
    if number > 0:
        raise InvalidRequest(
            f"Checkpoint {checkpoint!r} records no table, and its next batch is {number}.",
            subject=_SUBJECT,
            hint=f"the stream had another target before: {_NEW_STREAM}",
        )
