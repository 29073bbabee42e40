"""Faults of a table, and the report that holds them.

Law: a fault names one thing, says what is wrong with it, which states it touches, and what can be done. A table without
faults is whole: every state that anything names can be read.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

import pyarrow as pa
from attrs import field, frozen


class FaultKind(Enum):
    """What kind of thing is wrong; the value is what one can do about it."""

    UNREADABLE = "restore the file from a copy; states that do not need it are not touched"
    MISSING = "restore the file from a copy, roll back to a state that does not need it, or expire those that do"
    SIZE = "the file was changed or cut after it was written: restore it from a copy"
    COUNT = "metadata contradict each other: roll back to an earlier state, or write the table anew from a read"
    GAP = "roll back to a snapshot before the gap, or expire the snapshots (or changelogs) before it"
    ASTRAY = "nothing to do: no state builds on it; remove_orphans takes it away once it is old enough"
    HINT = "nothing to do: readers find the way without it; the next commit or expiry writes it anew"
    LAYOUT = "compact the bucket in full; if the fault stays, write the table anew from a read"
    BEHIND = "reset the consumer to a snapshot that is there, or delete it"
    PLACE = "rows lie where readers do not look for their keys: write the table anew from a read"
    BOUNDS = "rows may be passed over: compact the manifests, or write the table anew from a read of everything"
    OUTSIDE = "pass allowed_roots=[…] if that place is to be trusted; else restore the metadata from a copy"
    UNCHECKED = "nothing: this library does not read such files, so it cannot tell"
    CONTENT = "the file does not hold what its metadata say: restore it from a copy, or compact without trusting it"

    @property
    def remedy(self) -> str:
        """What can be done."""
        return self.value

    @property
    def is_harmless(self) -> bool:
        """Whether every read answers rightly all the same."""
        return self in (FaultKind.ASTRAY, FaultKind.HINT, FaultKind.UNCHECKED, FaultKind.BEHIND)


def _names(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(values)


@frozen
class Fault:
    """One fault.

    Parameters
    ----------
    kind : FaultKind
    path : str
        The file, or the directory of the bucket, at fault.
    reason : str
        What is wrong with it.
    states : tuple of str
        What cannot be read rightly: ``snapshot 7``, ``tag release``, with the branch where it is not main.
    """

    kind: FaultKind
    path: str
    reason: str
    states: tuple[str, ...] = field(converter=_names, default=())

    def __str__(self) -> str:
        touched = f" [{', '.join(self.states)}]" if self.states else ""
        return f"{self.kind.name.lower()}: {self.path}: {self.reason}{touched}"


_SCHEMA = pa.schema(
    [("kind", pa.string()), ("path", pa.string()), ("reason", pa.string()), ("states", pa.list_(pa.string())),
     ("remedy", pa.string())]
)  # fmt: skip


def _faults(values: Iterable[Fault]) -> tuple[Fault, ...]:
    return tuple(values)


@frozen
class HealthReport:
    """What a check looked at, and what it found.

    Parameters
    ----------
    faults : tuple of Fault
        In the order in which they were found.
    states, manifests, files, rows : int
        How many were looked at: snapshots, tags and changelogs; manifests; data and index files; records (deep checks).
    """

    faults: tuple[Fault, ...] = field(converter=_faults)
    states: int = 0
    manifests: int = 0
    files: int = 0
    rows: int = 0

    @property
    def is_whole(self) -> bool:
        """Whether every state can be read rightly."""
        return all(fault.kind.is_harmless for fault in self.faults)

    def to_arrow(self) -> pa.Table:
        """The faults: `kind`, `path`, `reason`, `states`, `remedy`."""
        rows = [(f.kind.name.lower(), f.path, f.reason, list(f.states), f.kind.remedy) for f in self.faults]
        columns = list(zip(*rows, strict=True)) or [()] * len(_SCHEMA)
        return pa.Table.from_arrays(
            [pa.array(values, of.type) for values, of in zip(columns, _SCHEMA, strict=True)], schema=_SCHEMA
        )

    def __str__(self) -> str:
        looked = f"{self.states} states, {self.manifests} manifests, {self.files} files"
        looked += f", {self.rows} records" if self.rows else ""
        if not self.faults:
            return f"whole: {looked}"
        return "\n".join([f"{len(self.faults)} faults in {looked}", *map(str, self.faults)])
