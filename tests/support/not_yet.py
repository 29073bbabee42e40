"""The golden reads that we do not answer as the tables' files say, each with its reason; the only such list.

`NOT_YET` is what is not in reach: a test fails when one of these reads comes right, so the list may only shrink.
`KNOWN_DIFFERENCES` are reads of older tables whose expected rows show how the older version read or printed them.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

from attrs import frozen
from golden_tables import GoldenRead


@frozen
class Listed:
    """Reads by patterns of case and read name."""

    reason: str
    cases: tuple[str, ...]
    reads: str = "*"

    def names(self, read: GoldenRead) -> bool:
        """Whether the read is one of these."""
        return fnmatchcase(read.name, self.reads) and any(fnmatchcase(read.case, case) for case in self.cases)


NOT_YET = [
    Listed("file format blob", ("blob",)),
    Listed("file format json", ("format_json",)),
    Listed("VARIANT as its JSON text", ("types_variant_parquet",)),
    Listed("shredded VARIANT", ("variant_shredded",)),
]

KNOWN_DIFFERENCES = [
    Listed("its Spark showed TIMESTAMP(6) as an instant, with a Z; the values are equal", ("v07_append",)),
    Listed("level 0 of a table with deletion vectors is hidden; 0.7 still showed it", ("v07_dv",), "snapshot-[1-5]"),
    Listed("read with the columns of the latest schema; 1.4.2 takes the snapshot's", ("v0?_evolve",), "snapshot-2"),
]


def not_yet(read: GoldenRead) -> str | None:
    """Why this read is not in reach; None where it is."""
    return next((listed.reason for listed in NOT_YET if listed.names(read)), None)


def known_difference(read: GoldenRead) -> str | None:
    """Why the expected rows are not those of today's reading; None where they are."""
    return next((listed.reason for listed in KNOWN_DIFFERENCES if listed.names(read)), None)
