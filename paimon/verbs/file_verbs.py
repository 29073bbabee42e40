"""The verbs that rewrite, drop, check and delete files of a table, and those of a catalog."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from paimon.domain.errors import InvalidRequest, PaimonError
from paimon.domain.maintenance.fault import HealthReport
from paimon.domain.maintenance.sort_order import NO_STRATEGY, STRATEGIES
from paimon.domain.stats.table_statistics import ColumnStatistics
from paimon.domain.text_checks import match_whole
from paimon.operations.analyze import Analyzed
from paimon.operations.compact.compact import CompactResult
from paimon.operations.compact.compact_manifests import ManifestsCompacted
from paimon.operations.maintenance.purge import Purged
from paimon.operations.rescale.rescale import RescaleResult
from paimon.verbs.arguments import PARTITIONS_HELP, Partitions, Time, choose_condition, parse_assignments, to_moment
from paimon.verbs.expiry_verbs import AGE_HELP
from paimon.verbs.verb import (
    Column,
    Command,
    Confirmation,
    Flag,
    Parameter,
    Rows,
    Type,
    Verb,
    VerbCatalog,
    VerbTable,
    keep_rows,
)


def compact(  # noqa: PLR0913, PLR0917  (the parameters of Java's procedure)
    table: VerbTable,
    partitions: str | None,
    order_strategy: str,
    where: str | None,
    options: str,
    compact_strategy: str,
    order_by: Sequence[str] | None,
    dry_run: bool,
) -> CompactResult:
    """Merge the files of a table, or of partitions."""
    if compact_strategy not in ("full", "minor"):
        raise InvalidRequest(
            f"Compact strategy {compact_strategy!r} is not known.", subject=compact_strategy, hint="full or minor"
        )
    given = parse_assignments(options, "options")
    changed = table.with_options(given) if given else table
    condition = choose_condition(partitions, where)
    full = compact_strategy == "full"
    return changed.compact(full, condition, order_strategy=order_strategy, order_by=order_by, dry_run=dry_run)


def rescale(table: VerbTable, buckets: int, partitions: str | None, where: str | None, dry_run: bool) -> RescaleResult:
    """Rewrite a table, or partitions, to another number of buckets."""
    return table.rescale(buckets, choose_condition(partitions, where), dry_run=dry_run)


def drop_partitions(table: VerbTable, partitions: Partitions) -> Rows:
    """Drop partitions in one commit."""
    ids = table.drop_partitions(*partitions)
    text = ", ".join(",".join(f"{key}={value}" for key, value in spec.items()) for spec in partitions)
    return [{"snapshot": _first(ids), "partitions": text, "snapshots": list(ids)}]


def remove_orphan_files(table: VerbTable, older_than: Time, dry_run: bool, allow_young: bool) -> pa.Table:
    """Delete the files that no snapshot, tag or changelog references, or list them."""
    return table.maintain.remove_orphans(to_moment(older_than), dry_run=dry_run, allow_young=allow_young)


def compact_database(
    catalog: VerbCatalog,
    including_databases: str,
    including_tables: str,
    excluding_tables: str | None,
    options: str,
    where: str | None,
    compact_strategy: str,
) -> Rows:
    """Compact the tables of a catalog whose names match regular expressions; a failure does not stop the others."""
    names = pa.array(list(catalog), pa.string())
    databases = pa.array([name.partition(".")[0] for name in names.to_pylist()], pa.string())
    wanted = pc.and_(
        match_whole(databases, including_databases, "including_databases"),
        match_whole(names, including_tables, "including_tables"),
    )
    if excluding_tables is not None:
        wanted = pc.and_not(wanted, match_whole(names, excluding_tables, "excluding_tables"))
    rows: list[dict[str, object]] = []
    for name in names.filter(wanted).to_pylist():
        row: dict[str, object] = dict.fromkeys(("snapshot", "buckets", "files_before", "files_after", "error"))
        try:
            done = compact(catalog.table(name), None, "none", where, options, compact_strategy, None, False)
            row |= _to_compacted_rows(done)[0]
        except PaimonError as error:
            row["error"] = str(error)
        rows.append({"table": name, **row})
    return rows


def compact_manifests(table: VerbTable, dry_run: bool) -> ManifestsCompacted:
    """Merge the manifests of a table."""
    return table.maintain.compact_manifests(dry_run=dry_run)


def mark_partitions_done(table: VerbTable, partitions: Partitions) -> Rows:
    """Write the success files of partitions."""
    return [{"file": path} for path in table.maintain.mark_partitions_done(*partitions)]


def purge(table: VerbTable) -> Purged:
    """Delete all rows and all history."""
    return table.maintain.purge()


def fsck(table: VerbTable, deep: bool) -> HealthReport:
    """Check that the table is complete."""
    return table.maintain.check(deep=deep)


def analyze(table: VerbTable, columns: Sequence[str] | None) -> Analyzed:
    """Compute statistics of a table and of its columns."""
    return table.analyze(columns)


def maintain(catalog: VerbCatalog, database: str | None, full: bool, orphans: bool, dry_run: bool) -> pa.Table:
    """Do the maintenance that is due for the tables of a catalog, or of a database."""
    return catalog.maintain(database, full=full, orphans=orphans, dry_run=dry_run)


def repair(catalog: VerbCatalog, name: str) -> Rows:
    """Register a table whose files exist."""
    return [{"table": catalog.repair_table(name).name}]


def _ask_partitions(table: VerbTable, given: Mapping[str, Any]) -> str | None:
    named = "; ".join(",".join(f"{key}={value}" for key, value in spec.items()) for spec in given["partitions"])
    return f"Delete all rows of {table.name} with {named}?"


def _ask_purge(table: VerbTable, _: Mapping[str, Any]) -> str | None:
    return f"Delete all rows of {table.name}, and its branches, tags, consumers and earlier snapshots for good?"


def _ask_young_orphans(table: VerbTable, given: Mapping[str, Any]) -> str | None:
    if given["dry_run"] or not given["allow_young"]:
        return None
    return (
        f"Files of {table.name} that are younger than a day may belong to writers that have not committed yet. "
        "Delete them?"
    )


def _first(ids: Sequence[int]) -> int | None:
    return ids[0] if ids else None


def _to_compacted_rows(done: CompactResult) -> Rows:
    counts = {"buckets": done.buckets, "files_before": done.files_before, "files_after": done.files_after}
    return [{"snapshot": _first(done.snapshot_ids), **counts, "rows": done.rows}]


def _to_rescaled_rows(done: RescaleResult) -> Rows:
    counts = {"partitions": done.partitions, "files_before": done.files_before, "files_after": done.files_after}
    return [{"snapshot": _first(done.snapshot_ids), **counts, "rows": done.rows}]


def _to_statistics_rows(done: Analyzed) -> Rows:
    """Return a row for each summarized column, or one row if there is none."""
    total = {"snapshot": done.snapshot_id, "rows": done.statistics.row_count, "bytes": done.statistics.byte_count}
    summaries: Iterable[tuple[str | None, ColumnStatistics]] = done.statistics.columns.items() or [
        (None, ColumnStatistics())
    ]
    return [
        {
            **total,
            "column": name,
            "distinct_count": column.distinct_count,
            "is_estimate": None if name is None else name in done.estimated_columns,
            "null_count": column.null_count,
            "min": column.smallest,
            "max": column.largest,
            "avg_len": column.average_length,
            "max_len": column.largest_length,
        }
        for name, column in summaries
    ]


def _to_manifest_rows(done: ManifestsCompacted) -> Rows:
    counts = {"manifests_before": done.manifests_before, "manifests_after": done.manifests_after}
    return [{"snapshot": done.snapshot_id, **counts}]


def _to_purged_rows(done: Purged) -> Rows:
    counts = {"branches": done.branches, "tags": done.tags, "consumers": done.consumers}
    return [{"snapshot": done.snapshot_id, **counts, "snapshots": done.snapshots, "changelogs": done.changelogs}]


_SNAPSHOT = Column("snapshot", pa.int64())
COMPACT = Verb(
    "compact", "merge the files of a table; no row changes", compact, _to_compacted_rows,
    (
        Parameter("partitions", Type.TEXT, PARTITIONS_HELP, in_method=False),
        Parameter(
            "order_strategy", Type.TEXT, f"how rows are sorted: {', '.join(STRATEGIES)}; 'none' does not sort",
            default=NO_STRATEGY, flag=Flag(metavar="STRATEGY"),
        ),
        Parameter(
            "where", Type.TEXT, "a condition on partition columns",
            flag=Flag(metavar="CONDITION", help="SQL condition on partition columns"),
        ),
        Parameter(
            "options", Type.TEXT, "table options for this call, such as 'num-levels=4'", default="", in_method=False,
        ),
        Parameter(
            "compact_strategy", Type.TEXT, "'full' (the default) or 'minor'", default="full", in_method=False,
            flag=Flag(
                "--full", help="compact each bucket into one sorted run, not only what the table options require",
                value="full", otherwise="minor",
            ),
        ),
        Parameter("order_by", Type.NAMES, "the columns to sort by, such as 'a,b'", flag=Flag(metavar="COLUMNS")),
        Parameter(
            "dry_run", Type.BOOLEAN, "write nothing, and show what would be compacted", in_call=False, flag=Flag(),
        ),
    ),
    (
        _SNAPSHOT,
        Column("buckets", pa.int64()),
        Column("files_before", pa.int64()),
        Column("files_after", pa.int64()),
        Column("rows", pa.int64(), "records", in_call=False),
    ),
    Command(
        "compact", "lake/default.db/orders --full",
        "compact a table: merge its sorted runs, or combine its small files", heading="compaction of {table}",
        has_progress=True,
    ),
    method="Table.compact", spark="compact",
)  # fmt: skip
COMPACT_DATABASE = Verb(
    "compact_database", "compact the tables of a catalog whose names match", compact_database, keep_rows,
    (
        Parameter("including_databases", Type.TEXT, "a regular expression of database names", default=".*"),
        Parameter("including_tables", Type.TEXT, "a regular expression of names as database.table", default=".*"),
        Parameter("excluding_tables", Type.TEXT, "a regular expression of names as database.table"),
        Parameter(
            "options", Type.TEXT, "table options for this call, such as 'num-levels=4'", default="",
            java="table_options",
        ),
        Parameter("where", Type.TEXT, "a condition on partition columns"),
        Parameter("compact_strategy", Type.TEXT, "'full' (the default) or 'minor'", default="full"),
    ),
    (
        Column("table", pa.string()),
        _SNAPSHOT,
        Column("buckets", pa.int64()),
        Column("files_before", pa.int64()),
        Column("files_after", pa.int64()),
        Column("error", pa.string()),
    ),
    of_catalog=True,
)  # fmt: skip
COMPACT_MANIFEST = Verb(
    "compact_manifest", "merge the manifests of a table; no row changes", compact_manifests, _to_manifest_rows,
    (
        Parameter(
            "dry_run", Type.BOOLEAN, "write nothing, and count the manifests", flag=Flag(),
        ),
    ),
    (_SNAPSHOT, Column("manifests_before", pa.int64()), Column("manifests_after", pa.int64())),
    Command(
        "compact-manifest", "lake/default.db/orders",
        "merge the manifests of a table, so that scans plan faster", heading="manifests of {table}",
    ),
    method="Maintain.compact_manifests",
)  # fmt: skip
MARK_PARTITION_DONE = Verb(
    "mark_partition_done", "mark partitions as done: by a file _SUCCESS, a report or a callback", mark_partitions_done,
    keep_rows,
    (
        Parameter(
            "partitions", Type.PARTITIONS, PARTITIONS_HELP, required=True,
            flag=Flag("-p --partition", "A=1,B=2", "values of partition columns; can be repeated"),
        ),
    ),
    (Column("file", pa.string()),),
    Command(
        "table mark-done", "lake/d.db/orders -p day=2026-01-01",
        "mark partitions as done, by default with the file _SUCCESS in their directories", takes_options=False,
    ),
    method="Maintain.mark_partitions_done",
)  # fmt: skip
PURGE_FILES = Verb(
    "purge_files", "delete all rows and all history of a table, but not the table", purge, _to_purged_rows,
    (),
    (
        _SNAPSHOT,
        Column("branches", pa.int64()),
        Column("tags", pa.int64()),
        Column("consumers", pa.int64()),
        Column("snapshots", pa.int64()),
        Column("changelogs", pa.int64()),
    ),
    Command(
        "table purge", "lake/d.db/orders --yes",
        "delete all rows, branches, tags, consumers and earlier snapshots of a table, but not the table",
        confirmation=Confirmation.ALWAYS, question=_ask_purge, takes_options=False,
    ),
    method="Maintain.purge",
)  # fmt: skip
RESCALE = Verb(
    "rescale", "rewrite partitions to another number of buckets", rescale, _to_rescaled_rows,
    (
        Parameter(
            "buckets", Type.INTEGER, "the new number of buckets", required=True, java="bucket_num",
            flag=Flag(metavar="N", help="buckets of each partition afterwards"),
        ),
        Parameter("partitions", Type.TEXT, PARTITIONS_HELP, java="partition", in_method=False),
        Parameter(
            "where", Type.TEXT, "SQL condition on partition columns", in_call=False, flag=Flag(metavar="CONDITION"),
        ),
        Parameter(
            "dry_run", Type.BOOLEAN, "write nothing, and show what would be rewritten", in_call=False, flag=Flag(),
        ),
    ),
    (
        _SNAPSHOT,
        Column("partitions", pa.int64()),
        Column("files_before", pa.int64(), in_call=False),
        Column("files_after", pa.int64(), in_call=False),
        Column("rows", pa.int64(), "records"),
    ),
    Command(
        "rescale", "lake/default.db/orders --buckets 8",
        "change the number of buckets of a table, and rewrite its partitions",
        """
The partitions are rewritten in one commit, and the table option 'bucket' is set to the new number.
No row changes. Readers continue. Writers that started before are refused: start them again afterwards.
With --where, the other partitions keep their number; writes to them are refused until they are rescaled, too.
""",
        heading="rescale of {table} to {buckets} buckets", has_progress=True,
    ),
    method="Table.rescale", spark="rescale",
)  # fmt: skip
DROP_PARTITION = Verb(
    "drop_partition", "drop partitions in one commit", drop_partitions, keep_rows,
    (
        Parameter(
            "partitions", Type.PARTITIONS, PARTITIONS_HELP, required=True,
            flag=Flag("-p --partition", "A=1,B=2", "values of partition columns; can be repeated"),
        ),
    ),
    (
        Column("snapshot", pa.int64(), in_terminal=False),
        Column("partitions", pa.string(), in_call=False),
        Column("snapshots", pa.list_(pa.int64()), in_call=False),
    ),
    Command(
        "table drop-partition", "lake/d.db/orders -p day=2026-01-01 --yes",
        "delete the rows of partitions (paimon delete --where)", confirmation=Confirmation.ALWAYS,
        question=_ask_partitions, takes_options=False,
    ),
    method="Table.drop_partitions",
)  # fmt: skip
REMOVE_ORPHAN_FILES = Verb(
    "remove_orphan_files", "delete the files that no snapshot, tag or changelog references", remove_orphan_files,
    keep_rows,
    (
        Parameter(
            "older_than", Type.TIME, "a timestamp, or an age such as '7 d'",
            flag=Flag(metavar="AGE", help=f"files that were last written earlier (default: 1 d): {AGE_HELP}"),
        ),
        Parameter(
            "dry_run", Type.BOOLEAN, "only list the files",
            flag=Flag("--delete", help="delete the files (default: only list them)", value=False, otherwise=True),
        ),
        Parameter(
            "allow_young", Type.BOOLEAN,
            "also delete files younger than a day, which running writers may be about to commit", in_call=False,
            flag=Flag(),
        ),
    ),
    (Column("path", pa.string()), Column("size", pa.int64()), Column("modified", pa.timestamp("ms", "UTC"))),
    Command(
        "orphans", "lake/default.db/orders --older-than '2 d' --delete",
        "list or delete orphan files, which no snapshot, tag or changelog of any branch references",
        confirmation=Confirmation.ON_TERMINAL, question=_ask_young_orphans,
    ),
    method="Maintain.remove_orphans", spark="remove_orphans",
)  # fmt: skip
ANALYZE = Verb(
    "analyze", "compute statistics of a table and of its columns", analyze, _to_statistics_rows,
    (
        Parameter(
            "columns", Type.NAMES, "the columns to summarize, separated by commas (default: all)",
            flag=Flag(metavar="NAMES"),
        ),
    ),
    (
        _SNAPSHOT,
        Column("rows", pa.int64()),
        Column("bytes", pa.int64()),
        Column("column", pa.string()),
        Column("distinct_count", pa.int64(), "distinct"),
        Column("is_estimate", pa.bool_(), "estimated"),
        Column("null_count", pa.int64(), "nulls"),
        Column("min", pa.string()),
        Column("max", pa.string()),
        Column("avg_len", pa.int64(), "average length"),
        Column("max_len", pa.int64(), "largest length"),
    ),
    Command(
        "analyze", "lake/default.db/orders --columns id,amount",
        "count rows, distinct values and nulls of a table for the planners of queries, and store them with a snapshot",
        heading="statistics of {table}", has_progress=True,
    ),
    method="Table.analyze",
)  # fmt: skip
FSCK = Verb(
    "fsck", "check that the table is complete, and report each fault", fsck, HealthReport.to_arrow,
    (
        Parameter(
            "deep", Type.BOOLEAN, "also read data files",
            flag=Flag(help="also read the data files of the newest snapshots and tags"),
        ),
    ),
    (
        Column("kind", pa.string()),
        Column("path", pa.string()),
        Column("reason", pa.string()),
        Column("states", pa.list_(pa.string())),
        Column("remedy", pa.string()),
    ),
    Command(
        "fsck", "lake/default.db/orders --deep",
        "check that all files of a table exist and match its metadata; report each fault and its repair",
        has_progress=True, takes_options=False,
    ),
    method="Maintain.check", spark="check",
)  # fmt: skip
MAINTAIN = Verb(
    "maintain",
    "compact tables and expire their tags, partitions, consumers, snapshots and changelogs, as far as it is due",
    maintain, keep_rows,
    (
        Parameter(
            "database", Type.TEXT, "only the tables of this database (default: all)", in_call=False,
            flag=Flag("-d --database", "NAME"),
        ),
        Parameter("full", Type.BOOLEAN, "compact each bucket into one sorted run", in_call=False, flag=Flag()),
        Parameter("orphans", Type.BOOLEAN, "also delete orphan files older than a day", in_call=False, flag=Flag()),
        Parameter("dry_run", Type.BOOLEAN, "only count what is due", in_call=False, flag=Flag()),
    ),
    (
        Column("table", pa.string()),
        Column("action", pa.string()),
        Column("count", pa.int64()),
        Column("unit", pa.string()),
        Column("error", pa.string()),
    ),
    Command("maintain", "lake --database shop --dry-run", has_progress=True, takes_options=False), in_call=False,
    of_catalog=True, method="Catalog.maintain", spark="maintain",
)  # fmt: skip
REPAIR = Verb(
    "repair", "register a table whose files exist in the catalog", repair, keep_rows,
    (Parameter("name", Type.TEXT, "the table, as database.table", required=True, java="table"),),
    (Column("table", pa.string()),), of_catalog=True, method="Catalog.repair_table",
)  # fmt: skip
FILE_VERBS = (
    *(MAINTAIN, COMPACT, COMPACT_DATABASE, COMPACT_MANIFEST, RESCALE, ANALYZE, FSCK, REMOVE_ORPHAN_FILES),
    *(DROP_PARTITION, MARK_PARTITION_DONE, PURGE_FILES, REPAIR),
)
