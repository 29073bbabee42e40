"""Copy the state of a table at one snapshot to another place, with its schemas.

Invariant: a file is copied as it is, so that rows, row ids, deletion vectors and indexes are equal. The clone has one
snapshot, whose delta names all files; it has no tags, branches, consumers, changelogs and earlier snapshots.

Source: `CloneAction`, `CopyFilesProcedure`.
"""

# The clone is written to a branch of the new table, and published as a table that is created with rows
# (`filled_tables.py`): no reader sees it before its files are complete.
#
#     source   schema-0, schema-1, snapshot-7 -> base list, delta list -> live files, index files
#     clone    schema-0, schema-1, snapshot-1 -> (empty),   delta list -> the same files in one new manifest
#
# The manifests are new, because those of the source name deleted files, and files of other partitions if only some are
# cloned. Files keep their names, so a call that failed leaves copies that the next call finds complete. It does not
# delete them, because a concurrent call for the same target may use them, too.

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from attrs import evolve, frozen

from paimon.domain.commit.next_snapshot import delta_rows
from paimon.domain.errors import CorruptTable, InvalidRequest, NotFound
from paimon.domain.manifest.entries import DELETION_VECTORS, FileKind, IndexManifestEntry, ManifestEntry
from paimon.domain.paths import TablePaths, check_stored_segment, check_within, join_path
from paimon.domain.predicate.expression import Predicate
from paimon.domain.scan.bucket_paths import BucketPaths
from paimon.domain.scan.row_id_groups import count_rows
from paimon.domain.schema.table_schema import TableSchema, schema_to_json
from paimon.domain.snapshot.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind, Snapshot, snapshot_to_json
from paimon.domain.undo import undo_on_failure
from paimon.operations.commit.manifest_writer import ManifestWriter
from paimon.operations.compact.partition_condition import bind_partition_condition, match_partitions
from paimon.operations.metadata.manifests import index_path, read_data_manifests, read_index_manifest, read_live_entries
from paimon.operations.metadata.metadata_files import copy_stream, delete_files, put_file
from paimon.operations.metadata.schemas import load_schema, schema_ids
from paimon.operations.metadata.snapshots import latest_snapshot, load_live_or_tagged, load_tag, report_expired
from paimon.operations.table_context import TableContext
from paimon.ports.engine import Engine

_PLACES = ("path", "branch", "data-file.external-paths")
"""Options, and beginnings of options, that name places of the source."""


@frozen
class TableState:
    """The state of a table that is cloned: its schemas, and the files of one snapshot (None without one)."""

    schemas: tuple[TableSchema, ...]
    snapshot: Snapshot | None
    entries: tuple[ManifestEntry, ...] = ()
    index: tuple[IndexManifestEntry, ...] = ()
    is_whole: bool = True

    @property
    def file_names(self) -> frozenset[str]:
        """The names of the data and index files, which clones of the same state share."""
        return frozenset({e.file.file_name for e in self.entries} | {e.file_name for e in self.index})


@frozen
class ClonedTable:
    """What a clone copied, or would copy; bytes are those of data files."""

    source: str
    target: str
    snapshot_id: int | None = None
    files: int = 0
    bytes: int = 0
    rows: int = 0

    @classmethod
    def of(cls, state: TableState, source: str, target: str) -> ClonedTable:
        """Return the sizes of a state."""
        files = [e.file for e in state.entries]
        sizes = len(files), sum(f.file_size for f in files), count_rows(files)
        return cls(source, target, state.snapshot.id if state.snapshot else None, *sizes)


def read_table_state(
    context: TableContext, snapshot_id: int | None, tag: str | None, where: Predicate | None
) -> TableState:
    """Read what is cloned: at a snapshot, at a tag, or the latest state; `where` selects partitions."""
    if snapshot_id is not None and tag is not None:
        raise InvalidRequest("Both 'snapshot' and 'tag' are given.", subject="tag", hint="give one of them")
    if tag is not None:
        snapshot: Snapshot | None = load_tag(context, tag).snapshot
    else:
        snapshot = latest_snapshot(context) if snapshot_id is None else load_live_or_tagged(context, snapshot_id)
    is_past = snapshot is not None and (snapshot_id is not None or tag is not None)
    ids = schema_ids(context.engine, context.paths)
    last = snapshot.schema_id if snapshot is not None and is_past else ids[-1]
    schemas = tuple(_remove_path_options(load_schema(context.engine, context.paths, i)) for i in ids if i <= last)
    if snapshot is None:
        return TableState(schemas, None)
    with report_expired(context, snapshot.id):
        entries = read_live_entries(context, read_data_manifests(context, snapshot))
        index = read_index_manifest(context, snapshot.index_manifest) if snapshot.index_manifest else ()
    state = TableState(schemas, snapshot, tuple(entries), tuple(e for e in index if e.kind is FileKind.ADD))
    return state if where is None else _select_partitions(context, state, where)


def _remove_path_options(schema: TableSchema) -> TableSchema:
    return evolve(schema, options={k: v for k, v in schema.options.items() if not k.startswith(_PLACES)})


def _select_partitions(context: TableContext, state: TableState, where: Predicate) -> TableState:
    predicate = bind_partition_condition(context, where)
    partitions = list({e.partition for e in state.entries} | {e.partition for e in state.index})
    chosen = {p for p, match in zip(partitions, match_partitions(context, partitions, predicate), strict=True) if match}
    return evolve(
        state,
        entries=tuple(e for e in state.entries if e.partition in chosen),
        index=tuple(e for e in state.index if e.partition in chosen),
        is_whole=False,
    )


def put_schemas(engine: Engine, branch: TablePaths, schemas: Sequence[TableSchema]) -> None:
    """Write the schemas of the clone to its branch."""
    for schema in schemas:
        put_file(engine.files, branch.schema(schema.id), schema_to_json(schema))


def fill_clone(context: TableContext, source: TableContext, state: TableState) -> None:
    """Copy the files of a state into a new table, and give it its snapshot; of a failure only the copies remain."""
    if state.snapshot is None:
        return
    tasks = list(dict.fromkeys(_list_copies(context, source, state)))
    with report_expired(source, state.snapshot.id):
        copies = context.engine.executor.map(partial(_copy_file, source, context), tasks)
        for done, _ in enumerate(copies, 1):
            context.engine.observer.progress("copy files", done, len(tasks))
    writer = ManifestWriter(context)
    with undo_on_failure(lambda: delete_files(context.engine, [*writer.written])):
        snapshot = _write_manifests(context, writer, state)
        put_file(context.files, context.paths.snapshot(snapshot.id), snapshot_to_json(snapshot))
        for hint in (context.paths.earliest_hint, context.paths.latest_hint):
            context.files.replace(hint, str(snapshot.id).encode())


def _list_copies(context: TableContext, source: TableContext, state: TableState) -> Iterator[tuple[str, str]]:
    """Yield source and target of each file."""
    assert state.snapshot is not None
    old, new = BucketPaths.of(source.table), BucketPaths.of(context.table)
    where, roots = source.paths.snapshot(state.snapshot.id), source.table.roots
    for entry in state.entries:
        file = entry.file
        directory = old.directory(entry.partition, entry.bucket)
        if file.external_path is not None:
            directory = check_within(file.external_path, roots, where).rpartition("/")[0]
        target = new.directory(entry.partition, entry.bucket)
        for name in file.stored_names:
            check_stored_segment(name, where)
            yield join_path(directory, name), join_path(target, name)
    for index in state.index:
        yield (
            index_path(source.table, index, where),
            index_path(context.table, evolve(index, external_path=None), where),
        )
    if state.is_whole and state.snapshot.statistics is not None:
        name = state.snapshot.statistics
        yield source.paths.statistics(name, where), context.paths.statistics(name, where)


def _copy_file(source: TableContext, target: TableContext, task: tuple[str, str]) -> None:
    """Copy a file, unless an earlier or a concurrent call copied it."""
    path, copy = task
    there = target.files.status(copy)
    found = None if there is None else source.files.status(path)
    if there is not None and found is not None and found.size == there.size:
        return
    try:
        copy_stream(source.files, path, target.files, copy)
    except NotFound as error:
        raise CorruptTable(path, "does not exist") from error


def _write_manifests(context: TableContext, writer: ManifestWriter, state: TableState) -> Snapshot:
    """Write the manifests of the clone, and return its snapshot."""
    assert state.snapshot is not None
    entries = [evolve(e, kind=FileKind.ADD, file=evolve(e.file, external_path=None)) for e in state.entries]
    index = [evolve(e, external_path=None) for e in state.index]
    with writer.batch_small_files():
        base, delta = writer.write_manifest_list(()), writer.write_manifest_list(writer.write_manifests(entries))
        index_manifest = writer.write_index_manifest(index)
    rows, has_vectors = delta_rows(entries), any(e.index_type == DELETION_VECTORS for e in index)
    return evolve(
        state.snapshot,
        id=1,
        base_manifest_list=base.name,
        base_manifest_list_size=base.size,
        delta_manifest_list=delta.name,
        delta_manifest_list_size=delta.size,
        changelog_manifest_list=None,
        changelog_manifest_list_size=None,
        changelog_record_count=None,
        index_manifest=index_manifest,
        commit_kind=CommitKind.OVERWRITE if has_vectors else CommitKind.APPEND,
        commit_user=context.engine.ids.uuid(),
        commit_identifier=BATCH_COMMIT_IDENTIFIER,
        time_millis=context.engine.clock.now_millis(),
        total_record_count=rows,
        delta_record_count=rows,
        statistics=state.snapshot.statistics if state.is_whole else None,
        uuid=context.engine.ids.uuid(),
        operation=None,
        writer_version=None,
    )
