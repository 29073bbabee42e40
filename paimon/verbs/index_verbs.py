"""The verbs that build file indexes and global indexes of a table, and drop the latter."""

from __future__ import annotations

import pyarrow as pa

from paimon.operations.compact.rewrite_indexes import IndexesRewritten
from paimon.operations.global_indexes import GlobalIndexChange
from paimon.verbs.arguments import PARTITIONS_HELP, choose_condition, parse_assignments
from paimon.verbs.verb import Column, Command, Flag, Parameter, Rows, Type, Verb, VerbTable


def rewrite_file_index(table: VerbTable, where: str | None) -> IndexesRewritten:
    """Build the file indexes of existing files again."""
    return table.maintain.rewrite_file_index(where)


def create_global_index(
    table: VerbTable, index_column: str, index_type: str, partitions: str | None, options: str, where: str | None
) -> GlobalIndexChange:
    """Index a column of rows that have no index of it yet."""
    given = parse_assignments(options, "options")
    changed = table.with_options(given) if given else table
    return changed.maintain.create_global_index(index_column, index_type, choose_condition(partitions, where))


def drop_global_index(
    table: VerbTable, index_column: str, index_type: str, partitions: str | None, where: str | None, dry_run: bool
) -> GlobalIndexChange:
    """Remove the global indexes of a column."""
    condition = choose_condition(partitions, where)
    return table.maintain.drop_global_index(index_column, index_type, condition, dry_run=dry_run)


def _to_index_rows(done: IndexesRewritten) -> Rows:
    return [{"snapshot": done.snapshot_id, "written_partitions": done.partitions, "written_indexes": done.files}]


def _to_global_index_rows(done: GlobalIndexChange) -> Rows:
    return [{"snapshot": done.snapshot_id, "index_files": done.files, "rows": done.rows}]


_SNAPSHOT = Column("snapshot", pa.int64())
REWRITE_FILE_INDEX = Verb(
    "rewrite_file_index", "build the file indexes of existing files again; no row changes", rewrite_file_index,
    _to_index_rows,
    (
        Parameter(
            "where", Type.TEXT, "a condition on partition columns",
            flag=Flag(metavar="CONDITION", help="SQL condition on partition columns"),
        ),
    ),
    (_SNAPSHOT, Column("written_partitions", pa.int64()), Column("written_indexes", pa.int64())),
    Command(
        "rewrite-file-index", "lake/default.db/orders",
        "build the file indexes of existing files again, by the options of the table now",
        heading="file indexes of {table}",
    ),
    method="Maintain.rewrite_file_index",
)  # fmt: skip
_INDEX_COLUMN = Parameter(
    "index_column", Type.TEXT, "the column", required=True, flag=Flag(metavar="COLUMN", is_positional=True)
)
_INDEX_WHERE = Parameter(
    "where", Type.TEXT, "a condition on partition columns",
    flag=Flag(metavar="CONDITION", help="SQL condition on partition columns"),
)  # fmt: skip
_INDEX_RESULT = (_SNAPSHOT, Column("index_files", pa.int64()), Column("rows", pa.int64()))
CREATE_GLOBAL_INDEX = Verb(
    "create_global_index", "index a column of rows with lasting ids, so that conditions on it read few rows",
    create_global_index, _to_global_index_rows,
    (
        _INDEX_COLUMN,
        Parameter("index_type", Type.TEXT, "the type of the index, which is btree", "btree"),
        Parameter("partitions", Type.TEXT, PARTITIONS_HELP, in_method=False),
        Parameter("options", Type.TEXT, "table options such as 'k=v,k2=v2'", "", in_method=False),
        _INDEX_WHERE,
    ),
    _INDEX_RESULT,
    Command(
        "table create-index", "lake/d.db/readings celsius",
        "index a column of a table with data evolution; rows appended since are indexed by another call",
        heading="global index of {table}", has_progress=True,
    ),
    method="Maintain.create_global_index",
)  # fmt: skip
DROP_GLOBAL_INDEX = Verb(
    "drop_global_index", "remove the global indexes of a column", drop_global_index, _to_global_index_rows,
    (
        _INDEX_COLUMN,
        Parameter("index_type", Type.TEXT, "the type of the index", "btree", flag=Flag("--type", "TYPE")),
        Parameter("partitions", Type.TEXT, PARTITIONS_HELP, in_method=False),
        _INDEX_WHERE,
        Parameter("dry_run", Type.BOOLEAN, "only count the files", flag=Flag()),
    ),
    _INDEX_RESULT,
    Command(
        "table drop-index", "lake/d.db/readings celsius", "remove the global indexes of a column",
        heading="global index of {table}",
    ),
    method="Maintain.drop_global_index",
)  # fmt: skip
INDEX_VERBS = (REWRITE_FILE_INDEX, CREATE_GLOBAL_INDEX, DROP_GLOBAL_INDEX)
