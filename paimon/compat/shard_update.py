"""Read and rewrite columns part by part, by the names of pypaimon.

Source: `pypaimon.write.table_update`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from paimon.compat.commit_message import CommitMessage, from_paimon_messages
from paimon.compat.refused import PeerClass

if TYPE_CHECKING:
    from paimon.compat.table import FileStoreTable
    from paimon.row_updates import RowShard


class ShardTableUpdator(PeerClass):
    """Read a part of the rows and write columns of all of them; made by `TableUpdate.new_shard_updator`."""

    def __init__(self, shard: RowShard, table: FileStoreTable) -> None:
        self.table = table
        self._shard = shard
        self._batches: list[pa.RecordBatch] = []

    def arrow_reader(self) -> pa.RecordBatchReader:
        """Return a reader of the rows of the part."""
        return self._shard.to_arrow_batch_reader()

    def update_by_arrow_batch(self, data: pa.RecordBatch) -> None:
        """Take the new columns of the next rows, in the order of the reader."""
        self._batches.append(data)

    def prepare_commit(self) -> list[CommitMessage]:
        """Return the messages to commit."""
        if not self._batches:
            return []
        return from_paimon_messages(self._shard.update(pa.Table.from_batches(self._batches)), self.table)
