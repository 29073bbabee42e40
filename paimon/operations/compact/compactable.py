"""Check which tables can be compacted.

Invariant: a table with a feature that compaction does not support is refused, and the error names the feature.
"""

from __future__ import annotations

from paimon.domain.errors import Unsupported
from paimon.domain.merge.merge_engines import get_merge_engine
from paimon.domain.merge.merge_spec import MergeSpec
from paimon.domain.options.table_options import TableOptions
from paimon.domain.options.validate import check_stored_options
from paimon.domain.schema.writable import check_rows_writable
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.metadata.manifests import find_deletion_files
from paimon.operations.table_context import TableContext

_JAVA_HINT = "compact this table with Java's Paimon"
_KEY_INDEXES = (
    "pk-btree.index.columns",
    "pk-bitmap.index.columns",
    "pk-vector.index.columns",
    "pk-full-text.index.columns",
)
"""Options of indexes that Java builds during a compaction."""


def check_compactable(context: TableContext, snapshot: Snapshot | None) -> None:
    """Raise `Unsupported` if compaction does not support the table or the deletion vectors of the snapshot."""
    check_rows_writable(context.table)
    check_stored_options(context.options.values, _KEY_INDEXES)
    key_features = _list_key_features(context.options) if context.schema.primary_keys else ()
    for feature, is_used in (*_list_table_features(context.options), *key_features):
        if is_used:
            raise Unsupported(f"compaction of a table with {feature}", hint=_JAVA_HINT)
    if context.schema.primary_keys:
        get_merge_engine(MergeSpec.of(context.schema, context.options))
    has_vectors = snapshot is not None and any(find_deletion_files(context, snapshot).values())
    if has_vectors and not context.options.deletion_vectors_enabled:
        raise Unsupported(
            "compaction of files that have deletion vectors", hint="set option 'deletion-vectors.enabled' to 'true'"
        )


def _list_table_features(options: TableOptions) -> tuple[tuple[str, bool], ...]:
    return (
        ("row-tracking.enabled", options.row_tracking_enabled),
        ("data-evolution.enabled", options.data_evolution_enabled),
        ("blob-field", bool(options.blob_fields)),
        ("clustering.incremental", (options.get("clustering.incremental") or "").strip().lower() == "true"),
    )


def _list_key_features(options: TableOptions) -> tuple[tuple[str, bool], ...]:
    return (
        ("sequence.snapshot-ordering", options.sequence_snapshot_ordering),
        ("pk-clustering-override", options.pk_clustering_override),
    )
