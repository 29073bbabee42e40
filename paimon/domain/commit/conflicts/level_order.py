"""Check that a compaction keeps newer records above older ones, in a table whose merges look keys up.

A lookup takes the record of the smallest level, because in the tree of one writer a smaller level holds newer records.
The compactions of two writers, each of which does not know the files of the other, can put older records below newer
ones. Then a lookup finds the older record.

Source: none. In Java, at most one writer of a table compacts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from paimon.domain.commit.entries import Change
from paimon.domain.errors import CommitConflict
from paimon.domain.lsm.compaction.level_order import find_out_of_order
from paimon.domain.manifest.entries import DataFileMeta, FileKind, ManifestEntry
from paimon.domain.types.data_types import DataType


def check_level_order(live: Iterable[ManifestEntry], change: Change, key_types: Sequence[DataType]) -> None:
    """Refuse a compaction that puts older records on a smaller level than newer records of the same keys.

    `live` has at least the live files above level 0 of the changed buckets.
    """
    named = {e.identity for e in change.entries}
    added = _group_by_bucket(e for e in change.entries if e.kind is FileKind.ADD and e.file.level > 0)
    others = _group_by_bucket(e for e in live if e.file.level > 0 and e.identity not in named)
    wrong = [f for bucket, files in added.items() for f in find_out_of_order(files, others.get(bucket, ()), key_types)]
    if wrong:
        raise CommitConflict(
            "A concurrent compaction and this one put newer records on a higher level than older records of the "
            "same keys",
            files=[f.file_name for f in wrong],
            hint="retry the compaction, which then reads the files of the other one",
        )


def _group_by_bucket(entries: Iterable[ManifestEntry]) -> dict[tuple[bytes, int], list[DataFileMeta]]:
    files: dict[tuple[bytes, int], list[DataFileMeta]] = {}
    for entry in entries:
        files.setdefault((entry.partition, entry.bucket), []).append(entry.file)
    return files
