"""Planning a read: which files to read, in which splits.

Law: stage by stage, each a pure function over what the stage before left; only manifests that may matter are read,
and objects are built only for files that survive. Source: `AbstractFileStoreScan`, `SnapshotReaderImpl`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from attrs import frozen

from paimon.domain.manifest.columns import EntryColumns, Integers, Mask, entry_columns
from paimon.domain.manifest.entries import ManifestFileMeta
from paimon.domain.manifest.merge import check_once, live_mask
from paimon.domain.paths import check_within
from paimon.domain.predicate.expression import Predicate
from paimon.domain.predicate.transform import columns_of, only_columns
from paimon.domain.scan.assemble import BucketFiles, by_bucket, splits_of
from paimon.domain.scan.bucket_paths import BucketPaths
from paimon.domain.scan.file_stats import key_mask, value_mask
from paimon.domain.scan.plan import Plan, PruneStep, ScanKind, ScanRequest
from paimon.domain.scan.prune import (
    bucket_keys_asked,
    bucket_mask,
    check_partitions,
    count_buckets,
    count_partitions,
    entry_signs,
    manifests_of_buckets,
    manifests_to_read,
    partition_mask,
)
from paimon.domain.scan.read_rules import ReadRules
from paimon.domain.scan.splits import DataSplit
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.read.deletion.index_manifest import deletion_files
from paimon.operations.read.manifests import (
    data_manifests,
    read_delta_list,
    read_manifest_columns,
    read_manifest_list,
)
from paimon.operations.read.schemas import load_schemas
from paimon.operations.undisturbed import undisturbed
from paimon.ports.engine import Engine


@frozen(eq=False)
class _Asked:
    """A request for one snapshot, with what every stage needs, and the steps taken so far."""

    engine: Engine
    table: TableDefinition
    request: ScanRequest
    snapshot: Snapshot
    rules: ReadRules
    steps: list[PruneStep]

    @property
    def predicate(self) -> Predicate | None:
        return self.request.predicate

    def only(self, names: tuple[str, ...]) -> Predicate | None:
        """What the predicate demands of these columns alone."""
        return None if self.predicate is None else only_columns(self.predicate, names)

    def kept(
        self,
        name: str,
        entries: EntryColumns,
        mask: Mask,
        count: Callable[[EntryColumns, Integers], int] | None = None,
    ) -> EntryColumns:
        """The entries that the mask selects, noted as a step that counts files, or what `count` does."""
        left = entries.where(mask)
        signs, left_signs = (entry_signs(e, whole=self.request.kind is ScanKind.ALL) for e in (entries, left))
        before, after = (
            int((s > 0).sum()) if count is None else count(e, s) for e, s in ((entries, signs), (left, left_signs))
        )
        self.steps.append(PruneStep(name, before, after, int((left.number("_FILE_SIZE") * left_signs).sum())))
        return left


def plan(engine: Engine, table: TableDefinition, request: ScanRequest) -> Plan:
    """The splits to read for a request, and how they were found.

    Raises
    ------
    CorruptTable, Unsupported
        Naming the manifest at fault.
    """
    if request.snapshot is None:
        return Plan(None, table.schema.id)
    rules = ReadRules.of(table, request.kind)
    asked = _Asked(engine, table, request, request.snapshot, rules, [])
    entries = _live_entries(asked, _manifests(asked))
    entries, matching = _pruned_by_stats(asked, entries)
    check_once(entries)
    with undisturbed():
        splits = _splits(asked, by_bucket(entries, matching))
    files = sum(len(split.files) for split in splits)
    asked.steps.append(PruneStep("files", len(entries), files, sum(split.file_size for split in splits)))
    return Plan(request.snapshot, table.schema.id, splits, tuple(asked.steps))


def _manifests(asked: _Asked) -> tuple[ManifestFileMeta, ...]:
    """The manifests that may name a file of interest."""
    found = _listed(asked)
    schema, buckets = asked.table.schema, asked.request.buckets
    left = manifests_to_read(found, asked.only(schema.partition_keys), schema.partition_fields)
    if buckets is not None:
        left = manifests_of_buckets(left, buckets)
    asked.steps.append(PruneStep("manifests", len(found), len(left), sum(m.file_size for m in left)))
    return left


def _listed(asked: _Asked) -> tuple[ManifestFileMeta, ...]:
    engine, table, snapshot = asked.engine, asked.table, asked.snapshot
    if asked.request.kind is ScanKind.ALL:
        return data_manifests(engine, table, snapshot)
    if asked.request.kind is ScanKind.DELTA:
        return read_delta_list(engine, table, snapshot)
    name, size = snapshot.changelog_manifest_list, snapshot.changelog_manifest_list_size
    return () if name is None else read_manifest_list(engine, table, name, size)


def _live_entries(asked: _Asked, manifests: tuple[ManifestFileMeta, ...]) -> EntryColumns:
    """The live files of selected partitions and buckets; what deletes a file lies in the same partition and bucket."""
    table, request = asked.table, asked.request
    names = [m.file_name for m in manifests]
    entries = entry_columns(read_manifest_columns(asked.engine, table, names, manifests))
    fields = table.schema.partition_fields
    check_partitions(entries.partition_rows, len(fields), table.paths.manifests)
    partitions = asked.only(table.schema.partition_keys)
    if partitions is not None:
        entries = asked.kept("partitions", entries, partition_mask(entries, partitions, fields), count_partitions)
    entries = _of_buckets(asked, entries)
    entries = asked.kept("live files", entries, live_mask(entries))
    hidden = asked.rules.hides_level_0 and not request.shows_level_0
    lowest = max(request.min_level, 1 if hidden else 0)
    if lowest:
        entries = asked.kept("levels", entries, entries.number("_LEVEL") >= lowest)
    if request.made_since_millis is not None:
        entries = asked.kept("ages", entries, entries.number("_CREATION_TIME") >= request.made_since_millis)
    return entries


def _of_buckets(asked: _Asked, entries: EntryColumns) -> EntryColumns:
    schema, options = asked.table.schema, asked.table.options
    mask = np.ones(len(entries), dtype=bool)
    if asked.request.buckets is not None:
        mask &= np.isin(entries.buckets, sorted(asked.request.buckets))
    if asked.request.kind is ScanKind.ALL:
        mask &= entries.buckets >= 0
    fields = [schema.field_of(name) for name in schema.bucket_keys] if options.bucket > 0 else []
    keys = None if asked.predicate is None else bucket_keys_asked(asked.predicate, fields)
    if keys is not None:
        mask &= bucket_mask(entries, keys, [f.type for f in fields], options.bucket_function)
    return entries if bool(mask.all()) else asked.kept("buckets", entries, mask, count_buckets)


def _pruned_by_stats(asked: _Asked, entries: EntryColumns) -> tuple[EntryColumns, Mask | None]:
    """The files that keys leave, and which of them values leave (which decide together with a file's neighbours)."""
    if asked.predicate is None or not len(entries):
        return entries, None
    schema = asked.table.schema
    schemas = _schemas(asked, entries)
    keys = asked.only(schema.trimmed_primary_keys)
    if keys is not None:
        entries = asked.kept("key statistics", entries, key_mask(entries, keys, schema, schemas))
    if not asked.rules.prunes_values or columns_of(asked.predicate) <= {*schema.trimmed_primary_keys}:
        return entries, None  # the statistics of keys said it
    matching = value_mask(entries, asked.predicate, schema, schemas)
    if asked.rules.merges:
        return entries, matching
    return asked.kept("value statistics", entries, matching), None


def _schemas(asked: _Asked, entries: EntryColumns) -> dict[int, TableSchema]:
    own = asked.table.schema
    ids = set(np.unique(entries.number("_SCHEMA_ID")).tolist()) - {own.id}
    return {own.id: own, **load_schemas(asked.engine, asked.table.paths, ids)}


def _splits(asked: _Asked, buckets: list[BucketFiles]) -> tuple[DataSplit, ...]:
    table = asked.table
    directories = BucketPaths.of(table)
    vectors = deletion_files(asked.engine, table, asked.snapshot) if asked.request.kind is ScanKind.ALL else {}
    splits: list[DataSplit] = []
    for bucket in buckets:
        _check_places(table, bucket)
        directory = directories.directory(bucket.partition, bucket.bucket)
        held = vectors.get((bucket.partition, bucket.bucket), {})
        splits.extend(splits_of(asked.snapshot.id, bucket, asked.rules, directory, held))
    return tuple(splits)


def _check_places(table: TableDefinition, bucket: BucketFiles) -> None:
    for file in bucket.files:
        if file.external_path is not None:
            check_within(file.external_path, (table.location, *table.allowed_roots), table.paths.manifests)
