"""What there is to do in one bucket: decided by the table's options and the bucket's live files alone.

Law: deciding reads no data; whoever asks (a writer, a compactor, a task elsewhere) is answered the same. Source:
`MergeTreeCompactManager.triggerCompaction`, `AppendCompactCoordinator`.
"""

from __future__ import annotations

from collections.abc import Collection

from attrs import evolve, frozen

from paimon.domain.lsm.compaction.pick import pick, pick_full
from paimon.domain.lsm.compaction.rules import CompactionRules
from paimon.domain.lsm.compaction.tree import MergeTree
from paimon.domain.lsm.compaction.unit_plan import UnitPlan, unit_plan
from paimon.domain.lsm.expiry.rule import RecordExpiry
from paimon.domain.maintenance.small_files import Pack, PackRules, marked_files, packs
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.paths import check_within
from paimon.domain.scan.assemble import BucketFiles
from paimon.domain.scan.bucket_paths import BucketPaths
from paimon.domain.schema.table_definition import TableDefinition
from paimon.operations.deletion.index_files import BucketVectors
from paimon.operations.read.schemas import load_schemas
from paimon.ports.engine import Engine

_HOUR_MILLIS = 3_600_000


@frozen
class BucketWork:
    """What to do in one bucket: a unit of a merge tree, or packs of an append table's files.

    `vectors` are the bucket's deletion vectors when this was decided; None: whoever does the work looks for them.
    """

    partition: bytes
    bucket: int
    total_buckets: int
    directory: str
    unit: UnitPlan | None = None
    packs: tuple[Pack, ...] = ()
    vectors: BucketVectors | None = None

    @property
    def rewritten(self) -> tuple[DataFileMeta, ...]:
        """The files that are read and replaced."""
        return (*(self.unit.rewritten if self.unit else ()), *(f for pack in self.packs for f in pack))

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return not self.rewritten and not (self.unit and self.unit.upgrades)

    def outdates(self, schema_id: int) -> bool:
        """Whether files of a newer schema are among those replaced: this schema knows not all of their columns."""
        taken = (*self.rewritten, *(self.unit.upgrades if self.unit else ()))
        return any(f.schema_id > schema_id for f in taken)


def work_of(
    engine: Engine,
    table: TableDefinition,
    bucket: BucketFiles,
    full: bool,
    idle_triggers: int = 0,
    vectors: BucketVectors | None = None,
) -> BucketWork:
    """What to do in a bucket with these live files; `is_empty` where nothing asks for it.

    Parameters
    ----------
    bucket : BucketFiles
        All live files of the bucket.
    full : bool
        Everything into one run, rather than what the table's options ask for.
    idle_triggers : int
        How often the same writer asked for this bucket since level 0 was last forced up, and nothing was to do:
        `lookup-compact = gentle` waits for some of them.
    vectors : BucketVectors, optional
        The bucket's deletion vectors.
    """
    for file in bucket.files:
        if file.external_path is not None:
            check_within(file.external_path, (table.location, *table.allowed_roots), table.paths.manifests)
    directory = BucketPaths.of(table).directory(bucket.partition, bucket.bucket)
    keyed = bool(table.schema.primary_keys)
    marked = marked_files(vectors.held) if vectors is not None else {}
    return BucketWork(
        bucket.partition,
        bucket.bucket,
        bucket.total_buckets,
        directory,
        unit=_unit(engine, table, bucket, full, idle_triggers, marked) if keyed else None,
        packs=() if keyed else packs(bucket.files, PackRules.of(table.options, full), marked),
        vectors=vectors,
    )


def _unit(
    engine: Engine,
    table: TableDefinition,
    bucket: BucketFiles,
    full: bool,
    idle_triggers: int,
    marked: Collection[str],
) -> UnitPlan | None:
    now = engine.clock.now_millis()
    rules = _with_expiry(engine, table, bucket, CompactionRules.of(table.options), now)
    tree = MergeTree.of(bucket.files, rules.levels)
    local = now + engine.clock.local_offset_millis(now)
    hour = local // _HOUR_MILLIS % 24
    unit = pick_full(tree, rules, {*marked, *rules.expired}) if full else pick(tree, rules, local, hour, idle_triggers)
    return None if unit is None else unit_plan(tree, unit, rules, [f.type for f in table.schema.key_fields])


def _with_expiry(
    engine: Engine, table: TableDefinition, bucket: BucketFiles, rules: CompactionRules, now_millis: int
) -> CompactionRules:
    """The rules, with the records that are too old at this moment and the files that hold some."""
    expiry = RecordExpiry.of(table.schema, table.options, now_millis)
    if expiry is None:
        return rules
    schemas = load_schemas(engine, table.paths, (f.schema_id for f in bucket.files))
    expired = frozenset(f.file_name for f in bucket.files if expiry.touches(f, schemas[f.schema_id]))
    return evolve(rules, expiry=expiry, expired=expired)
