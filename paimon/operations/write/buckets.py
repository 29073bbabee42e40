"""Keep the state of the buckets that a writer has written to: address, files, and next sequence number.

A bucket gets its number with its first row, and is dropped after it was idle twice. Invariant: the sequence numbers of
a bucket continue after the files of the newest snapshot that the writer has read. A state machine. Source:
`AbstractFileStoreWrite.WriterContainer`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import numpy as np
import pyarrow as pa

from paimon.domain.commit.increments import files_after, join_compactions
from paimon.domain.commit.message import CommitMessage, CompactIncrement, DataIncrement, HashIndexBase, ReadState
from paimon.domain.errors import InvalidRequest
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.partition.partition_text import format_partition_path
from paimon.domain.row.binary_row import deserialize
from paimon.domain.undo import undo_on_failure
from paimon.operations.data_files.deletion_vectors import IndexChange, delete_index_files
from paimon.operations.data_files.write_data_files import FileLayout, RollingFiles
from paimon.operations.table_context import TableContext
from paimon.operations.write.restore import BucketStates, CommittedFiles
from paimon.operations.write.route import Address, Codes

_OPEN_FILES_SHARE = 4
"""The part of the memory budget (1/n) for open files; the write buffer and its merge use the rest."""


class BucketState:
    """The state of one bucket: its directory, next sequence number, finished files and open files.

    `files`, `changelog`, `compacted` and `index` hold what no commit message contains yet. `index_base` and `key_index`
    are the indexes that routed these rows. `known` is the snapshot whose rows have numbers below `next_sequence`, and
    `numbered_after` is `known` as it was for the first of these rows. `idle` means that the last commit messages
    contained nothing of the bucket; `idle_triggers` counts compactions in sequence that had nothing to do. Append
    compaction does not consider the files of `excluded_names` again.
    """

    def __init__(self, address: Address, directory: str, next_sequence: int) -> None:
        self.address = address
        self.directory = directory
        self.next_sequence = next_sequence
        self.files: list[DataFileMeta] = []
        self.changelog: list[DataFileMeta] = []
        self.compacted = CompactIncrement()
        self.index = IndexChange()
        self.index_base: HashIndexBase | None = None
        self.key_index: ReadState | None = None
        self.known: ReadState | None = None
        self.numbered_after: ReadState | None = None
        self.rolling: RollingFiles | None = None
        self.idle = False
        self.idle_triggers = 0
        self.excluded_names: frozenset[str] = frozenset()

    @property
    def written(self) -> DataIncrement:
        """The files that were written and are in no commit message yet."""
        return DataIncrement(
            new_files=tuple(self.files), changelog_files=tuple(self.changelog),
            new_index_files=self.index.new, deleted_index_files=self.index.deleted,
        )  # fmt: skip

    def clear(self) -> None:
        """Drop everything that a commit message contains now, or that was deleted."""
        self.files, self.changelog, self.compacted = [], [], CompactIncrement()
        self.index, self.index_base, self.key_index = IndexChange(), None, None

    @property
    def is_empty(self) -> bool:
        """Whether a commit message of this bucket would be empty."""
        is_compacted = self.compacted != CompactIncrement()
        return not self.files and not self.changelog and not is_compacted and self.index == IndexChange()


class Buckets:
    """All buckets of a writer, by number.

    `total_of` returns the number of buckets of a partition, as new files record it. `committed` is None for writers
    that ignore the files in the table. Data files have the layout of level 0 unless `layout` is given. `number_gap`
    sequence numbers are left free before the first row of a bucket.
    """

    def __init__(
        self,
        context: TableContext,
        total_of: Callable[[bytes], int],
        committed: CommittedFiles | None,
        layout: FileLayout | None = None,
        number_gap: int = 0,
    ) -> None:
        self._context = context
        self._number_gap = number_gap
        self._total_of = total_of
        self._committed = committed
        self._numbers: dict[Address, int] = {}
        self._layout = layout or FileLayout.of(context.table)
        self._changelog_layout = FileLayout.of_changelog(context.table)
        self._open_files_limit_bytes = context.engine.memory.bytes // _OPEN_FILES_SHARE
        self.states: list[BucketState] = []

    def assign_numbers(self, addresses: Sequence[Address], codes: Codes) -> Codes:
        """Return the bucket number of each row, and restore the state of buckets that are new to the writer.

        `codes` has for each row the position of its address. Raise InvalidRequest if a partition has another number of
        buckets than the option of the table.
        """
        new = [a for a in addresses if a not in self._numbers]
        if new:
            restored = self._committed.restore(new) if self._committed else BucketStates(dict.fromkeys(new, 0))
            for address in new:
                state = self._restore_state(address, restored)
                state.known = state.numbered_after = self._read_state
                self._numbers[address] = len(self.states)
                self.states.append(state)
        return np.array([self._numbers[a] for a in addresses], np.int64)[codes]

    @property
    def _read_state(self) -> ReadState | None:
        """The newest known snapshot; None for tables without sequence numbers, and writers that ignore files."""
        if self._committed is None or not self._context.schema.primary_keys:
            return None
        return ReadState.of(self._committed.snapshot)

    def get_state(self, address: Address) -> BucketState:
        """Return the state of one bucket, which is restored from the table if it is new to the writer."""
        self.assign_numbers([address], np.zeros(0, np.int64))
        return self.states[self._numbers[address]]

    def find_state(self, address: Address) -> BucketState | None:
        """Return the state of one bucket; None if the writer has no state of it."""
        number = self._numbers.get(address)
        return None if number is None else self.states[number]

    def sort_by_bucket(self, codes: Codes) -> Codes:
        """Return the row positions sorted by bucket; rows of one bucket keep their order."""
        if not codes.any():
            return np.arange(len(codes))
        # Numpy sorts short integers by radix.
        return np.argsort(codes.astype(np.uint16) if len(self.states) <= 1 << 16 else codes, kind="stable")

    def live_files(self, state: BucketState) -> tuple[DataFileMeta, ...]:
        """Return the files of a bucket in the newest known snapshot, with the changes of this writer applied."""
        known = self._committed.get_files(state.address) if self._committed else {}
        return tuple(files_after(known, state.written, state.compacted).values())

    def advance(self) -> None:
        """Read the newest snapshot, and move sequence numbers behind those of other writers."""
        if self._committed is None:
            return
        self._committed.advance()
        for state in self.states:
            known = self._committed.get_files(state.address).values()
            state.next_sequence = max([state.next_sequence, *(f.max_sequence_number + 1 for f in known)])
            state.known = self._read_state

    def get_open_files(self, state: BucketState) -> RollingFiles:
        """Return the open files of a bucket, and open them if necessary."""
        if state.rolling is None:
            state.rolling = RollingFiles(self._context.engine, self._layout, state.directory, state.next_sequence)
        return state.rolling

    def release_memory(self) -> None:
        """Write out what open files hold in memory if they hold more than their share of the memory budget."""
        open_files = [s.rolling for s in self.states if s.rolling is not None]
        if sum(files.held_bytes for files in open_files) > self._open_files_limit_bytes:
            # All open files, because they hold slices of common tables, and each slice keeps its whole table alive.
            for files in open_files:
                files.release_memory()

    def write_changelog(self, state: BucketState, rows: pa.Table) -> None:
        """Write rows as changelog files of the bucket."""
        rolling = RollingFiles(self._context.engine, self._changelog_layout, state.directory)
        with undo_on_failure(rolling.abort):
            rolling.write(rows)
            state.changelog += rolling.close()

    def finish(self, state: BucketState) -> None:
        """Close the open files of a bucket, and move its next sequence number behind them."""
        if state.rolling is not None:
            finished = state.rolling.close()
            state.files += finished
            state.next_sequence = max([state.next_sequence, *(f.max_sequence_number + 1 for f in finished)])
            state.rolling = None

    def record_compaction(self, state: BucketState, message: CommitMessage) -> None:
        """Add the result of a compaction to the bucket, and delete files that only existed between two compactions."""
        state.compacted, between = join_compactions(state.compacted, message.compact)
        if between:
            self._context.files.delete([path for file in between for path in file.paths_in(state.directory)])

    def take_messages(self, kept: Collection[Address]) -> list[CommitMessage]:
        """Return messages of buckets that changed; those idle twice are dropped unless in `kept`."""
        messages: list[CommitMessage] = []
        idle: list[BucketState] = []
        for state in self.states:
            if state.is_empty:
                idle += [state] if state.idle else []
                state.idle = True
                continue
            address = state.address
            state.idle = False
            messages.append(
                CommitMessage(
                    address.partition,
                    address.bucket,
                    self._total_of(address.partition),
                    state.directory,
                    state.written,
                    state.compacted,
                    state.index_base,
                    state.key_index,
                    numbered_after=state.numbered_after,
                )
            )
            state.clear()
            state.numbered_after = state.known
        if self._committed is not None:
            self._drop_states([s for s in idle if s.address not in kept], self._committed)
            self._committed.record_prepared(messages)
        return messages

    def abort(self) -> None:
        """Delete all files that no commit message contains."""
        paths: list[str] = []
        for state in self.states:
            found = {f.file_name for f in state.compacted.compact_before} - {f.file_name for f in state.files}
            made = [f for f in state.compacted.compact_after if f.file_name not in found]
            made += [*state.files, *state.changelog, *state.compacted.changelog_files]
            paths += [path for f in made for path in f.paths_in(state.directory)]
            delete_index_files(self._context, (*state.compacted.new_index_files, *state.index.new))
            state.clear()
            if state.rolling is not None:
                state.rolling.abort()
                state.rolling = None
        if paths:
            self._context.files.delete(list(dict.fromkeys(paths)))

    def _drop_states(self, states: Collection[BucketState], committed: CommittedFiles) -> None:
        """Drop the state of buckets that can be restored from the table again."""
        dropped = {s.address for s in states if committed.stop_tracking(s.address)}
        if dropped:
            self.states = [s for s in self.states if s.address not in dropped]
            self._numbers = {s.address: number for number, s in enumerate(self.states)}

    def _restore_state(self, address: Address, restored: BucketStates) -> BucketState:
        """Return the state of a new bucket; InvalidRequest if its partition has another bucket count."""
        table, options = self._context.table, self._context.options
        fields = table.schema.partition_fields
        values = deserialize(address.partition, [f.type for f in fields])
        path = format_partition_path(values, fields, options.partition_default_name, options.partition_legacy_name)
        directory = table.paths.bucket_directory(path, address.bucket, options.data_file_path_directory or "")
        total = self._total_of(address.partition)
        stored = restored.total_buckets.get(address.partition, total)
        if stored != total:
            if -1 in (stored, total):
                hint = f"set 'bucket' to {stored}, or copy the rows into a new table"
            else:
                hint = (
                    f"open the table again if it was rescaled, or call Table.rescale({total}) to rewrite the partition"
                )
            raise InvalidRequest(
                f"Partition {path or '(whole table)'} of table {table.table_name!r} has "
                f"{'dynamic' if stored == -1 else stored} buckets, but option 'bucket' is {total}",
                subject="bucket",
                hint=hint,
            )
        return BucketState(address, directory, restored.next_sequence[address] + self._number_gap)
