"""Bugs to plant into the library where it finds the bucket or the partition of a key."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from attrs import evolve

import paimon.domain.commit.plan_change as planning
import paimon.operations.buckets.bucket_assigner as bucket_assigner
import paimon.operations.buckets.key_index as key_index
import paimon.operations.write.compact_table as compact_postponed
from paimon.domain.bucket.cross_partition_columnar import PlacedRows
from paimon.domain.commit.message import CommitMessage, CompactIncrement, ReadState
from paimon.domain.schema.rules.layout import POSTPONED
from paimon.operations.metadata.manifests import read_data_manifests, read_live_entries
from paimon.operations.metadata.snapshots import latest_snapshot
from paimon.operations.table_context import TableContext
from paimon.operations.write.buckets import Buckets

Patches = list[tuple[Any, str, Any]]


def _skip_hash_index_check() -> Patches:
    return [(planning, "check_hash_index", lambda live, change: None)]


def _keep_old_assignment() -> Patches:
    """The hashes of a partition are read once in a process, and the base of the commit is the newest index."""
    right = bucket_assigner.BucketAssigner._read_buckets

    def read_buckets(self: Any, partition: bytes, state: Any) -> Any:
        cache, name = self._context.engine.cache, f"hashes of {partition!r}"
        if cache.get(name) is None:
            cache.put(name, right(self, partition, state), 1)
        return cache.get(name)

    return [(bucket_assigner.BucketAssigner, "_read_buckets", read_buckets)]


def _ignore_other_index_files() -> Patches:
    return [(bucket_assigner, "read_hashes", lambda context, entry: np.zeros(0, np.int32))]


def _keep_index_in_overwrites() -> Patches:
    right = planning.build_overwrite
    return [(planning, "build_overwrite", lambda change, live, live_index, *rest: right(change, live, (), *rest))]


def _leave_out_moved_deletes() -> Patches:
    right = key_index.place_row_columns

    def place_row_columns(*given: Any) -> PlacedRows:
        placed = right(*given)
        written = ~placed.is_retract
        return placed._replace(
            rows=placed.rows[written], is_retract=placed.is_retract[written], places=placed.places[written]
        )

    return [(key_index, "place_row_columns", place_row_columns)]


def _skip_key_index_check() -> Patches:
    return [(planning.KeyIndexCheck, "check", lambda *_: None)]


def _follow_without_keys() -> Patches:
    """A stream takes the newest snapshot for the base of its index, and does not read the keys of other writers."""

    def follow(self: Any, store: Any) -> None:
        latest = latest_snapshot(self._context)
        if latest is not None:
            self.base = ReadState.of(latest)

    return [(key_index.KeyIndex, "_follow", follow)]


def _number_deletes_too_low() -> Patches:
    """The -D row of a moved key gets a number below that of the row which another writer committed after the read."""
    return [(Buckets, "advance", lambda self: None)]


def _trust_index_after_repeated_commit() -> Patches:
    right = key_index.KeyIndex.end_batches
    return [(key_index.KeyIndex, "end_batches", lambda self, *, is_repeated: right(self))]


def _reverse_postponed_files() -> Patches:
    right = compact_postponed.sort_postponed_files
    return [(compact_postponed, "sort_postponed_files", lambda *given: tuple(reversed(right(*given))))]


def _drop_new_postponed_files() -> Patches:
    """A compaction of postponed files also removes the files that were committed while it ran."""
    right, build = compact_postponed.compact_partitions, compact_postponed._build_removal_message
    removed: list[CompactIncrement] = []

    def compact_partitions(context: TableContext, user: str, partitions: Any) -> list[CommitMessage]:
        messages = list(right(context, user, partitions))
        head = latest_snapshot(context)
        assert head is not None
        live = read_live_entries(context, read_data_manifests(context, head))
        postponed = tuple(e.file for e in live if e.bucket == POSTPONED)
        removed[:] = [CompactIncrement(compact_before=postponed)]
        return messages

    return [
        (compact_postponed, "compact_partitions", compact_partitions),
        (compact_postponed, "_build_removal_message", lambda work: evolve(build(work), compact=removed[0])),
    ]


DYNAMIC_MISTAKES: Mapping[str, Callable[[], Patches]] = {
    "the hash index conflict is not checked": _skip_hash_index_check,
    "a retry keeps its old assignment": _keep_old_assignment,
    "index files of other writers are ignored": _ignore_other_index_files,
    "an overwrite keeps the hash index": _keep_index_in_overwrites,
}
CROSS_PARTITION_MISTAKES: Mapping[str, Callable[[], Patches]] = {
    "a moved key is not deleted in its old partition": _leave_out_moved_deletes,
    "the key index conflict is not checked": _skip_key_index_check,
    "a stream does not read the keys of other writers": _follow_without_keys,
    "a moved key is deleted with a low sequence number": _number_deletes_too_low,
    "the key index is not rebuilt after a repeated commit": _trust_index_after_repeated_commit,
}
POSTPONED_MISTAKES: Mapping[str, Callable[[], Patches]] = {
    "postponed files are replayed in reverse order": _reverse_postponed_files,
    "a compaction drops new postponed files": _drop_new_postponed_files,
}
