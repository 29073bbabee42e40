"""The lookup cache: local copies of the data files in which one writer looks keys up, commit after commit.

Invariant: a lookup file has all rows of its data file, in the same order; lookups return the same rows with and
without the cache. The cache stays within its disk limit, and building a lookup file holds at most one block of rows in
memory. A file is copied when it is requested for the second time, because most files are soon compacted away. The
least recently used lookup files are removed first, and only for a file that is used more often.

Source: `LookupLevels`, `LookupFile.createCache`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

import pyarrow as pa
from attrs import define, frozen

from paimon.domain.errors import StorageError
from paimon.domain.lsm.lookup_hashes import LOOKUP_HASHES_FIELD, add_lookup_hashes
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.options.parse import LARGEST_LONG
from paimon.domain.options.table_options import TableOptions
from paimon.domain.scan.assemble import BucketKey
from paimon.domain.types.arrow import arrow_schema
from paimon.domain.types.data_types import DataField
from paimon.domain.types.system_columns import LEVEL
from paimon.operations.data_files.read_data_file import Bucket, read_data_file
from paimon.operations.table_context import TableContext
from paimon.ports.engine import Engine
from paimon.ports.temp import StoredTable

_BLOCK_BYTES = 16 * 1024 * 1024
"""Rows that are stored and searched together; building a block holds them twice in memory."""
_MEMORY_SHARE = 16
"""A block uses at most this fraction of the memory: one in so many parts."""


@define
class _StoredFile:
    stored: StoredTable
    columns: tuple[str, ...]
    round_number: int
    used_millis: int


@frozen
class CacheLimits:
    """The limits of a lookup cache."""

    # local disk that all lookup files together may use
    disk_bytes: int
    # rows that are held in memory while a lookup file is built
    block_bytes: int
    # how long an unused lookup file is kept
    idle_millis: int

    @classmethod
    def of(cls, options: TableOptions, memory_bytes: int) -> CacheLimits:
        """Return the limits from the options of a table and the memory of an engine."""
        disk = options.lookup_cache_disk_bytes
        share = min(options.lookup_cache_memory_bytes, memory_bytes) // _MEMORY_SHARE
        return cls(
            LARGEST_LONG if disk is None else disk, min(_BLOCK_BYTES, share), options.lookup_cache_retention_millis
        )


class LookupCache:
    """The lookup files of all buckets of one writer; unpickled in another process it is None."""

    def __init__(self, context: TableContext) -> None:
        self._engine = context.engine
        self._limits = CacheLimits.of(context.options, context.engine.memory.bytes)
        self._buckets: dict[BucketKey, BucketLookupFiles] = {}
        self._round = 0

    def __reduce__(self) -> tuple[Callable[[], None], tuple[()]]:
        return _return_none, ()

    def begin(self, buckets: Collection[BucketKey], live: Callable[[BucketKey], Collection[str]]) -> None:
        """Begin a round of tasks for these buckets; lookup files of no `live` file are removed."""
        self._round += 1
        now = self._engine.clock.now_millis()
        for key, lookup_files in list(self._buckets.items()):
            lookup_files.forget_others(live(key))
            lookup_files.drop_idle(now - self._limits.idle_millis)
            if lookup_files.is_empty and key not in buckets:
                del self._buckets[key]
        if any(lookup_files.lacks_space for lookup_files in self._buckets.values()):
            for lookup_files in self._buckets.values():
                lookup_files.drop_unused(self._round - 2)
        left = self._limits.disk_bytes - sum(lookup_files.bytes for lookup_files in self._buckets.values())
        for key in buckets:
            lookup_files = self._buckets.setdefault(key, BucketLookupFiles(self._engine, self._limits.block_bytes))
            lookup_files.begin(self._round, now, left // len(buckets))

    def of(self, key: BucketKey) -> BucketLookupFiles | None:
        """Return the lookup files of one bucket, for its task in this round."""
        return self._buckets.get(key)

    def close(self) -> None:
        """Remove all lookup files."""
        for lookup_files in self._buckets.values():
            lookup_files.forget_others(())
        self._buckets.clear()


def _return_none() -> None:
    return None


class BucketLookupFiles:
    """The lookup files of a bucket, for one task at a time; building one holds `block_bytes` of rows."""

    def __init__(self, engine: Engine, block_bytes: int) -> None:
        self._engine = engine
        self._block_bytes = block_bytes
        self._files: dict[str, _StoredFile] = {}
        self._last_requested: dict[str, int] = {}
        self._refused: dict[str, int] = {}
        self._round = 0
        self._now_millis = 0
        self._left_bytes = 0
        self.lacks_space = False

    @property
    def bytes(self) -> int:
        """The disk space of the lookup files."""
        return sum(stored_file.stored.bytes for stored_file in self._files.values())

    @property
    def is_empty(self) -> bool:
        """Whether there is no lookup file, and none was requested."""
        return not self._files and not self._last_requested

    def begin(self, round_number: int, now_millis: int, left_bytes: int) -> None:
        """Begin a round (numbers ascend) at an epoch time, with `left_bytes` of disk for its new files."""
        self._round, self._now_millis, self._left_bytes, self.lacks_space = round_number, now_millis, left_bytes, False

    def find_blocks(
        self, bucket: Bucket, file: DataFileMeta, columns: Sequence[DataField]
    ) -> Sequence[pa.RecordBatch] | None:
        """Return a data file's lookup file: blocks in file order with lookup hashes; None to read the file."""
        name, stored_columns = file.file_name, tuple(f for f in columns if f.name != LEVEL.name)
        stored_file = self._files.get(name)
        last_requested, self._last_requested[name] = self._last_requested.get(name, self._round), self._round
        if stored_file is None and last_requested < self._round:
            stored_file = (
                self._store_file(bucket, file, stored_columns)
                if self._left_bytes > self._refused.get(name, file.file_size)
                else None
            )
            self.lacks_space |= stored_file is None
        if stored_file is None or not {f.name for f in stored_columns} <= {*stored_file.columns}:
            return None
        stored_file.round_number, stored_file.used_millis = self._round, self._now_millis
        try:
            return self._engine.temp.map_batches(stored_file.stored.handle)
        except StorageError:  # a cleaner of temporary directories may have deleted it
            self._remove_files([name])
            return None

    def forget_others(self, live: Collection[str]) -> None:
        """Remove what is recorded about files other than these."""
        self._remove_files([name for name in self._files if name not in live])
        self._last_requested = {
            name: round_number for name, round_number in self._last_requested.items() if name in live
        }
        self._refused = {name: room for name, room in self._refused.items() if name in live}

    def drop_idle(self, before_millis: int) -> None:
        """Remove the lookup files that were last used before this moment."""
        self._remove_files(
            [name for name, stored_file in self._files.items() if stored_file.used_millis < before_millis]
        )

    def drop_unused(self, round_number: int) -> None:
        """Remove the lookup files that were last used in this round or before."""
        self._remove_files(
            [name for name, stored_file in self._files.items() if stored_file.round_number <= round_number]
        )

    def _store_file(self, bucket: Bucket, file: DataFileMeta, columns: Sequence[DataField]) -> _StoredFile | None:
        try:
            stored = self._engine.temp.store(
                self._read_blocks(bucket, file, columns), _schema(columns), self._left_bytes
            )
        except StorageError:  # no disk space: the lookup reads the data file
            stored = None
        if stored is None:
            self._refused[file.file_name] = self._left_bytes  # retried only with more disk space
            return None
        self._left_bytes -= stored.bytes
        self._engine.observer.count("lookup.local_copies", 1)
        stored_file = _StoredFile(stored, tuple(f.name for f in columns), self._round, self._now_millis)
        self._files[file.file_name] = stored_file
        return stored_file

    def _read_blocks(
        self, bucket: Bucket, file: DataFileMeta, columns: Sequence[DataField]
    ) -> Iterator[pa.RecordBatch]:
        keys = bucket.context.schema.key_fields
        batches: list[pa.RecordBatch] = []
        for batch in read_data_file(bucket, file, columns):
            batches.append(batch)
            if sum(b.nbytes for b in batches) >= self._block_bytes:
                yield add_lookup_hashes(pa.concat_batches(batches), keys)
                batches = []
        if any(b.num_rows for b in batches):
            yield add_lookup_hashes(pa.concat_batches(batches), keys)

    def _remove_files(self, names: Collection[str]) -> None:
        for name in names:
            self._engine.temp.drop(self._files.pop(name).stored.handle)


def _schema(columns: Sequence[DataField]) -> pa.Schema:
    return arrow_schema(columns).append(LOOKUP_HASHES_FIELD)
