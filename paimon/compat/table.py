"""Tables and system tables, and their builders, by the names of pypaimon.

Source: `pypaimon.table.file_store_table`, `pypaimon.table.system`.
"""

from __future__ import annotations

from paimon.compat.postpone_bucket import PostponeFixedBucketWriteBuilder
from paimon.compat.read import ReadBuilder
from paimon.compat.stored_table import BucketMode, StoredTable
from paimon.compat.stream_read import StreamReadBuilder
from paimon.compat.write import BatchWriteBuilder, StreamWriteBuilder

_WRITES_BUCKETS = "postpone.batch-write-fixed-bucket"


class FileStoreTable(StoredTable):
    """One table; made by `Catalog.get_table`."""

    def new_read_builder(self) -> ReadBuilder:
        """Return the builder of reads."""
        return ReadBuilder(self)

    def new_stream_read_builder(self) -> StreamReadBuilder:
        """Return the builder of reads that follow new snapshots."""
        return StreamReadBuilder(self)

    def new_postpone_fixed_bucket_write_builder(self) -> PostponeFixedBucketWriteBuilder:
        """Return the builder of writes of a postponed table that put rows into their buckets at once."""
        return PostponeFixedBucketWriteBuilder(self)

    def new_batch_write_builder(self) -> BatchWriteBuilder:
        """Return the builder of writes with one commit; rows of postponed tables are postponed."""
        postpones = self.bucket_mode() is BucketMode.POSTPONE_MODE
        return BatchWriteBuilder(self.copy({_WRITES_BUCKETS: "false"}) if postpones else self)

    def new_stream_write_builder(self) -> StreamWriteBuilder:
        """Return the builder of writes with many commits."""
        return StreamWriteBuilder(self)

    def __repr__(self) -> str:
        return f"FileStoreTable({self.identifier.get_full_name()!r})"
