"""Find the written files whose rows would lose against rows that others committed first.

A writer numbers its rows after the rows of the snapshot that it read. If others commit to the bucket before it, their
rows may have the same or larger numbers, and the merge takes them for the newer ones although they are older commits:

    snapshot 5: largest number 10     writer A: key 1 gets number 11
    snapshot 6: key 1 has number 11   (a tie; key 1 with number 12 hides the row of A for good)
    A commits:  readers show the row of snapshot 6. With the number 12 or above, they show that of A.

Invariant: only files with a common range of keys count, so numbers of different keys may be equal.
Source: none. In Java the order of numbers decides, whatever the order of commits is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from paimon.domain.lsm.sorted_run import KeyedFile
from paimon.domain.manifest.entries import DataFileMeta, ManifestEntry
from paimon.domain.types.data_types import DataType

BucketKey = tuple[bytes, int]
"""A partition and a bucket."""


class LateRowsFound(Exception):
    """Raised before a commit whose rows would lose; `first_numbers` are free sequence numbers of their buckets."""

    def __init__(self, first_numbers: Mapping[BucketKey, int]) -> None:
        super().__init__("written rows have sequence numbers of rows that others committed first")
        self.first_numbers = first_numbers


def list_numbered_files(files: Iterable[DataFileMeta]) -> list[DataFileMeta]:
    """Return the files of level 0, which a writer numbers."""
    return [file for file in files if file.level == 0]


def find_late_rows(
    written: Mapping[BucketKey, Sequence[DataFileMeta]],
    added: Iterable[ManifestEntry],
    key_types: Sequence[DataType],
) -> dict[BucketKey, int]:
    """Return the buckets whose written rows lose against files that others `added`, each with the first free number."""
    late: set[BucketKey] = set()
    largest: dict[BucketKey, int] = {}
    own = {
        key: [(file.min_sequence_number, KeyedFile.of(file, key_types)) for file in files]
        for key, files in written.items()
    }
    for entry in added:
        key = entry.partition, entry.bucket
        if key not in own:
            continue
        number, other = entry.file.max_sequence_number, KeyedFile.of(entry.file, key_types)
        largest[key] = max(largest.get(key, 0), number)
        if any(number >= first and file.overlaps(other) for first, file in own[key]):
            late.add(key)
    return {key: max(largest[key], *(f.max_sequence_number for f in written[key])) + 1 for key in late}
