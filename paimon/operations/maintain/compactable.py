"""Which tables can be compacted: what we would compact wrongly is refused by name.

Law: every feature that asks compaction for more than merging and moving files is refused until it is there.
"""

from __future__ import annotations

from paimon.domain.errors import Unsupported
from paimon.domain.merge.registry import engine_of
from paimon.domain.merge.spec import MergeSpec
from paimon.domain.options.table_options import TableOptions
from paimon.domain.options.validate import check_stored_options
from paimon.domain.schema.rules.layout import POSTPONED
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.schema.writable import check_rows_writable
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.read.deletion.index_manifest import deletion_files
from paimon.ports.engine import Engine

_HINT = "compact this table with Java's Paimon"
_KEY_INDEXES = ("pk-btree.index.columns", "pk-bitmap.index.columns", "pk-vector.index.columns",
                "pk-full-text.index.columns")  # fmt: skip
"""Indexes that Java builds as it compacts."""


def check_compactable(engine: Engine, table: TableDefinition, snapshot: Snapshot | None) -> None:
    """Refuse a table that compaction does not know how to treat.

    Raises
    ------
    Unsupported
        Naming the option, the BLOB column, or the deletion vectors that the snapshot holds.
    """
    check_rows_writable(table)
    check_stored_options(table.options.values, _KEY_INDEXES)
    asked = _keyed(table.options) if table.schema.primary_keys else ()
    for feature, used in (*_any(table.options), *asked):
        if used:
            raise Unsupported(f"compaction of a table with {feature}", hint=_HINT)
    if table.schema.primary_keys:
        engine_of(MergeSpec.of(table.schema, table.options))
    if not table.options.deletion_vectors_enabled and snapshot is not None and deletion_files(engine, table, snapshot):
        raise Unsupported("compaction of files that have deletion vectors", hint="set deletion-vectors.enabled to true")


def _any(options: TableOptions) -> tuple[tuple[str, bool], ...]:
    return (
        ("row-tracking.enabled", options.row_tracking_enabled),
        ("data-evolution.enabled", options.data_evolution_enabled),
        ("blob-field", bool(options.blob_fields)),
        ("clustering.incremental", (options.get("clustering.incremental") or "").strip().lower() == "true"),
    )


def _keyed(options: TableOptions) -> tuple[tuple[str, bool], ...]:
    return (
        ("sequence.snapshot-ordering", options.sequence_snapshot_ordering),
        ("pk-clustering-override", options.pk_clustering_override),
        (f"bucket {options.bucket}", options.bucket == POSTPONED),
    )
