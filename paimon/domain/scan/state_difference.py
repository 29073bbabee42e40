"""Splits for what came and went between two states of a table, from the plans of both.

Law: of a primary-key table each bucket that has other files than before is one split with the files of both states;
of an append table the files that came are read, and nothing is merged. Source:
`SnapshotReaderImpl.readIncrementalDiff`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from attrs import evolve

from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.scan.splits import DataSplit, DeletionFile

BucketKey = tuple[bytes, int]
"""Serialised partition and bucket."""


def difference_splits(before: Iterable[DataSplit], after: Iterable[DataSplit], keyed: bool) -> tuple[DataSplit, ...]:
    """The splits to read; `keyed`: rows have primary keys."""
    if not keyed:
        return tuple(_came(before, after))
    old, new = _by_bucket(before), _by_bucket(after)
    buckets = [*new, *(key for key in old if key not in new)]
    found = [_of_bucket(old.get(key), new.get(key)) for key in buckets]
    return tuple(split for split in found if split is not None)


def replaced_splits(before: Iterable[DataSplit], after: Iterable[DataSplit], snapshot_id: int) -> tuple[DataSplit, ...]:
    """The splits of what an overwrite took away, as files of an earlier state alone, then of what it brought."""
    before, after = tuple(before), tuple(after)
    went = [_emptied(split) for split in _came(after, before)]
    came = [evolve(split, raw_convertible=False) for split in _came(before, after)]
    return tuple(evolve(split, snapshot_id=snapshot_id) for split in (*went, *came))


def _emptied(split: DataSplit) -> DataSplit:
    """A split whose files are all gone."""
    return evolve(
        split, files=(), deletion_files=(), before_files=split.files, before_deletion_files=split.deletion_files
    )


def file_vectors(
    files: Iterable[DataFileMeta], vectors: tuple[DeletionFile | None, ...]
) -> list[tuple[DataFileMeta, DeletionFile | None]]:
    """Files with their deletion vectors."""
    files = tuple(files)
    return list(zip(files, vectors or (None,) * len(files), strict=True))


def _came(before: Iterable[DataSplit], after: Iterable[DataSplit]) -> Iterator[DataSplit]:
    old = {(s.partition, s.bucket, f.file_name) for s in before for f in s.files}
    for split in after:
        pairs = file_vectors(split.files, split.deletion_files)
        kept = [(f, d) for f, d in pairs if (split.partition, split.bucket, f.file_name) not in old]
        if kept:
            yield evolve(split, files=[f for f, _ in kept], deletion_files=_vectors_of(kept))


def _by_bucket(splits: Iterable[DataSplit]) -> dict[BucketKey, DataSplit]:
    """One split for each bucket, with all its files."""
    whole: dict[BucketKey, DataSplit] = {}
    for split in splits:
        key = (split.partition, split.bucket)
        pairs = file_vectors(split.files, split.deletion_files)
        if key in whole:
            pairs = file_vectors(whole[key].files, whole[key].deletion_files) + pairs
        whole[key] = evolve(
            split, files=[f for f, _ in pairs], deletion_files=_vectors_of(pairs), raw_convertible=False
        )
    return whole


def _of_bucket(old: DataSplit | None, new: DataSplit | None) -> DataSplit | None:
    if old is None:
        return new
    if new is None:
        return evolve(
            old, files=(), deletion_files=(), before_files=old.files, before_deletion_files=old.deletion_files
        )
    if _contents(old) == _contents(new):
        return None
    return evolve(new, before_files=old.files, before_deletion_files=old.deletion_files)


def _contents(split: DataSplit) -> set[tuple[str, int, DeletionFile | None]]:
    return {(f.file_name, f.level, d) for f, d in file_vectors(split.files, split.deletion_files)}


def _vectors_of(pairs: Iterable[tuple[DataFileMeta, DeletionFile | None]]) -> tuple[DeletionFile | None, ...]:
    vectors = tuple(d for _, d in pairs)
    return vectors if any(vectors) else ()
