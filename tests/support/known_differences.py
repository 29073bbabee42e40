"""The golden reads whose result differs from the expected rows, each with its reason; the only such list.

`MISSING_FEATURES` are reads that are not supported. A test fails if one of them succeeds, so the list can only shrink.
`KNOWN_DIFFERENCES` are reads of older tables whose expected rows show how the older version read or printed them.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

from attrs import frozen

from support.golden_tables import GoldenRead


@frozen
class ListedRead:
    """Reads by patterns of case and read name."""

    reason: str
    cases: tuple[str, ...]
    reads: str = "*"

    def names(self, read: GoldenRead) -> bool:
        """Whether the read is in the list."""
        return fnmatchcase(read.name, self.reads) and any(fnmatchcase(read.case, case) for case in self.cases)


MISSING_FEATURES = [
    ListedRead("file format json", ("format_json",)),
    ListedRead("VARIANT as its JSON text", ("types_variant_parquet",)),
    ListedRead("shredded VARIANT", ("variant_shredded",)),
]

KNOWN_DIFFERENCES = [
    ListedRead("its Spark showed TIMESTAMP(6) as an instant, with a Z; the values are equal", ("v07_append",)),
    ListedRead("level 0 of a table with deletion vectors is hidden; 0.7 showed it", ("v07_dv",), "snapshot-[1-5]"),
    ListedRead("read with the columns of the latest schema; 1.4.2 takes the snapshot's", ("v0?_evolve",), "snapshot-2"),
]


def find_missing_feature(read: GoldenRead) -> str | None:
    """Why this read is not supported; None if it is."""
    return next((listed.reason for listed in MISSING_FEATURES if listed.names(read)), None)


def find_known_difference(read: GoldenRead) -> str | None:
    """Why the expected rows differ from the current result; None if they are equal."""
    return next((listed.reason for listed in KNOWN_DIFFERENCES if listed.names(read)), None)
