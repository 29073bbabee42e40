"""Strict mode: what others did since the last snapshot that a job knows to be safe.

Law: asked for by `commit.strict-mode.last-safe-snapshot`; reads the deltas of the snapshots after it, and none
without the option. Source: `StrictModeChecker`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from paimon.domain.manifest.entries import ManifestEntry
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.read.manifests import read_manifest, read_manifest_list
from paimon.operations.read.snapshots import find_snapshot
from paimon.ports.engine import Engine


def since_safe(
    engine: Engine, table: TableDefinition, latest: Snapshot | None
) -> Iterator[tuple[Snapshot, Sequence[ManifestEntry]]]:
    """The snapshots after the safe one up to `latest`, each with the entries of its delta."""
    safe = table.options.commit_strict_mode_last_safe_snapshot
    if safe is None or safe < 0 or latest is None:
        return
    for snapshot_id in range(safe + 1, latest.id + 1):
        snapshot = find_snapshot(engine, table.paths, snapshot_id)
        if snapshot is not None:
            metas = read_manifest_list(engine, table, snapshot.delta_manifest_list)
            yield snapshot, [e for m in metas for e in read_manifest(engine, table, m.file_name)]
