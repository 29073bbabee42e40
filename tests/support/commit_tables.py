"""A small table whose data files are only names. A committer needs no more."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import evolve

from paimon.adapters.cache import LruCache
from paimon.adapters.effects import RandomIds, SystemClock, SystemRandom
from paimon.adapters.executors.local import SerialExecutor
from paimon.adapters.formats.parquet import ParquetFormat
from paimon.adapters.formats.records import AvroRecordIO
from paimon.adapters.observers import SilentObserver
from paimon.adapters.snapshots.commits import PutIfAbsentSnapshotCommit
from paimon.adapters.temp.local import LocalTempStore
from paimon.domain.commit.message import CommitMessage, CompactIncrement, DataIncrement
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.options.table_options import TableOptions
from paimon.domain.paths import TablePaths
from paimon.domain.row.binary_row import serialize
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.schema.table_schema import TableSchema, schema_to_json
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.domain.types.data_types import BigIntType, DataField, IntType
from paimon.operations.commit.base import CommitBase
from paimon.operations.metadata.manifests import read_manifest, read_manifest_list
from paimon.operations.metadata.snapshots import latest_snapshot, snapshot_ids, snapshots
from paimon.operations.table_context import TableContext
from paimon.ports.effects import Clock, Ids, Random
from paimon.ports.engine import Engine
from paimon.ports.files import FileIO
from paimon.testing.memory_files import MemoryFiles

ROWS = 10
"""Rows of every file made here."""


def engine_on(
    files: FileIO, clock: Clock | None = None, ids: Ids | None = None, random: Random | None = None
) -> Engine:
    """An engine on these files. Each call is another process (its own cache)."""
    return Engine(
        files=files,
        formats={"parquet": ParquetFormat()},
        records=AvroRecordIO(),
        snapshots=PutIfAbsentSnapshotCommit(files),
        clock=clock or SystemClock(),
        ids=ids or RandomIds(),
        random=random or SystemRandom(),
        executor=SerialExecutor(),
        temp=LocalTempStore(),
        observer=SilentObserver(),
        cache=LruCache(),
    )


def table_at(
    root: str, *, partitioned: bool = False, keyed: bool = False, options: Mapping[str, str] | None = None
) -> TableDefinition:
    """The definition of a table (p INT, id BIGINT) at a path."""
    fields = (DataField(0, "p", IntType()), DataField(1, "id", BigIntType(nullable=False)))
    schema = TableSchema(
        id=0,
        fields=fields,
        highest_field_id=1,
        partition_keys=("p",) if partitioned else (),
        primary_keys=(("p", "id") if partitioned else ("id",)) if keyed else (),
        options=dict(options or {}),
    )
    return TableDefinition("d.t", TablePaths(root), schema, TableOptions.of(schema.options))


def create(engine: Engine, table: TableDefinition) -> None:
    """Write the table's schema file."""
    engine.files.put_if_absent(table.paths.schema(0), schema_to_json(table.schema))


def memory_table(
    *, partitioned: bool = False, keyed: bool = False, options: Mapping[str, str] | None = None
) -> tuple[Engine, TableDefinition]:
    """An engine in memory with a new table."""
    engine = engine_on(MemoryFiles())
    table = table_at("/lake/t", partitioned=partitioned, keyed=keyed, options=options)
    create(engine, table)
    return engine, table


def data_file(name: str, level: int = 0, low: int = 0, high: int = 0) -> DataFileMeta:
    """A file whose key range is `low` to `high`."""
    return DataFileMeta(name, 100, ROWS, min_key=key(low), max_key=key(high), level=level)


def key(value: int) -> bytes:
    """A key row."""
    return serialize((value,), [BigIntType(nullable=False)])


def partition(value: int | None) -> bytes:
    """A partition row. None means no partition columns."""
    return bytes(12) if value is None else serialize((value,), [IntType()])


def message(
    table: TableDefinition,
    files: Iterable[str | DataFileMeta] = (),
    *,
    part: int | None = None,
    bucket: int = 0,
    total_buckets: int = 1,
    data: DataIncrement | None = None,
    compact: CompactIncrement | None = None,
) -> CommitMessage:
    """The commit message of a writer of one bucket."""
    metas = tuple(data_file(f) if isinstance(f, str) else f for f in files)
    directory = f"{table.location}/" + ("" if part is None else f"p={part}/") + f"bucket-{bucket}"
    increment = data or DataIncrement(new_files=metas)
    empty = CompactIncrement()
    return CommitMessage(partition(part), bucket, total_buckets, directory, increment, compact or empty)


def live_names(engine: Engine, table: TableDefinition) -> list[str]:
    """Names of the live files, sorted; "name@level" above level 0."""
    base = CommitBase(TableContext(engine, table), latest_snapshot(TableContext(engine, table)))
    files = (entry.file for entry in base.read_live_files(lambda _: True))
    return sorted(f"{f.file_name}@{f.level}" if f.level else f.file_name for f in files)


def check_table(engine: Engine, table: TableDefinition) -> Snapshot | None:
    """The table is consistent: ids without gaps, correct counts, every manifest readable."""
    ids = snapshot_ids(TableContext(engine, table))
    assert list(ids) == list(range(ids[0], ids[-1] + 1)) if ids else True
    for snapshot in snapshots(TableContext(engine, table)):
        live = CommitBase(TableContext(engine, table), snapshot).read_live_files(lambda _: True)
        assert snapshot.total_record_count == ROWS * len(live)
    return latest_snapshot(TableContext(engine, table))


def list_referenced_files(engine: Engine, table: TableDefinition) -> set[str]:
    """Paths of all files that the existing snapshots reference."""
    paths = {table.paths.schema(0), table.paths.latest_hint}
    for snapshot in snapshots(TableContext(engine, table)):
        lists = (snapshot.base_manifest_list, snapshot.delta_manifest_list)
        metas = [m for name in lists for m in read_manifest_list(TableContext(engine, table), name)]
        paths |= {table.paths.snapshot(snapshot.id), *(table.paths.manifest(n) for n in lists)}
        paths |= {table.paths.manifest(m.file_name) for m in metas}
        assert all(read_manifest(TableContext(engine, table), m.file_name) for m in metas)
    return paths


def as_another_process(engine: Engine, files: FileIO | None = None) -> Engine:
    """The same engine in another process: an empty cache, optionally other files."""
    used = files or engine.files
    return evolve(engine, files=used, snapshots=PutIfAbsentSnapshotCommit(used), cache=LruCache())
