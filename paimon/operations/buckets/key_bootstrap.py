"""Read all keys of a table with the places of their rows, to build the key index of a cross-partition writer.

Invariant: the keys are those of all live rows, also of level 0 that batch reads skip. Memory holds the keys of a few
splits, or one batch of a large split. Source: `IndexBootstrap`.
"""

# The key index of a writer (`key_index.py`) begins with one full read of the table. Only the columns of the primary key
# are read, and a place is a property of the split, so each batch of keys has one partition and one bucket:
#
#     split of partition a, bucket 0    keys 7, 9     ->  KeysOfBucket(a, 0, [7, 9])
#     split of partition b, bucket 1    keys 8        ->  KeysOfBucket(b, 1, [8])
#
# The same reads serve others: the keys that other writers added since the index was built (`ScanKind.DELTA`), the keys
# that remain next to an overwritten partition, the check that a key is in one partition only, and the tasks of Spark.
#
# Which rows count. A key is in its place as soon as it is committed. Batch reads of tables with deletion vectors skip
# level 0, because its rows are not compacted yet; here level 0 is read, too. Merging leaves out deleted keys: such a
# key has no place, and may arrive for any partition.
#
# What may be left out. With `cross-partition-upsert.index-ttl` old keys are forgotten, which is faster and allows a key
# to be in two partitions. A file has only its creation time, and a merge needs all files of its section. So a split is
# left out if all of its files are too old, and read as a whole if one is young.
#
# How many splits at a time. Small splits are read together by the executor, as many as
# `cross-partition-upsert.bootstrap-parallelism` allows, and at most a quarter of the memory budget, by the size of
# their files. A quarter of 512 MiB is 128 MiB:
#
#     splits (MiB)    40   90   10   300   20   30
#     groups          [40] [90  10] [300] [20   30]
#
# A group of several splits returns whole lists of keys, which are small compared with the files. A group of one split
# is streamed, batch by batch, so that a split above the limit (300) needs no more memory than a batch. Groups keep the
# order of the splits, and keys go to the store before the next group is read.

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import pyarrow as pa

from paimon.domain.scan.scan_plan import ScanKind, ScanRequest
from paimon.domain.scan.splits import DataSplit
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.buckets.block_key_store import BlockKeyStores
from paimon.operations.read.plan import plan_scan
from paimon.operations.read.split import ReadPlan, read_split
from paimon.operations.table_context import TableContext
from paimon.ports.key_stores import KeyStore

_MEMORY_SHARE = 4
"""The part of the memory budget (1/n) for files that are read at the same time."""
_STORE_SHARE = 4
"""The part of the memory budget (1/n) for the key store; the write buffer has one half."""


class KeysOfBucket(NamedTuple):
    """Some keys of a bucket: its partition as a serialized row, its number, and the columns of the primary key."""

    partition: bytes
    bucket: int
    keys: pa.RecordBatch


def open_key_store(context: TableContext) -> KeyStore:
    """Return an empty store for the primary keys of a table; the caller closes it."""
    engine, schema = context.engine, context.schema
    stores = engine.key_stores or BlockKeyStores(engine.temp)
    keys = [schema.field_of(name) for name in schema.primary_keys]
    return stores.open(keys, engine.memory.bytes // _STORE_SHARE, context.options.cross_partition_index_ttl_millis)


def plan_key_splits(context: TableContext, snapshot: Snapshot, kind: ScanKind = ScanKind.ALL) -> list[DataSplit]:
    """Plan splits with the keys of a snapshot, or of files it added; splits past `index-ttl` are left out."""
    return _drop_expired(context, plan_scan(context, ScanRequest(snapshot, kind=kind, shows_level_0=True)).splits)


def read_key_places(context: TableContext, splits: Iterable[DataSplit]) -> Iterator[KeysOfBucket]:
    """Read the keys of splits; a bucket may be yielded several times, with some of its keys each time.

    `cross-partition-upsert.bootstrap-parallelism` splits are read at the same time, as far as the executor and the
    memory budget allow.
    """
    read = ReadPlan(context.schema.primary_keys)
    for group in _group_splits(context, splits):
        if len(group) == 1:
            for batch in read_split(context, group[0], read):
                yield KeysOfBucket(group[0].partition, group[0].bucket, batch)
            continue
        task = partial(_read_split_keys, context.for_tasks(len(group)), read)
        for split, batches in zip(group, context.engine.executor.map(task, group), strict=True):
            for batch in batches:
                yield KeysOfBucket(split.partition, split.bucket, batch)


def _read_split_keys(context: TableContext, read: ReadPlan, split: DataSplit) -> list[pa.RecordBatch]:
    return list(read_split(context, split, read))


def _drop_expired(context: TableContext, splits: Sequence[DataSplit]) -> list[DataSplit]:
    time_to_live_millis = context.options.cross_partition_index_ttl_millis
    if time_to_live_millis is None:
        return list(splits)
    now = context.engine.clock.now_millis()
    oldest = now + context.engine.clock.local_offset_millis(now) - time_to_live_millis  # files record local time
    return [
        s for s in splits if any(f.creation_time_millis is None or f.creation_time_millis >= oldest for f in s.files)
    ]


def _group_splits(context: TableContext, splits: Iterable[DataSplit]) -> Iterator[list[DataSplit]]:
    """Yield groups of splits that are read at the same time."""
    most = max(1, context.options.cross_partition_bootstrap_parallelism)
    limit_bytes = context.engine.memory.bytes // _MEMORY_SHARE
    group: list[DataSplit] = []
    for split in splits:
        if group and (len(group) == most or sum(s.file_size for s in (*group, split)) > limit_bytes):
            yield group
            group = []
        group.append(split)
    if group:
        yield group
