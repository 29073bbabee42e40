"""Local copies of the data files in which one writer looks keys up, commit after commit.

Law: a copy holds the rows of its file, all of them, in their order; with or without copies the same rows are found.
Copies take no more local disk than they may; making one holds no more memory than a block of rows. A file is copied
when it is asked for the second time: most files are compacted away before. What was not asked for the longest goes
first, and never for a file that would be asked for as rarely. A state machine. Source: `LookupLevels`,
`LookupFile.createCache`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

import pyarrow as pa
from attrs import define, frozen

from paimon.domain.errors import StorageError
from paimon.domain.lsm.key_places import PLACES_FIELD, with_places
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.options.parse import LARGEST_LONG
from paimon.domain.options.table_options import TableOptions
from paimon.domain.scan.assemble import BucketKey
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.types.arrow import arrow_schema
from paimon.domain.types.data_types import DataField
from paimon.domain.types.system import LEVEL
from paimon.operations.read.data_file import Bucket, read_data_file
from paimon.ports.engine import Engine
from paimon.ports.temp import Kept

_BLOCK_BYTES = 16 * 1024 * 1024
"""Rows that are copied together: they are held twice, and searched as one."""
_MEMORY_SHARE = 16
"""The part of the memory that a block may take."""


@define
class _Copy:
    kept: Kept
    columns: tuple[str, ...]
    turn: int
    used_millis: int


@frozen
class CopyLimits:
    """What copies may take.

    Parameters
    ----------
    disk_bytes : int
        Local disk, all together.
    block_bytes : int
        Rows held while one is made.
    idle_millis : int
        How long one stays that nobody asks for.
    """

    disk_bytes: int
    block_bytes: int
    idle_millis: int

    @classmethod
    def of(cls, options: TableOptions, memory_bytes: int) -> CopyLimits:
        """The limits by a table's options and an engine's memory."""
        disk = options.lookup_cache_disk_bytes
        share = min(options.lookup_cache_memory_bytes, memory_bytes) // _MEMORY_SHARE
        return cls(
            LARGEST_LONG if disk is None else disk, min(_BLOCK_BYTES, share), options.lookup_cache_retention_millis
        )


class LocalCopies:
    """Those of all buckets of a writer. It stays where it is: in another process there are none."""

    def __init__(self, engine: Engine, table: TableDefinition) -> None:
        self._engine = engine
        self._limits = CopyLimits.of(table.options, engine.memory.bytes)
        self._buckets: dict[BucketKey, BucketCopies] = {}
        self._turn = 0

    def __reduce__(self) -> tuple[Callable[[], None], tuple[()]]:
        return _no_copies, ()

    def begin(self, buckets: Collection[BucketKey], live: Callable[[BucketKey], Collection[str]]) -> None:
        """A new turn, of tasks on these buckets side by side: they share the disk that is left.

        `live` answers the names of the files that a bucket has.
        """
        self._turn += 1
        now = self._engine.clock.now_millis()
        for key, copies in list(self._buckets.items()):
            copies.forget_others(live(key))
            copies.drop_idle(now - self._limits.idle_millis)
            if copies.is_empty and key not in buckets:
                del self._buckets[key]
        if any(copies.lacks_room for copies in self._buckets.values()):
            for copies in self._buckets.values():
                copies.drop_unused(self._turn - 2)
        left = self._limits.disk_bytes - sum(copies.bytes for copies in self._buckets.values())
        for key in buckets:
            copies = self._buckets.setdefault(key, BucketCopies(self._engine, self._limits.block_bytes))
            copies.begin(self._turn, now, left // len(buckets))

    def of(self, key: BucketKey) -> BucketCopies | None:
        """Those of one bucket, for the task of this turn."""
        return self._buckets.get(key)

    def close(self) -> None:
        """Leaves nothing."""
        for copies in self._buckets.values():
            copies.forget_others(())
        self._buckets.clear()


def _no_copies() -> None:
    return None


class BucketCopies:
    """Those of one bucket, which one task at a time uses."""

    def __init__(self, engine: Engine, block_bytes: int) -> None:
        self._engine = engine
        self._block_bytes = block_bytes
        self._copies: dict[str, _Copy] = {}
        self._met: dict[str, int] = {}
        self._refused: dict[str, int] = {}
        self._turn = 0
        self._now = 0
        self._left = 0
        self.lacks_room = False

    @property
    def bytes(self) -> int:
        """The disk that they take."""
        return sum(copy.kept.bytes for copy in self._copies.values())

    @property
    def is_empty(self) -> bool:
        """Whether nothing is known here."""
        return not self._copies and not self._met

    def begin(self, turn: int, now_millis: int, left_bytes: int) -> None:
        """A new turn: new copies may take so much together."""
        self._turn, self._now, self._left, self.lacks_room = turn, now_millis, left_bytes, False

    def blocks_of(
        self, bucket: Bucket, file: DataFileMeta, columns: Sequence[DataField]
    ) -> Sequence[pa.RecordBatch] | None:
        """The copy of a file, as blocks with places and these columns but for the level; None: read the file."""
        name, wanted = file.file_name, tuple(f for f in columns if f.name != LEVEL.name)
        copy = self._copies.get(name)
        met, self._met[name] = self._met.get(name, self._turn), self._turn
        if copy is None and met < self._turn:
            copy = self._made(bucket, file, wanted) if self._left > self._refused.get(name, file.file_size) else None
            self.lacks_room |= copy is None
        if copy is None or not {f.name for f in wanted} <= {*copy.columns}:
            return None
        copy.turn, copy.used_millis = self._turn, self._now
        try:
            return self._engine.temp.mapped(copy.kept.handle)
        except StorageError:  # who cleans temporary directories may take it away
            self._drop([name])
            return None

    def forget_others(self, live: Collection[str]) -> None:
        """What is known of other files than these goes."""
        self._drop([name for name in self._copies if name not in live])
        self._met = {name: turn for name, turn in self._met.items() if name in live}
        self._refused = {name: room for name, room in self._refused.items() if name in live}

    def drop_idle(self, before_millis: int) -> None:
        """Copies go that were used last before this moment."""
        self._drop([name for name, copy in self._copies.items() if copy.used_millis < before_millis])

    def drop_unused(self, turn: int) -> None:
        """Copies go that were used last in this turn or before."""
        self._drop([name for name, copy in self._copies.items() if copy.turn <= turn])

    def _made(self, bucket: Bucket, file: DataFileMeta, columns: Sequence[DataField]) -> _Copy | None:
        try:
            kept = self._engine.temp.keep(self._blocks(bucket, file, columns), _schema(columns), self._left)
        except StorageError:  # no disk: the lookup works without
            kept = None
        if kept is None:
            self._refused[file.file_name] = self._left  # not again, unless there is more room
            return None
        self._left -= kept.bytes
        self._engine.observer.count("lookup.local_copies", 1)
        copy = _Copy(kept, tuple(f.name for f in columns), self._turn, self._now)
        self._copies[file.file_name] = copy
        return copy

    def _blocks(self, bucket: Bucket, file: DataFileMeta, columns: Sequence[DataField]) -> Iterator[pa.RecordBatch]:
        keys = bucket.table.schema.key_fields
        waiting: list[pa.RecordBatch] = []
        for batch in read_data_file(bucket, file, columns):
            waiting.append(batch)
            if sum(b.nbytes for b in waiting) >= self._block_bytes:
                yield with_places(pa.concat_batches(waiting), keys)
                waiting = []
        if any(b.num_rows for b in waiting):
            yield with_places(pa.concat_batches(waiting), keys)

    def _drop(self, names: Collection[str]) -> None:
        for name in names:
            self._engine.temp.drop(self._copies.pop(name).kept.handle)


def _schema(columns: Sequence[DataField]) -> pa.Schema:
    return arrow_schema(columns).append(PLACES_FIELD)
