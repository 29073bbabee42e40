"""The buckets that a writer has touched: their addresses, files and sequence numbers.

Law: a bucket is numbered when it is first met, and its sequence numbers go on from the files that the snapshot known
holds; a bucket that nothing happens to any more is forgotten. A state machine. Source:
`AbstractFileStoreWrite.WriterContainer`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import pyarrow as pa

from paimon.domain.commit.increments import files_after, joined
from paimon.domain.commit.message import CommitMessage, CompactIncrement, DataIncrement
from paimon.domain.errors import InvalidRequest
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.partition.path import partition_path
from paimon.domain.paths import join
from paimon.domain.row.binary_row import deserialize
from paimon.domain.schema.table_definition import TableDefinition
from paimon.operations.deletion.index_files import delete_index_files
from paimon.operations.undo import undone_on_failure
from paimon.operations.write.committed import CommittedFiles
from paimon.operations.write.files.data_files import RollingFiles
from paimon.operations.write.files.layout import FileLayout
from paimon.operations.write.restore import Restored
from paimon.operations.write.route import Address, Codes
from paimon.ports.engine import Engine

_HELD_SHARE = 4
"""What open files may hold, as a part of the engine's memory: the write buffer and its merging take the rest."""


class BucketState:
    """One bucket: where its files go, the next sequence number, files not handed out yet and those being written.

    `idle_triggers` counts the times that compaction had nothing to do; `passed` names files of an append bucket that
    compaction does not look at again.
    """

    def __init__(self, address: Address, directory: str, next_sequence: int) -> None:
        self.address = address
        self.directory = directory
        self.next_sequence = next_sequence
        self.files: list[DataFileMeta] = []
        self.changelog: list[DataFileMeta] = []
        self.compacted = CompactIncrement()
        self.rolling: RollingFiles | None = None
        self.idle = False
        self.idle_triggers = 0
        self.passed: frozenset[str] = frozenset()

    @property
    def written(self) -> DataIncrement:
        """What was written and not handed out."""
        return DataIncrement(new_files=tuple(self.files), changelog_files=tuple(self.changelog))

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to hand out."""
        return not self.files and not self.changelog and self.compacted == CompactIncrement()


class Buckets:
    """All buckets of a writer, by number; `committed` None: what is there does not count."""

    def __init__(
        self, engine: Engine, table: TableDefinition, total_buckets: int, committed: CommittedFiles | None
    ) -> None:
        self._engine = engine
        self._table = table
        self._total = total_buckets
        self._committed = committed
        self._numbers: dict[Address, int] = {}
        self._layout = FileLayout.of(table)
        self._changelog_layout = FileLayout.of_changelog(table)
        self._held_limit = engine.memory.bytes // _HELD_SHARE
        self.states: list[BucketState] = []

    def numbers_of(self, addresses: Sequence[Address], codes: Codes) -> Codes:
        """The codes of a routing as numbers of buckets."""
        new = [a for a in addresses if a not in self._numbers]
        if new:
            restored = self._committed.restore(new) if self._committed else Restored(dict.fromkeys(new, 0))
            for address in new:
                state = self._state(address, restored)
                self._numbers[address] = len(self.states)
                self.states.append(state)
        return np.array([self._numbers[a] for a in addresses], np.int64)[codes]

    def state_of(self, address: Address) -> BucketState:
        """The state of one bucket."""
        self.numbers_of([address], np.zeros(0, np.int64))
        return self.states[self._numbers[address]]

    def known(self, address: Address) -> BucketState | None:
        """The state of one bucket; None where it is not met, or forgotten."""
        number = self._numbers.get(address)
        return None if number is None else self.states[number]

    def order_of(self, codes: Codes) -> Codes:
        """The rows by bucket, in each bucket as they came."""
        if not codes.any():
            return np.arange(len(codes))
        # Numpy sorts short integers by radix.
        return np.argsort(codes.astype(np.uint16) if len(self.states) <= 1 << 16 else codes, kind="stable")

    def live_files(self, state: BucketState) -> tuple[DataFileMeta, ...]:
        """The files of a bucket: as the snapshot known has them, and what this writer did since."""
        known = self._committed.files_of(state.address) if self._committed else {}
        return tuple(files_after(known, state.written, state.compacted).values())

    def advance(self) -> None:
        """See what others did; numbers go on behind theirs."""
        if self._committed is None:
            return
        self._committed.advance()
        for state in self.states:
            known = self._committed.files_of(state.address).values()
            state.next_sequence = max([state.next_sequence, *(f.max_sequence_number + 1 for f in known)])

    def files_of(self, state: BucketState) -> RollingFiles:
        """The bucket's open files."""
        if state.rolling is None:
            state.rolling = RollingFiles(self._engine, self._layout, state.directory, state.next_sequence)
        return state.rolling

    def relieve(self) -> None:
        """Let open files hold nothing more in memory, where together they hold too much."""
        open_files = [s.rolling for s in self.states if s.rolling is not None]
        if sum(files.held_bytes for files in open_files) > self._held_limit:
            # All of them: what is held are slices of common tables, and each keeps its whole table.
            for files in open_files:
                files.relieve()

    def write_changelog(self, state: BucketState, rows: pa.Table) -> None:
        """Writes rows as changelog files of the bucket."""
        rolling = RollingFiles(self._engine, self._changelog_layout, state.directory)
        with undone_on_failure(rolling.abort):
            rolling.write(rows)
            state.changelog += rolling.close()

    def finish(self, state: BucketState) -> None:
        """Closes the bucket's open files."""
        if state.rolling is not None:
            finished = state.rolling.close()
            state.files += finished
            state.next_sequence = max([state.next_sequence, *(f.max_sequence_number + 1 for f in finished)])
            state.rolling = None

    def compacted(self, state: BucketState, message: CommitMessage) -> None:
        """Takes what compacting the bucket came to."""
        state.compacted, between = joined(state.compacted, message.compact)
        if between:
            self._engine.files.delete([join(state.directory, name) for name in between])

    def messages(self, kept: Collection[Address]) -> list[CommitMessage]:
        """What was written since the last call, one message a bucket; buckets idle twice are forgotten, unless kept."""
        found: list[CommitMessage] = []
        idle: list[BucketState] = []
        for state in self.states:
            if state.is_empty:
                idle += [state] if state.idle else []
                state.idle = True
                continue
            address = state.address
            state.idle = False
            found.append(
                CommitMessage(
                    address.partition, address.bucket, self._total, state.directory, state.written, state.compacted
                )
            )
            state.files, state.changelog, state.compacted = [], [], CompactIncrement()
        if self._committed is not None:
            self._forget([s for s in idle if s.address not in kept], self._committed)
            self._committed.hand_out(found)
        return found

    def abort(self) -> None:
        """Removes all files that were not handed out."""
        paths: list[str] = []
        for state in self.states:
            found = {f.file_name for f in state.compacted.compact_before} - {f.file_name for f in state.files}
            made = [f for f in state.compacted.compact_after if f.file_name not in found]
            made += [*state.files, *state.changelog, *state.compacted.changelog_files]
            paths += [join(state.directory, name) for f in made for name in (f.file_name, *f.extra_files)]
            delete_index_files(self._engine, self._table, state.compacted.new_index_files)
            state.files, state.changelog, state.compacted = [], [], CompactIncrement()
            if state.rolling is not None:
                state.rolling.abort()
                state.rolling = None
        if paths:
            self._engine.files.delete(list(dict.fromkeys(paths)))

    def _forget(self, states: Collection[BucketState], committed: CommittedFiles) -> None:
        gone = {s.address for s in states if committed.forgets(s.address)}
        if gone:
            self.states = [s for s in self.states if s.address not in gone]
            self._numbers = {s.address: number for number, s in enumerate(self.states)}

    def _state(self, address: Address, restored: Restored) -> BucketState:
        table, options = self._table, self._table.options
        fields = table.schema.partition_fields
        values = deserialize(address.partition, [f.type for f in fields])
        path = partition_path(values, fields, options.partition_default_name, options.partition_legacy_name)
        directory = table.paths.bucket_directory(path, address.bucket, options.data_file_path_directory or "")
        stored = restored.total_buckets.get(address.partition, self._total)
        if stored != self._total:
            raise InvalidRequest(
                f"partition {path or '(whole table)'} of {table.identifier} has {stored} buckets, "
                f"but the table's option bucket is {self._total}",
                subject="bucket",
                hint="overwrite the partition to give it the new number of buckets",
            )
        return BucketState(address, directory, restored.next_sequence[address])
