"""Which manifests and which entries a predicate leaves, by partition and bucket.

Law: what is left out holds no row of a selected partition or bucket. A partition predicate is decided on the stored
values themselves; buckets follow from equality on all bucket keys, by the number of buckets that each partition was
written with. Source: `ManifestFileMeta` pruning in `AbstractFileStoreScan`, `BucketSelectConverter`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa

from paimon.domain.bucket.reference import bucket_of
from paimon.domain.errors import CorruptTable
from paimon.domain.manifest.bounds import bounds_of, exact_bounds, stats_array
from paimon.domain.manifest.columns import EntryColumns, Integers, Mask
from paimon.domain.manifest.entries import FileKind, ManifestFileMeta
from paimon.domain.predicate.expression import Compare, In, Operator, Predicate
from paimon.domain.predicate.pruning_columnar import may_match_mask
from paimon.domain.predicate.transform import conjuncts, simplify
from paimon.domain.types.data_types import CharType, DataField, DataType

_MAX_KEYS = 1_000


def manifests_to_read(
    manifests: Sequence[ManifestFileMeta], predicate: Predicate | None, partition_fields: Sequence[DataField]
) -> tuple[ManifestFileMeta, ...]:
    """Those whose partition bounds leave room for the predicate (one over partition columns alone)."""
    if predicate is None or not manifests or not partition_fields:
        return tuple(manifests)
    stats = stats_array([m.partition_stats for m in manifests])
    width = len(partition_fields)
    columns = {f.name: bounds_of(stats, i, width, f.type) for i, f in enumerate(partition_fields)}
    rows = np.array([m.num_added_files + m.num_deleted_files for m in manifests], dtype=np.int64)
    mask = may_match_mask(predicate, columns, _types(partition_fields), rows)
    return tuple(m for m, kept in zip(manifests, mask.tolist(), strict=True) if kept)


def manifests_of_buckets(
    manifests: Iterable[ManifestFileMeta], buckets: frozenset[int]
) -> tuple[ManifestFileMeta, ...]:
    """Those whose bucket bounds leave room for one of these buckets."""
    return tuple(m for m in manifests if any(_may_hold_bucket(m, bucket) for bucket in buckets))


def _may_hold_bucket(manifest: ManifestFileMeta, bucket: int) -> bool:
    if manifest.min_bucket is None or manifest.max_bucket is None:
        return True
    return manifest.min_bucket <= bucket <= manifest.max_bucket


def partition_mask(entries: EntryColumns, predicate: Predicate, partition_fields: Sequence[DataField]) -> Mask:
    """Marks the entries of partitions for which the predicate may be true."""
    rows = pa.array(entries.partition_rows, pa.binary())
    width = len(partition_fields)
    columns = {f.name: exact_bounds(rows, i, width, f.type) for i, f in enumerate(partition_fields)}
    ones = np.ones(len(rows), dtype=np.int64)
    selected: Mask = may_match_mask(predicate, columns, _types(partition_fields), ones)[entries.partitions]
    return selected


def count_partitions(entries: EntryColumns, signs: Integers) -> int:
    """Count the partitions in which more files are added than deleted; `signs` are those of the entries."""
    return _count_positive(entries.partitions, signs)


def count_buckets(entries: EntryColumns, signs: Integers) -> int:
    """Count the buckets in which more files are added than deleted; `signs` are those of the entries."""
    pairs = np.stack([entries.partitions, entries.buckets])
    return _count_positive(np.unique(pairs, axis=1, return_inverse=True)[1].reshape(-1), signs)


def entry_signs(entries: EntryColumns, *, whole: bool) -> Integers:
    """1 for an entry that adds a file; for one that deletes a file -1 in a whole snapshot, 0 in a change."""
    return np.where(entries.kinds == int(FileKind.ADD), 1, -1 if whole else 0)


def _count_positive(groups: Integers, signs: Integers) -> int:
    return int((np.bincount(groups, weights=signs) > 0).sum())


def check_partitions(partition_rows: Iterable[bytes], width: int, source: str) -> None:
    """CorruptTable naming `source` unless every partition row has as many fields as there are partition keys."""
    for row in partition_rows:
        if int.from_bytes(row[:4], "big") != width:
            raise CorruptTable(source, f"holds a partition of {int.from_bytes(row[:4], 'big')} fields, not {width}")


def bucket_keys_asked(predicate: Predicate, fields: Sequence[DataField]) -> tuple[tuple[Any, ...], ...] | None:
    """The bucket keys that a selected row can have; None where the predicate does not pin all of them.

    CHAR columns pin nothing: some formats give their values back without trailing blanks, which were hashed.
    """
    if not fields or any(isinstance(f.type, CharType) for f in fields):
        return None
    parts = conjuncts(simplify(predicate))
    choices = [_values_asked(parts, f.name) for f in fields]
    if any(c is None for c in choices):
        return None
    known = [c for c in choices if c is not None]
    if np.prod([len(c) for c in known]) > _MAX_KEYS:
        return None
    return tuple(product(*known))


def _values_asked(parts: Sequence[Predicate], column: str) -> tuple[Any, ...] | None:
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
    """Marks the entries of buckets that one of the keys falls into; entries without a fixed number of buckets stay."""
    mask = np.ones(len(entries), dtype=bool)
    for total in np.unique(entries.total_buckets).tolist():
        if total <= 0:
            continue
        buckets = sorted({bucket_of(key, types, total, function) for key in keys})
        rows = (entries.total_buckets == total) & (entries.buckets >= 0)
        mask[rows] = np.isin(entries.buckets[rows], buckets)
    return mask


def _types(fields: Sequence[DataField]) -> dict[str, DataType]:
    return {f.name: f.type for f in fields}
