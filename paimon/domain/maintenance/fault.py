"""Faults of a table, and the report that contains them.

Invariant: A fault names one object, the problem, the affected states, and the remedy. If a table has no faults, each
state that a snapshot, tag or changelog names can be read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from enum import Enum

import pyarrow as pa
from attrs import field, frozen

from paimon.domain.markup import format_count
from paimon.domain.report import CardDisplay, Grid, Report
from paimon.domain.text_layout import TextColumn


class FaultKind(Enum):
    """The kind of a fault; the value is the remedy."""

    UNREADABLE = "restore the file from a backup; states that do not reference it are not affected"
    MISSING = "restore the file from a backup, roll back to a state that does not reference it, or expire those that do"
    SIZE = "the file was changed or truncated after it was written: restore it from a backup"
    COUNT = "the metadata contradict each other: roll back to an earlier state, or copy the rows into a new table"
    GAP = "roll back to a snapshot before the gap, or expire the snapshots (or changelogs) before it"
    DETACHED = "no action needed: no state uses it; remove_orphans deletes it when it is old enough"
    HINT = "no action needed: readers do not depend on it; the next commit or expiry writes it again"
    LAYOUT = "run a full compaction of the bucket; if the fault remains, copy the rows into a new table"
    BEHIND = "reset the consumer to an existing snapshot, or delete it"
    PLACE = "lookups by key can miss rows: copy the rows into a new table"
    BOUNDS = "reads can miss rows: copy all rows into a new table, or run CALL sys.compact_manifest with Java"
    TYPE = "reads return other values, and a compaction keeps only those: change the type of the column back"
    OUTSIDE = "pass allowed_roots=[…] if the location is trusted; otherwise restore the metadata from a backup"
    UNCHECKED = "no action possible: this library does not read such files"
    CONTENT = "the content differs from the metadata: restore the file from a backup, or compact without trusting it"

    @property
    def remedy(self) -> str:
        """The action that repairs the fault."""
        return self.value

    @property
    def is_harmless(self) -> bool:
        """True if all reads are correct in spite of the fault."""
        return self in (FaultKind.DETACHED, FaultKind.HINT, FaultKind.UNCHECKED, FaultKind.BEHIND)


def _to_tuple(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(values)


@frozen
class Fault:
    """A fault that a check of a table found."""

    kind: FaultKind
    # the file with the fault, or the directory of the bucket
    path: str
    reason: str
    # what cannot be read correctly: `snapshot 7`, `tag release`, with the branch if it is not main
    states: tuple[str, ...] = field(converter=_to_tuple, default=())

    def __str__(self) -> str:
        touched = f" [{', '.join(self.states)}]" if self.states else ""
        return f"{self.kind.name.lower()}: {self.path}: {self.reason}{touched}"


def _to_faults(values: Iterable[Fault]) -> tuple[Fault, ...]:
    return tuple(values)


_SCHEMA = pa.schema(
    [("kind", pa.string()), ("path", pa.string()), ("reason", pa.string()), ("states", pa.list_(pa.string())),
     ("remedy", pa.string())]
)  # fmt: skip


@frozen
class FileReport:
    """The result of a check of one data file."""

    # the number of checked records
    rows: int
    faults: tuple[Fault, ...] = field(converter=_to_faults, default=())

    def to_json(self) -> str:
        """Return the report as JSON, in which it travels between processes."""
        return json.dumps([self.rows, [(f.kind.name, f.path, f.reason, f.states) for f in self.faults]])

    @classmethod
    def from_json(cls, text: str) -> FileReport:
        """Return the report that `to_json` wrote."""
        rows, faults = json.loads(text)
        return cls(rows, [Fault(FaultKind[kind], path, reason, states) for kind, path, reason, states in faults])


@frozen
class HealthReport(CardDisplay):
    """The result of a check of a table: faults in the order of detection, and counts of what was checked."""

    faults: tuple[Fault, ...] = field(converter=_to_faults)
    # the number of checked snapshots, tags and changelogs
    states: int = 0
    manifests: int = 0
    # the number of checked data and index files
    files: int = 0
    # the number of checked records; 0 unless the check is deep
    rows: int = 0

    @property
    def is_whole(self) -> bool:
        """True if each state can be read correctly."""
        return all(fault.kind.is_harmless for fault in self.faults)

    def to_arrow(self) -> pa.Table:
        """Return the faults as a table: `kind`, `path`, `reason`, `states` (list of string) and `remedy`."""
        rows = [(f.kind.name.lower(), f.path, f.reason, list(f.states), f.kind.remedy) for f in self.faults]
        columns = list(zip(*rows, strict=True)) or [()] * len(_SCHEMA)
        return pa.Table.from_arrays(
            [pa.array(values, of.type) for values, of in zip(columns, _SCHEMA, strict=True)], schema=_SCHEMA
        )

    @property
    def summary(self) -> str:
        """The number of checked objects, in one line."""
        counts = {"state": self.states, "manifest": self.manifests, "file": self.files}
        counts |= {"record": self.rows} if self.rows else {}
        return ", ".join(format_count(count, noun) for noun, count in counts.items())

    def _report(self) -> Report:
        texts = {
            "kind": [f.kind.name.lower() for f in self.faults],
            "path": [f.path for f in self.faults],
            "reason": [f.reason for f in self.faults],
            "states": [", ".join(f.states) for f in self.faults],
            "remedy": [f.kind.remedy for f in self.faults],
        }
        grid = Grid(tuple(TextColumn(name, False, tuple(cells)) for name, cells in texts.items()))
        title = "whole" if self.is_whole else "not whole"
        facts = [("checked", self.summary), ("faults", f"{len(self.faults):,}" if self.faults else "none")]
        return Report(title, "Health report", facts, (grid,) if self.faults else ())

    def __str__(self) -> str:
        if not self.faults:
            return f"whole: {self.summary}"
        head = f"{format_count(len(self.faults), 'fault')} in {self.summary}"
        return "\n".join([head, *map(str, self.faults)])
