"""Check that each data file, changelog file, index file and statistics file of a state exists with its recorded size.

Invariant: each directory is listed once, so that a check needs as many requests as there are buckets. A missing file is
reported with each state that it affects.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from paimon.domain.errors import PaimonError
from paimon.domain.maintenance.fault import Fault, FaultKind
from paimon.domain.maintenance.referenced_files_columnar import Mentions, ever_live, find_mentions
from paimon.domain.manifest.entries import FileKind
from paimon.domain.manifest.entry_columns import EntryColumns, Mask
from paimon.domain.paths import check_within, join_path
from paimon.domain.scan.bucket_paths import BucketPaths
from paimon.operations.fsck.metadata_checks import Group, Metadata
from paimon.operations.fsck.states import Findings, to_fault
from paimon.operations.metadata.index_manifest import index_path
from paimon.operations.table_context import TableContext

_ABSENT = "is referenced by the table but does not exist"
_PATH_COLUMNS = ("_FILE_NAME", "_FILE_SIZE", "_EXTERNAL_PATH", "_EXTRA_FILES")


class ReferenceCheck:
    """Check all files that the states in `findings` name, and add faults to `findings`."""

    def __init__(self, context: TableContext, findings: Findings, metadata: Metadata) -> None:
        self._context = context
        self._findings = findings
        self._metadata = metadata
        self._listed: dict[str, Mapping[str, int]] = {}
        self.files = 0

    def run(self) -> None:
        """Check all files."""
        self._check_data_files()
        self._check_index_files()
        for state in self._findings.states:
            name = state.snapshot.statistics
            if name is not None:
                path = state.context.paths.statistics(name)
                self._check_file(path, None, [state.name])

    def _check_data_files(self) -> None:
        manifests = self._metadata.manifests
        names = pa.array(sorted({n for c in manifests.values() for n in _list_names(c)}), pa.string())
        found_mentions = {name: find_mentions(columns, [len(columns)], names)[0] for name, columns in manifests.items()}
        live = self._find_live(found_mentions, len(names))
        needed = names.filter(pa.array(live))
        places = _find_places(manifests.values(), needed)
        buckets = BucketPaths.of(self._context.table)
        absent: list[tuple[str, str, str]] = []
        for done, (name, (partition, bucket, size, external)) in enumerate(places.items()):
            self.files += 1
            try:
                path = self._to_path(buckets, partition, bucket, name, external)
            except PaimonError as error:
                self._findings.faults.append(Fault(FaultKind.OUTSIDE, name, to_fault(error, name, ()).reason))
                continue
            actual = self._find_size(path)
            if actual is None:
                absent.append((name, path, _ABSENT))
            elif size is not None and actual != size:
                absent.append((name, path, f"has {actual} bytes; the metadata records {size}"))
            if done % 1000 == 0:
                self._context.engine.observer.progress("checking files", done + 1, len(places))
        self._report(absent)

    def _find_live(self, found_mentions: Mapping[str, Mentions], count: int) -> Mask:
        return ever_live(self._list_states(), found_mentions, count)

    def _list_states(self) -> list[frozenset[str]]:
        groups: list[Group] = [*self._metadata.contents.values(), *self._metadata.changes.values()]
        return [frozenset(m.file_name for m in group) for group in groups]

    def _report(self, absent: Sequence[tuple[str, str, str]]) -> None:
        """Report each file with the states that have it.

        There are few such files, so each state is searched for them alone.
        """
        if not absent:
            return
        names = pa.array([name for name, _, _ in absent], pa.string())
        found_mentions = {n: find_mentions(c, [len(c)], names)[0] for n, c in self._metadata.manifests.items()}
        affected: list[list[str]] = [[] for _ in absent]
        for groups in (self._metadata.contents, self._metadata.changes):
            for index, group in groups.items():
                has = ever_live([frozenset(m.file_name for m in group)], found_mentions, len(names))
                for at in np.flatnonzero(has).tolist():
                    affected[at].append(self._findings.states[index].name)
        for (_, path, reason), states in zip(absent, affected, strict=True):
            kind = FaultKind.MISSING if reason is _ABSENT else FaultKind.SIZE
            self._findings.faults.append(Fault(kind, path, reason, dict.fromkeys(states)))

    def _check_index_files(self) -> None:
        seen: dict[str, tuple[int | None, list[str]]] = {}
        for index, entries in self._metadata.indexes.items():
            state = self._findings.states[index]
            for entry in entries:
                source = state.context.paths.manifest(state.snapshot.index_manifest or "")
                try:
                    path = index_path(state.context.table, entry, source)
                except PaimonError as error:
                    fault = to_fault(error, source, [state.name])
                    self._findings.faults.append(Fault(FaultKind.OUTSIDE, fault.path, fault.reason, fault.states))
                    continue
                seen.setdefault(path, (entry.file_size, []))[1].append(state.name)
        for path, (size, states) in seen.items():
            self._check_file(path, size, states)

    def _check_file(self, path: str, size: int | None, states: Sequence[str]) -> None:
        self.files += 1
        actual = self._find_size(path)
        if actual is None:
            self._findings.faults.append(Fault(FaultKind.MISSING, path, _ABSENT, states))
        elif size is not None and actual != size:
            reason = f"has {actual} bytes; the metadata records {size}"
            self._findings.faults.append(Fault(FaultKind.SIZE, path, reason, states))

    def _to_path(self, buckets: BucketPaths, partition: bytes, bucket: int, name: str, external: str | None) -> str:
        if external is None:
            return join_path(buckets.directory(partition, bucket), name)
        return check_within(
            external,
            (self._context.table.location, *self._context.table.allowed_roots),
            self._context.paths.manifests,
        )

    def _find_size(self, path: str) -> int | None:
        directory, _, name = path.rpartition("/")
        if directory not in self._listed:
            files = [s for s in self._context.files.list(directory) if not s.is_directory]
            self._listed[directory] = {s.name: s.size for s in files}
        return self._listed[directory].get(name)


def _list_names(columns: EntryColumns) -> Iterable[str]:
    files = columns.files
    return [*files.field("_FILE_NAME").to_pylist(), *files.field("_EXTRA_FILES").flatten().to_pylist()]


def _find_places(
    manifests: Iterable[EntryColumns], needed: pa.StringArray
) -> dict[str, tuple[bytes, int, int | None, str | None]]:
    """Return for each needed file its partition, bucket, size (None for extra files) and external path."""
    wanted = set(needed.to_pylist())
    findings: dict[str, tuple[bytes, int, int | None, str | None]] = {}
    for columns in manifests:
        partitions = [columns.partition_rows[p] for p in columns.partitions.tolist()]
        parts = [columns.files.field(n).to_pylist() for n in _PATH_COLUMNS]
        rows = zip(columns.kinds.tolist(), partitions, columns.buckets.tolist(), *parts, strict=True)
        for kind, partition, bucket, name, size, external, extra in rows:
            if kind != int(FileKind.ADD):
                continue
            if name in wanted:
                findings[name] = (partition, bucket, size, external)
            external_directory = None if external is None else external.rpartition("/")[0]
            for other in extra or ():
                if other in wanted:
                    findings[other] = (
                        partition,
                        bucket,
                        None,
                        external_directory and join_path(external_directory, other),
                    )
    return findings
