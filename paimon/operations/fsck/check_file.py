"""Check one data file of a state: the unit of a deep check, which any executor can run.

Invariant: the result depends on the file and its metadata only. What cannot be read is a fault of the result.
"""

from __future__ import annotations

from attrs import evolve, frozen

from paimon.domain.errors import PaimonError
from paimon.domain.maintenance.fault import Fault, FaultKind, FileReport
from paimon.domain.manifest.entries import IndexManifestEntry, ManifestEntry
from paimon.domain.scan.splits import DataSplit
from paimon.domain.schema.bucket_mode import BucketMode
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.types.data_types import DataType
from paimon.operations.data_files.read_data_file import Bucket
from paimon.operations.fsck.file_content import BucketPlacement, FileContent
from paimon.operations.fsck.hash_index_checks import HashPlacement, read_placement
from paimon.operations.fsck.states import to_fault
from paimon.operations.metadata.schemas import load_schema
from paimon.operations.table_context import TableContext


@frozen
class FileTask:
    """A data file to check."""

    entry: ManifestEntry
    path: str
    # the name of the state that references the file
    state: str
    # the hash index of its bucket; None if it has none
    index: IndexManifestEntry | None = None


def check_file(context: TableContext, task: FileTask) -> FileReport:
    """Compare a data file with its metadata; `context` is the table at the schema of the state that references it."""
    faults: list[Fault] = []
    content: FileContent | None = None
    try:
        content = _open_content(context, task)
        faults += [Fault(FaultKind.CONTENT, task.path, reason, [task.state]) for reason in content.faults()]
    except PaimonError as error:
        faults.append(to_fault(error, task.path, [task.state]))
        return FileReport(0, faults)
    if content.misplaced:
        reason = f"has {content.misplaced} rows whose key belongs in another bucket"
        faults.append(Fault(FaultKind.PLACE, task.path, reason, [task.state]))
    return FileReport(content.rows, faults)


def get_key_types(table: TableDefinition) -> list[DataType]:
    """Return the types of the key that orders the files; empty if no key does."""
    clustered = (table.options.get("pk-clustering-override") or "").strip().lower() == "true"
    return [] if clustered or not table.schema.primary_keys else [f.type for f in table.schema.key_fields]


def _open_content(context: TableContext, task: FileTask) -> FileContent:
    entry = task.entry
    directory = task.path.rpartition("/")[0]
    split = DataSplit(0, entry.partition, entry.bucket, entry.total_buckets, directory, (entry.file,))
    written = load_schema(context.engine, context.paths, entry.file.schema_id)
    at_schema = context.with_table(evolve(context.table, schema=written))
    keys = written.key_fields if get_key_types(context.table) and entry.bucket >= 0 else ()
    return FileContent(Bucket.of(at_schema, split), entry.file, keys, _find_placement(context, at_schema, task))


def _find_placement(
    context: TableContext, at_schema: TableContext, task: FileTask
) -> BucketPlacement | HashPlacement | None:
    entry = task.entry
    placement = BucketPlacement.of(at_schema.table, entry)
    is_dynamic = context.table.bucket_mode is BucketMode.DYNAMIC
    if placement is None and is_dynamic and entry.total_buckets < 1 and entry.bucket >= 0:
        return read_placement(context, task.index)
    return placement
