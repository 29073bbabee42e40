"""Whether a change still fits the snapshot that it is to be built on.

Law: a conflict is named by the first rule that is broken and the files at fault; a pure APPEND of level-0 files
breaks none. Source: `ConflictDetection`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from paimon.domain.commit.entries import Change
from paimon.domain.errors import CommitConflict
from paimon.domain.lsm.keys import comparable
from paimon.domain.manifest.entries import DELETION_VECTORS, FileKind, ManifestEntry
from paimon.domain.snapshot.snapshot import CommitKind
from paimon.domain.types.data_types import DataType

_Identity = tuple[object, ...]


def needs_check(change: Change, asked: bool) -> bool:
    """Whether the files of the base must be looked at before the change may be published."""
    takes_away = any(e.kind is FileKind.DELETE for e in change.entries)
    touches_vectors = any(e.index_type == DELETION_VECTORS or e.global_index for e in change.index)
    return asked or change.kind is not CommitKind.APPEND or takes_away or touches_vectors


def check_conflicts(base: Iterable[ManifestEntry], change: Change, key_types: Sequence[DataType]) -> None:
    """Refuse a change that contradicts the base.

    Parameters
    ----------
    base : iterable of ManifestEntry
        Live files of (at least) the partitions that the change touches.
    change : Change
        What is to be published.
    key_types : sequence of DataType
        Types of the trimmed primary key; empty for append tables.

    Raises
    ------
    CommitConflict
        Naming the rule and the files.
    """
    live = {e.identity: e for e in base}
    if change.kind is not CommitKind.OVERWRITE:
        _check_total_buckets([*live.values(), *change.entries])
    _apply(live, change.entries)
    if key_types:
        _check_key_ranges(live.values(), change, key_types)


def without_known(entries: Iterable[ManifestEntry], base: Iterable[ManifestEntry]) -> tuple[ManifestEntry, ...]:
    """The entries less the ADDs that the base holds already (`commit.discard-duplicate-files`)."""
    known = {e.identity for e in base}
    return tuple(e for e in entries if e.kind is FileKind.DELETE or e.identity not in known)


def _check_total_buckets(entries: Iterable[ManifestEntry]) -> None:
    totals: dict[bytes, ManifestEntry] = {}
    for entry in entries:
        if entry.total_buckets <= 0:
            continue
        first = totals.setdefault(entry.partition, entry)
        if first.total_buckets != entry.total_buckets:
            raise CommitConflict(
                f"a partition has {first.total_buckets} buckets and the commit brings files of {entry.total_buckets}",
                files=_names([entry]),
                hint="change the number of buckets by overwriting the partition",
            )


def _apply(live: dict[_Identity, ManifestEntry], entries: Iterable[ManifestEntry]) -> None:
    missing: list[ManifestEntry] = []
    doubled: list[ManifestEntry] = []
    for entry in entries:
        if entry.kind is FileKind.ADD:
            if entry.identity in live:
                doubled.append(entry)
            live[entry.identity] = entry
        elif live.pop(entry.identity, None) is None:
            missing.append(entry)
    if missing:
        raise CommitConflict("files to be replaced are no longer in the table", files=_names(missing))
    if doubled:
        raise CommitConflict("files to be added are in the table already", files=_names(doubled))


def _check_key_ranges(live: Iterable[ManifestEntry], change: Change, key_types: Sequence[DataType]) -> None:
    """Above level 0, the files of one level of one bucket hold disjoint key ranges."""
    changed = {(e.partition, e.bucket) for e in change.entries}
    runs: dict[tuple[bytes, int, int], list[ManifestEntry]] = {}
    for entry in live:
        if entry.file.level >= 1 and (entry.partition, entry.bucket) in changed:
            runs.setdefault((entry.partition, entry.bucket, entry.file.level), []).append(entry)
    for run in runs.values():
        keyed = sorted(
            (comparable(e.file.min_key, key_types), comparable(e.file.max_key, key_types), i) for i, e in enumerate(run)
        )
        for (_, high, one), (low, _, two) in pairwise(keyed):
            if low <= high:
                raise CommitConflict(
                    f"files of level {run[one].file.level} of bucket {run[one].bucket} would overlap in their keys",
                    files=_names([run[one], run[two]]),
                )


def _names(entries: Iterable[ManifestEntry]) -> list[str]:
    return [e.file.file_name for e in entries]
