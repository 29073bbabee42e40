"""The buckets that a writer has touched: their addresses, files and sequence numbers.

Law: a bucket is numbered when it is first met, and its sequence numbers go on from the files that the latest snapshot
holds. A state machine. Source: `AbstractFileStoreWrite.WriterContainer`.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from paimon.domain.commit.message import CommitMessage, DataIncrement
from paimon.domain.errors import InvalidRequest
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.partition.path import partition_path
from paimon.domain.paths import join
from paimon.domain.row.binary_row import deserialize
from paimon.domain.schema.table_definition import TableDefinition
from paimon.operations.write.data_files import RollingFiles
from paimon.operations.write.file_layout import FileLayout
from paimon.operations.write.restore import NOTHING, Restored, restore
from paimon.operations.write.route import Address, Codes
from paimon.ports.engine import Engine


class BucketState:
    """One bucket: where its files go, the next sequence number, files not handed out yet and those being written."""

    def __init__(self, address: Address, directory: str, next_sequence: int) -> None:
        self.address = address
        self.directory = directory
        self.next_sequence = next_sequence
        self.files: list[DataFileMeta] = []
        self.changelog: list[DataFileMeta] = []
        self.rolling: RollingFiles | None = None


class Buckets:
    """All buckets of a writer, by number."""

    def __init__(self, engine: Engine, table: TableDefinition, total_buckets: int, ignore_previous: bool) -> None:
        self._engine = engine
        self._table = table
        self._total = total_buckets
        self._restored: Restored | None = NOTHING if ignore_previous else None
        self._numbers: dict[Address, int] = {}
        self._layout = FileLayout.of(table)
        self._changelog_layout = FileLayout.of_changelog(table)
        self.states: list[BucketState] = []

    def numbers_of(self, addresses: list[Address], codes: Codes) -> Codes:
        """The codes of a routing as numbers of buckets."""
        for address in addresses:
            if address not in self._numbers:
                self._numbers[address] = len(self.states)
                self.states.append(self._state(address))
        return np.array([self._numbers[a] for a in addresses], np.int64)[codes]

    def order_of(self, codes: Codes) -> Codes:
        """The rows by bucket, in each bucket as they came."""
        if not codes.any():
            return np.arange(len(codes))
        # Numpy sorts short integers by radix.
        return np.argsort(codes.astype(np.uint16) if len(self.states) <= 1 << 16 else codes, kind="stable")

    def files_of(self, state: BucketState) -> RollingFiles:
        """The bucket's open files."""
        if state.rolling is None:
            state.rolling = RollingFiles(self._engine, self._layout, state.directory, state.next_sequence)
        return state.rolling

    def write_changelog(self, state: BucketState, rows: pa.Table) -> None:
        """Writes rows as changelog files of the bucket."""
        rolling = RollingFiles(self._engine, self._changelog_layout, state.directory)
        try:
            rolling.write(rows)
            state.changelog += rolling.close()
        except BaseException:
            rolling.abort()
            raise

    def finish(self, state: BucketState) -> None:
        """Closes the bucket's open files."""
        if state.rolling is not None:
            state.files += state.rolling.close()
            state.rolling = None

    def messages(self) -> list[CommitMessage]:
        """What was written since the last call, one message a bucket."""
        found = [
            CommitMessage(
                state.address.partition, state.address.bucket, self._total, state.directory,
                DataIncrement(new_files=tuple(state.files), changelog_files=tuple(state.changelog)),
            )
            for state in self.states
            if state.files or state.changelog
        ]  # fmt: skip
        for state in self.states:
            state.files, state.changelog = [], []
        return found

    def abort(self) -> None:
        """Removes all files that were not handed out."""
        paths: list[str] = []
        for state in self.states:
            paths += [join(state.directory, f.file_name) for f in (*state.files, *state.changelog)]
            state.files, state.changelog = [], []
            if state.rolling is not None:
                state.rolling.abort()
                state.rolling = None
        if paths:
            self._engine.files.delete(paths)

    def _state(self, address: Address) -> BucketState:
        table, options = self._table, self._table.options
        fields = table.schema.partition_fields
        values = deserialize(address.partition, [f.type for f in fields])
        path = partition_path(values, fields, options.partition_default_name, options.partition_legacy_name)
        directory = table.paths.bucket_directory(path, address.bucket, options.data_file_path_directory or "")
        if self._restored is None:
            self._restored = restore(self._engine, table)
        stored = self._restored.total_buckets.get(address.partition, self._total)
        if stored != self._total:
            raise InvalidRequest(
                f"partition {path or '(whole table)'} of {table.identifier} has {stored} buckets, "
                f"but the table's option bucket is {self._total}",
                subject="bucket",
                hint="overwrite the partition to give it the new number of buckets",
            )
        return BucketState(address, directory, self._restored.sequence_of(*address))
