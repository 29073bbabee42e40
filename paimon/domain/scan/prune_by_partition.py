"""Prune manifests and entries by partition and bucket.

A partition predicate is evaluated on the stored values. Buckets follow from equality conditions on all bucket keys, for
the number of buckets that each partition was written with.

Invariant: A pruned entry belongs to no selected partition or bucket.
Source: `ManifestFileMeta` pruning in `AbstractFileStoreScan`, `BucketSelectConverter`.
"""

# Planning keeps less in three steps (the first also reads less). Each sees only what the one before left:
#
# 1. Manifests. A manifest list has for each manifest the smallest and largest value of each partition column, and of
#    the bucket: a manifest whose bounds do not admit the predicate is not opened. Where equality conditions leave few
#    partitions, the blocks of large manifests are searched for their bytes, and only blocks that contain one decoded.
# 2. Partitions. The entries of the manifests that were read refer to few distinct partition rows. The predicate is
#    evaluated once for each of those (a partition is a range with equal bounds), not for each entry.
# 3. Buckets. If every bucket key is restricted to values, the bucket of each combination is computed, and only its
#    entries remain:
#
#        k = 7 AND l IN ('x', 'y')     keys (7, x) (7, y)     of 4 buckets: 1, 3     of 8 buckets: 1, 7
#
#    Partitions can have different numbers of buckets (after a rescale), so buckets are computed for each number that
#    occurs. More than 1,000 combinations prune nothing.

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa

from paimon.domain.bucket.bucket_rule import compute_bucket
from paimon.domain.errors import CorruptTable
from paimon.domain.manifest.bounds import read_bounds, read_exact_bounds, stats_array
from paimon.domain.manifest.entries import FileKind, ManifestFileMeta
from paimon.domain.manifest.entry_columns import EntryColumns, Integers, Mask
from paimon.domain.predicate.expression import Compare, In, Operator, Predicate
from paimon.domain.predicate.pruning_columnar import may_match_mask
from paimon.domain.predicate.transform import simplify, split_conjuncts
from paimon.domain.row.binary_row import serialize
from paimon.domain.types.arrow_arrays import from_numpy, make_array
from paimon.domain.types.data_types import (
    INTEGER_TYPES,
    BooleanType,
    CharType,
    DataField,
    DataType,
    DateType,
    VarCharType,
)

_MAX_KEYS = 1_000
_MAX_SEARCHED = 4
"""More partitions are not searched for: each costs about a tenth of decoding all entries."""
_UNIFORM_TYPES = (*INTEGER_TYPES, BooleanType, DateType, VarCharType)
"""Timestamps and decimals have several forms, floating zeros two."""


def manifests_to_read(
    manifests: Sequence[ManifestFileMeta], predicate: Predicate | None, partition_fields: Sequence[DataField]
) -> tuple[ManifestFileMeta, ...]:
    """Return the manifests, in order, whose partition bounds admit the predicate (on partition columns only)."""
    if predicate is None or not manifests or not partition_fields:
        return tuple(manifests)
    stats = stats_array([m.partition_stats for m in manifests])
    width = len(partition_fields)
    columns = {f.name: read_bounds(stats, i, width, f.type) for i, f in enumerate(partition_fields)}
    rows = np.array([m.num_added_files + m.num_deleted_files for m in manifests], dtype=np.int64)
    mask = may_match_mask(predicate, columns, _types_by_name(partition_fields), rows)
    return tuple(m for m, kept in zip(manifests, mask.tolist(), strict=True) if kept)


def manifests_of_buckets(
    manifests: Iterable[ManifestFileMeta], buckets: frozenset[int]
) -> tuple[ManifestFileMeta, ...]:
    """Return the manifests whose bucket bounds admit one of these buckets."""
    return tuple(m for m in manifests if any(_may_hold_bucket(m, bucket) for bucket in buckets))


def _may_hold_bucket(manifest: ManifestFileMeta, bucket: int) -> bool:
    if manifest.min_bucket is None or manifest.max_bucket is None:
        return True
    return manifest.min_bucket <= bucket <= manifest.max_bucket


def partition_mask(entries: EntryColumns, predicate: Predicate, partition_fields: Sequence[DataField]) -> Mask:
    """Mark the entries in partitions for which the bound predicate, on partition columns only, can be true."""
    rows = make_array(entries.partition_rows, pa.binary())
    width = len(partition_fields)
    columns = {f.name: read_exact_bounds(rows, i, width, f.type) for i, f in enumerate(partition_fields)}
    ones = np.ones(len(rows), dtype=np.int64)
    selected: Mask = may_match_mask(predicate, columns, _types_by_name(partition_fields), ones)[entries.partitions]
    return selected


def count_partitions(entries: EntryColumns, signs: Integers) -> int:
    """Count the partitions in which more files are added than deleted; `signs` are those of `entry_signs`."""
    return _count_positive(entries.partitions, signs)


def count_buckets(entries: EntryColumns, signs: Integers) -> int:
    """Count the buckets in which more files are added than deleted; `signs` are those of `entry_signs`."""
    pairs = np.stack([entries.partitions, entries.buckets])
    return _count_positive(np.unique(pairs, axis=1, return_inverse=True)[1].reshape(-1), signs)


def entry_signs(entries: EntryColumns, *, whole: bool) -> Integers:
    """Return 1 for each added file, and for each deleted file -1 in a whole snapshot or 0 in a change.

    Sums of these signs count files.
    """
    return np.where(entries.kinds == int(FileKind.ADD), 1, -1 if whole else 0)


def _count_positive(groups: Integers, signs: Integers) -> int:
    return int((np.bincount(groups, weights=signs) > 0).sum())


def check_partitions(partition_rows: Iterable[bytes], width: int, source: str) -> None:
    """Refuse serialized partitions with a wrong number of fields; `source` is their file, for the error message."""
    for row in partition_rows:
        if int.from_bytes(row[:4], "big") != width:
            raise CorruptTable(
                source, f"contains a partition with {int.from_bytes(row[:4], 'big')} fields instead of {width}"
            )


def find_bucket_keys(predicate: Predicate, fields: Sequence[DataField]) -> tuple[tuple[Any, ...], ...] | None:
    """Return the bucket keys that a selected row can have, as internal values.

    None if a column is not restricted, or there are more than 1,000 keys. CHAR columns restrict nothing. Some formats
    return their values without trailing blanks, which were part of the hash.
    """
    if not fields or any(isinstance(f.type, CharType) for f in fields):
        return None
    parts = split_conjuncts(simplify(predicate))
    choices = [_equal_values(parts, f.name) for f in fields]
    if any(c is None for c in choices):
        return None
    known = [c for c in choices if c is not None]
    if math.prod(len(c) for c in known) > _MAX_KEYS:
        return None
    return tuple(product(*known))


def find_partition_rows(predicate: Predicate, fields: Sequence[DataField]) -> tuple[bytes, ...]:
    """Return the serialized partitions that the predicate on partition columns admits, if they are few.

    None are returned if there are more, or if a type has values that writers store in different ways.
    """
    keys = find_bucket_keys(predicate, fields) if all(isinstance(f.type, _UNIFORM_TYPES) for f in fields) else None
    if keys is None or len(keys) > _MAX_SEARCHED:
        return ()
    return tuple(serialize(key, [f.type for f in fields]) for key in keys)


def _equal_values(parts: Sequence[Predicate], column: str) -> tuple[Any, ...] | None:
    for part in parts:
        match part:
            case Compare(column=name, op=Operator.EQ, literal=literal) if name == column:
                return (literal,)
            case In(column=name, literals=literals, negated=False) if name == column:
                return tuple(v for v in literals if v is not None)
    return None


def bucket_mask(
    entries: EntryColumns, keys: Sequence[tuple[Any, ...]], types: Sequence[DataType], function: str
) -> Mask:
    """Mark the entries in buckets that can contain one of the keys.

    Entries without a fixed number of buckets are always marked.
    """
    mask = np.ones(len(entries), dtype=bool)
    for total in from_numpy(entries.total_buckets).unique().to_pylist():  # `np.unique` loads `numpy.ma`
        if total <= 0:
            continue
        buckets = sorted({compute_bucket(key, types, total, function) for key in keys})
        rows = (entries.total_buckets == total) & (entries.buckets >= 0)
        mask[rows] = np.isin(entries.buckets[rows], buckets)
    return mask


def _types_by_name(fields: Sequence[DataField]) -> dict[str, DataType]:
    return {f.name: f.type for f in fields}
