"""Statements as values: what a parsed text asks for, before names are looked up.

Invariant: values are frozen and hold no rows. `paimon.sql.parse.parse_script` makes them, and
`paimon.sql.run.run_statements` runs them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from paimon.domain.schema.changes import SchemaChange
from paimon.domain.types.data_types import DataField

if TYPE_CHECKING:
    from paimon.sql.parse.query_tree import QueryTree

ObjectName = tuple[str, ...]
"""One to three parts: table, database.table, catalog.database.table."""
Options = Mapping[str, str]


@frozen
class TableName:
    """A table that a statement names, with the options of its hint and of its time travel."""

    parts: ObjectName
    options: Options = field(factory=dict, hash=False)
    # Arguments of a table function such as `paimon_incremental_query`, without the table
    arguments: tuple[str, ...] = ()
    # Name of the table function in lower case; None for a plain table
    function: str | None = None

    @property
    def text(self) -> str:
        """The parts, separated by dots."""
        return ".".join(self.parts)


@frozen(eq=False)
class Query:
    """A query: SELECT, VALUES, WITH, or a set operation."""

    text: str
    # A `sqlglot` expression; each table has the name of its entry in `tables`. Copy it before a change
    tree: Any
    # The tables that the query reads, by their names in `tree`
    tables: Mapping[str, TableName]
    indexed: QueryTree = field(init=False, repr=False)
    """The tree with an index of its nodes."""

    @indexed.default
    def _index_tree(self) -> QueryTree:
        from paimon.sql.parse.query_tree import QueryTree  # loads the parser only where there is a query

        return QueryTree(self.tree)


@frozen
class CreateCatalog:
    """CREATE CATALOG name WITH (options)."""

    name: str
    options: Options
    exist_ok: bool = False


@frozen
class DropCatalog:
    """DROP CATALOG name: the session forgets it."""

    name: str
    missing_ok: bool = False


@frozen
class Use:
    """USE CATALOG name, USE DATABASE name, or USE name, which may be either."""

    parts: ObjectName
    kind: str = ""


@frozen
class CreateDatabase:
    """CREATE DATABASE name."""

    parts: ObjectName
    exist_ok: bool = False


@frozen
class AlterDatabase:
    """ALTER DATABASE name SET or UNSET of properties."""

    parts: ObjectName
    properties: Options = field(factory=dict)
    removed: tuple[str, ...] = ()


@frozen
class DropDatabase:
    """DROP DATABASE name [CASCADE]."""

    parts: ObjectName
    missing_ok: bool = False
    cascade: bool = False


@frozen
class CreateTable:
    """CREATE TABLE with its columns, or from a query, or like another table."""

    name: TableName
    # Empty if `query` or `like` defines them
    columns: tuple[DataField, ...] = ()
    primary_keys: tuple[str, ...] = ()
    partition_keys: tuple[str, ...] = ()
    options: Options = field(factory=dict)
    comment: str | None = None
    # Whether an existing table is accepted
    exist_ok: bool = False
    query: Query | None = None
    # The table whose schema is copied
    like: TableName | None = None
    # Whether an existing table is replaced
    replace: bool = False


@frozen
class CreateView:
    """CREATE [OR REPLACE] TEMPORARY VIEW name [(columns)] AS query, for the session."""

    name: str
    query: Query
    columns: tuple[str, ...] = ()
    replace: bool = False
    exist_ok: bool = False


@frozen
class DropView:
    """DROP VIEW name."""

    name: str
    missing_ok: bool = False


@frozen
class AlterTable:
    """ALTER TABLE name with changes of its schema."""

    name: TableName
    changes: tuple[SchemaChange, ...]
    missing_ok: bool = False


@frozen
class RenameTable:
    """ALTER TABLE name RENAME TO name."""

    name: TableName
    new_name: ObjectName
    missing_ok: bool = False


@frozen
class DropTable:
    """DROP TABLE name."""

    name: TableName
    missing_ok: bool = False


PartitionValues = Mapping[str, str | int | None]


@frozen
class DropPartitions:
    """ALTER TABLE name DROP [IF EXISTS] PARTITION (k = v, …), …, or TRUNCATE TABLE name PARTITION (k = v, …)."""

    name: TableName
    partitions: tuple[PartitionValues, ...]
    missing_ok: bool = True


@frozen
class Truncate:
    """TRUNCATE TABLE name."""

    name: TableName


@frozen
class ChangeTag:
    """ALTER TABLE name CREATE, REPLACE, RENAME or DROP of a tag."""

    name: TableName
    # 'create', 'replace', 'create or replace', 'rename', 'drop'
    action: str
    tag: str
    # AS OF VERSION; None for the latest snapshot
    snapshot: int | None = None
    # RETAIN, such as '5 days'
    time_retained: str | None = None
    new_name: str | None = None
    # CREATE TAG IF NOT EXISTS, or DROP TAG IF EXISTS
    is_lenient: bool = False


@frozen
class Refresh:
    """REFRESH TABLE name; statements always see the newest state, so it only checks that the table exists."""

    name: TableName


@frozen
class Analyze:
    """ANALYZE TABLE name COMPUTE STATISTICS [FOR COLUMNS … | FOR ALL COLUMNS]."""

    name: TableName
    # None for all columns; empty counts rows and bytes alone
    columns: tuple[str, ...] | None = ()


@frozen
class Insert:
    """INSERT INTO or INSERT OVERWRITE."""

    name: TableName
    query: Query
    # Columns that the query gives, in order; empty means all
    columns: tuple[str, ...] = ()
    # Whether to replace partitions, or the whole table
    overwrite: bool = False
    # Static partition values, which the query does not give; dynamic columns are left out
    partition: PartitionValues | None = None
    # Whether columns of the query are matched by name, not by position
    by_name: bool = False


@frozen
class CopyTo:
    """COPY table TO 'path', or COPY (query) TO 'path'."""

    query: Query
    path: str
    # None means the format that the extension names
    format_name: str | None = None


@frozen
class Update:
    """UPDATE name [AS alias] SET column = expression, … WHERE condition; expressions and condition are texts."""

    name: TableName
    assignments: Mapping[str, str]
    where: str | None = None
    alias: str | None = None


@frozen
class Delete:
    """DELETE FROM name [AS alias] WHERE condition; the condition is a text."""

    name: TableName
    where: str | None = None
    alias: str | None = None


@frozen
class MergeWhen:
    """A WHEN clause of MERGE INTO; expressions are SQL strings."""

    # MATCHED, NOT MATCHED or NOT MATCHED BY SOURCE
    rows: str
    # UPDATE, DELETE or INSERT
    action: str
    # Text between AND and THEN
    condition: str | None = None
    # Expressions by column; None for DELETE and for ``*``
    values: Mapping[str, str] | None = None

    def describe(self) -> str:
        """Return the clause as SQL, without its columns and values."""
        condition = f" AND {self.condition}" if self.condition else ""
        return f"WHEN {self.rows}{condition} THEN {self.action}"


@frozen
class Merge:
    """MERGE INTO name AS target_alias USING query AS source_alias ON condition, and its clauses."""

    name: TableName
    target_alias: str
    query: Query
    source_alias: str
    on: str
    clauses: tuple[MergeWhen, ...]


@frozen
class Call:
    """CALL sys.procedure(arguments)."""

    # Name without the prefix ``sys.``
    procedure: str
    # In the order of the procedure's parameters
    positional: tuple[object, ...] = ()
    # By the name of the parameter
    named: Mapping[str, object] = field(factory=dict)


@frozen
class Show:
    """SHOW of a list of names or of one text."""

    # catalogs, databases, tables, views, partitions, columns, options, create table, procedures, settings, current
    # catalog or current database
    kind: str
    # Name of the database or the table; empty for the current database
    parts: ObjectName = ()
    # A LIKE pattern of names, or the key of one option
    pattern: str | None = None
    # The partitions to list
    partition: PartitionValues | None = None


@frozen
class Describe:
    """DESCRIBE [EXTENDED] name."""

    name: TableName
    extended: bool = False


@frozen
class SetOption:
    """SET 'key' = 'value'; without a key it lists the settings."""

    key: str
    value: str


@frozen
class ResetOption:
    """RESET ['key']: remove one setting, or all."""

    key: str | None = None


@frozen
class Explain:
    """EXPLAIN statement."""

    statement: Statement


Statement = (
    Query
    | CreateCatalog
    | DropCatalog
    | Use
    | CreateDatabase
    | AlterDatabase
    | DropDatabase
    | CreateTable
    | CreateView
    | DropView
    | AlterTable
    | RenameTable
    | DropTable
    | DropPartitions
    | Truncate
    | ChangeTag
    | Refresh
    | Analyze
    | CopyTo
    | Insert
    | Update
    | Delete
    | Merge
    | Call
    | Show
    | Describe
    | SetOption
    | ResetOption
    | Explain
)
