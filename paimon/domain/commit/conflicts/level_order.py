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
from paimon.domain.lsm.compaction.level_order import KeyedFile, is_out_of_order
from paimon.domain.manifest.entries import FileKind, ManifestEntry
from paimon.domain.types.data_types import DataType

_Bucket = tuple[bytes, int]


def check_level_order(live: Iterable[ManifestEntry], change: Change, key_types: Sequence[DataType]) -> None:
    """Refuse a compaction that puts older records on a smaller level than newer records of the same keys.

    Parameters
    ----------
    live : iterable of ManifestEntry
        The live files of the base, at least those above level 0 in the changed buckets.
    change : Change
        The compaction.
    key_types : sequence of DataType
        The types of the primary key.

    Raises
    ------
    CommitConflict
        The error lists the files that the compaction did not know.
    """
    named = {e.identity for e in change.entries}
    added: dict[_Bucket, list[KeyedFile]] = {}
    for entry in change.entries:
        if entry.kind is FileKind.ADD and entry.file.level > 0:
            added.setdefault((entry.partition, entry.bucket), []).append(KeyedFile.of(entry.file, key_types))
    others = (e for e in live if e.file.level > 0 and e.identity not in named)
    wrong = [
        e.file.file_name
        for e in others
        if any(is_out_of_order(f, KeyedFile.of(e.file, key_types)) for f in added.get((e.partition, e.bucket), ()))
    ]
    if wrong:
        raise CommitConflict(
            "Concurrently compacted files and this compaction would have newer records below older ones", files=wrong
        )
