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
    """A table that a statement names, with the options of its hint and of its time travel.

    Parameters
    ----------
    parts : tuple of str
        The name.
    options : mapping of str to str
        Dynamic options.
    arguments : tuple of str
        The arguments of a table function such as ``paimon_incremental_query``, without the table.
    function : str, optional
        The name of the table function in small letters.
    """

    parts: ObjectName
    options: Options = field(factory=dict, hash=False)
    arguments: tuple[str, ...] = ()
    function: str | None = None

    @property
    def text(self) -> str:
        """The parts, separated by dots."""
        return ".".join(self.parts)


@frozen(eq=False)
class Query:
    """A query: SELECT, VALUES, WITH, or a set operation.

    Parameters
    ----------
    text : str
        The text of the query.
    tree : sqlglot.exp.Expression
        Its syntax tree, in which each table has the name of its entry in `tables`. It is copied before it changes.
    tables : mapping of str to TableName
        The tables that it reads.
    """

    text: str
    tree: Any
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
class DropDatabase:
    """DROP DATABASE name [CASCADE]."""

    parts: ObjectName
    missing_ok: bool = False
    cascade: bool = False


@frozen
class CreateTable:
    """CREATE TABLE with its columns, or from a query, or like another table.

    Parameters
    ----------
    name : TableName
        The new table.
    columns : tuple of DataField
        Empty where `query` or `like` define them.
    primary_keys, partition_keys : tuple of str
        Columns.
    options : mapping of str to str
        Table options.
    comment : str, optional
        The comment of the table.
    exist_ok : bool
        Accept an existing table.
    query : Query, optional
        The rows of the table.
    like : TableName, optional
        The table whose schema is copied.
    """

    name: TableName
    columns: tuple[DataField, ...] = ()
    primary_keys: tuple[str, ...] = ()
    partition_keys: tuple[str, ...] = ()
    options: Options = field(factory=dict)
    comment: str | None = None
    exist_ok: bool = False
    query: Query | None = None
    like: TableName | None = None


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
class Insert:
    """INSERT INTO or INSERT OVERWRITE.

    Parameters
    ----------
    name : TableName
        The table, with the options of its hint.
    query : Query
        The rows.
    columns : tuple of str
        The columns that the query gives; empty for all.
    overwrite : bool
        Replace partitions, or the table.
    partition : mapping of str to str, int or None
        Values of partition columns that the query does not give; a column without a value is dynamic and left out.
    by_name : bool
        Whether the names of the query's columns are the columns that it gives.
    """

    name: TableName
    query: Query
    columns: tuple[str, ...] = ()
    overwrite: bool = False
    partition: PartitionValues | None = None
    by_name: bool = False


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
    """A WHEN clause of MERGE INTO; expressions are texts.

    Parameters
    ----------
    rows : str
        ``MATCHED``, ``NOT MATCHED`` or ``NOT MATCHED BY SOURCE``.
    action : str
        ``UPDATE``, ``DELETE`` or ``INSERT``.
    condition : str, optional
        The text between AND and THEN.
    values : mapping of str to str, optional
        By column its expression; None for a delete, and for ``*``.
    """

    rows: str
    action: str
    condition: str | None = None
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
    """CALL sys.procedure(arguments).

    Parameters
    ----------
    procedure : str
        The name without ``sys.``.
    positional : tuple of object
        Values in the order of the parameters.
    named : mapping of str to object
        Values by the name of the parameter.
    """

    procedure: str
    positional: tuple[object, ...] = ()
    named: Mapping[str, object] = field(factory=dict)


@frozen
class Show:
    """SHOW of a list of names or of one text.

    Parameters
    ----------
    kind : str
        ``"catalogs"``, ``"databases"``, ``"tables"``, ``"views"``, ``"partitions"``, ``"columns"``, ``"options"``,
        ``"create table"``, ``"procedures"``, ``"current catalog"``, ``"current database"`` or ``"settings"``.
    parts : tuple of str
        The database or the table; empty for the current one.
    pattern : str, optional
        A LIKE pattern of names, or the key of one option.
    partition : mapping of str to str, int or None, optional
        The partitions to list.
    """

    kind: str
    parts: ObjectName = ()
    pattern: str | None = None
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
    | DropDatabase
    | CreateTable
    | CreateView
    | DropView
    | AlterTable
    | RenameTable
    | DropTable
    | DropPartitions
    | Truncate
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
