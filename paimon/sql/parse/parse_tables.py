"""Parse CREATE, ALTER, DROP, TRUNCATE and ANALYZE TABLE, as Flink SQL and Spark SQL write them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from attrs import define, evolve, field

from paimon.domain.errors import Unsupported
from paimon.domain.schema.changes import SetComment
from paimon.domain.schema.parse_changes import COMMENT_OPTION, read_schema_changes
from paimon.domain.types.data_types import DataField
from paimon.domain.types.sql_tokens import StatementReader
from paimon.domain.types.type_text import read_field
from paimon.sql.parse.parse_query import parse_query, read_options
from paimon.sql.parse.statements import (
    AlterTable,
    Analyze,
    ChangeTag,
    CreateTable,
    DropPartitions,
    DropTable,
    PartitionValues,
    Query,
    Refresh,
    RenameTable,
    Statement,
    TableName,
    Truncate,
)

_CLAUSES = "PARTITIONED BY, COMMENT, WITH, TBLPROPERTIES, USING, LIKE or AS"
_REFUSED = ("WATERMARK", "PERIOD", "UNIQUE", "CHECK", "FOREIGN")
"""Words that begin a table element which Paimon cannot store."""


@define
class _Declaration:
    """A parser state: what CREATE TABLE has declared so far."""

    columns: list[DataField] = field(factory=list)
    primary_keys: tuple[str, ...] = ()
    partition_keys: tuple[str, ...] = ()
    options: dict[str, str] = field(factory=dict)
    comment: str | None = None
    like: TableName | None = None
    query: Query | None = None


def read_table_name(reader: StatementReader) -> TableName:
    """Read the name of a table, and the hint after it."""
    name = TableName(reader.object_name())
    if reader.current.kind != "hint":
        return name
    hint = StatementReader(reader.advance().text, first_line=reader.first_line)
    hint.expect("OPTIONS")
    options = read_options(hint)
    hint.expect_end()
    return evolve(name, options=options)


def _replace_table(reader: StatementReader) -> Statement:
    statement = _create_table(reader)
    assert isinstance(statement, CreateTable)
    if statement.exist_ok:
        raise reader.error("CREATE OR REPLACE has IF NOT EXISTS", hint="leave out one of them")
    return evolve(statement, replace=True)


def _create_table(reader: StatementReader) -> Statement:
    exist_ok = reader.read_if_next("IF", "NOT", "EXISTS")
    name, made = read_table_name(reader), _Declaration()
    if reader.read_if_next("("):
        _read_elements(reader, made)
    while reader.current.kind != "end":
        _read_clause(reader, made)
    if not made.columns and made.query is None and made.like is None:
        raise reader.error("expected columns, LIKE or AS", hint="write CREATE TABLE t (id BIGINT, name STRING)")
    return CreateTable(
        name,
        tuple(made.columns),
        made.primary_keys,
        made.partition_keys,
        made.options,
        made.comment,
        exist_ok,
        made.query,
        made.like,
    )


def _read_elements(reader: StatementReader, made: _Declaration) -> None:
    while True:
        _read_element(reader, made)
        if reader.read_if_next(")"):
            return
        if not reader.read_if_next(","):
            raise reader.error(f"expected ',' or ')', not {reader.describe_next()}")


def _read_element(reader: StatementReader, made: _Declaration) -> None:
    word = reader.current.text.upper() if reader.current.kind == "word" else ""
    ahead = reader.tokens[min(reader.position + 1, len(reader.tokens) - 1)].text.upper()
    if word in _REFUSED and ahead in ("FOR", "KEY", "("):
        raise Unsupported(f"{word} in CREATE TABLE", hint="leave it out")
    if reader.read_if_next("CONSTRAINT"):
        reader.name()
    if reader.read_if_next("PRIMARY", "KEY"):
        _set_primary_key(reader, made, reader.names_in_parentheses())
        reader.read_if_next("NOT", "ENFORCED")
        return
    made.columns.append(_read_column(reader, made))


def _read_column(reader: StatementReader, made: _Declaration) -> DataField:
    column = read_field(reader)
    if reader.read_if_next("PRIMARY", "KEY"):
        _set_primary_key(reader, made, (column.name,))
        reader.read_if_next("NOT", "ENFORCED")
        if reader.read_if_next("COMMENT"):
            column = evolve(column, description=reader.literal())
    for word in ("METADATA", "GENERATED", "AS"):
        if reader.read_if_next(word):
            raise Unsupported(f"column {column.name!r} with {word}", hint="compute the value in the query that inserts")
    return column


def _set_primary_key(reader: StatementReader, made: _Declaration, names: tuple[str, ...]) -> None:
    if made.primary_keys:
        raise reader.error("the table has a primary key already", hint="write PRIMARY KEY (a, b) NOT ENFORCED once")
    made.primary_keys = names


def _read_clause(reader: StatementReader, made: _Declaration) -> None:
    if reader.read_if_next("PARTITIONED", "BY"):
        made.partition_keys = _read_partition_keys(reader, made)
    elif reader.read_if_next("COMMENT"):
        reader.read_if_next("=")
        made.comment = reader.literal()
    elif any(reader.read_if_next(word) for word in ("WITH", "TBLPROPERTIES", "OPTIONS")):
        made.options |= read_options(reader)
        made.comment = made.options.pop(COMMENT_OPTION, made.comment)
    elif reader.read_if_next("USING"):
        provider = reader.name()
        if provider.lower() != "paimon":
            raise Unsupported(f"CREATE TABLE … USING {provider}", hint="write USING paimon, or leave it out")
    elif reader.read_if_next("LIKE"):
        made.like = read_table_name(reader)
    elif reader.read_if_next("AS"):
        made.query = parse_query(reader)
    elif reader.read_if_next("LOCATION"):
        raise Unsupported("CREATE TABLE … LOCATION", hint="a table lies in its database directory")
    else:
        raise reader.error(f"expected {_CLAUSES}, not {reader.describe_next()}")


def _read_partition_keys(reader: StatementReader, made: _Declaration) -> tuple[str, ...]:
    """Read names; a name with a type is a further column, as Hive and Spark have it."""
    names: list[str] = []
    reader.expect("(")
    while True:
        ahead = reader.tokens[min(reader.position + 1, len(reader.tokens) - 1)]
        if ahead.text == "(":
            raise Unsupported(f"partition transform {reader.current.text!r}", hint="partition by columns")
        if ahead.text in (",", ")"):
            names.append(reader.name())
        else:
            made.columns.append(read_field(reader))
            names.append(made.columns[-1].name)
        if not reader.read_if_next(","):
            break
    reader.expect(")")
    return tuple(names)


def _alter_table(reader: StatementReader) -> Statement:
    missing_ok = reader.read_if_next("IF", "EXISTS")
    name = read_table_name(reader)
    if reader.read_if_next("RENAME", "TO"):
        return RenameTable(name, reader.object_name(), missing_ok)
    if reader.read_if_next("DROP", "IF", "EXISTS", "PARTITION"):
        return DropPartitions(name, _read_partitions(reader))
    if reader.read_if_next("DROP", "PARTITION"):
        return DropPartitions(name, _read_partitions(reader), missing_ok=False)
    if reader.read_if_next("ADD", "PARTITION") or reader.read_if_next("ADD", "IF", "NOT", "EXISTS", "PARTITION"):
        raise Unsupported("ALTER TABLE … ADD PARTITION", hint="a partition begins to exist with its first row")
    for words, action in _TAG_ACTIONS.items():
        if reader.read_if_next(*words):
            return _change_tag(reader, name, action)
    return AlterTable(name, read_schema_changes(reader), missing_ok)


_TAG_ACTIONS = {
    ("CREATE", "TAG"): "create",
    ("CREATE", "OR", "REPLACE", "TAG"): "create or replace",
    ("REPLACE", "TAG"): "replace",
    ("RENAME", "TAG"): "rename",
    ("DROP", "TAG"): "drop",
}


def _change_tag(reader: StatementReader, name: TableName, action: str) -> Statement:
    """Read ``[IF [NOT] EXISTS] tag [AS OF VERSION n] [RETAIN n DAYS]``, or ``tag TO new``."""
    is_lenient = (action == "create" and reader.read_if_next("IF", "NOT", "EXISTS")) or (
        action == "drop" and reader.read_if_next("IF", "EXISTS")
    )
    made = ChangeTag(name, action, _tag_name(reader), is_lenient=is_lenient)
    if action == "rename":
        reader.expect("TO")
        return evolve(made, new_name=_tag_name(reader))
    if action == "drop":
        return made
    snapshot = reader.number() if reader.read_if_next("AS", "OF", "VERSION") else None
    retained = f"{reader.number()} {reader.name().lower()}" if reader.read_if_next("RETAIN") else None
    return evolve(made, snapshot=snapshot, time_retained=retained)


def _tag_name(reader: StatementReader) -> str:
    return reader.literal() if reader.current.kind == "literal" else reader.name()


def _read_partitions(reader: StatementReader) -> tuple[PartitionValues, ...]:
    found = [read_partition_values(reader)]
    while reader.read_if_next(","):
        reader.expect("PARTITION")
        found.append(read_partition_values(reader))
    return tuple(found)


def read_partition_values(reader: StatementReader) -> PartitionValues:
    """Read ``(dt = '2026-01-01', hour = 1)``."""
    values, dynamic = read_partition(reader)
    if dynamic:
        raise reader.error(f"partition column {dynamic[0]!r} has no value", hint=f"write {dynamic[0]} = 'value'")
    return values


def read_partition(reader: StatementReader) -> tuple[PartitionValues, tuple[str, ...]]:
    """Read partition columns in parentheses; return the values, and the columns without a value."""
    values: dict[str, str | int | None] = {}
    dynamic: list[str] = []
    reader.expect("(")
    while True:
        name = reader.name()
        if not reader.read_if_next("="):
            dynamic.append(name)
        elif reader.read_if_next("NULL"):
            values[name] = None
        else:
            if not reader.read_if_next("DATE"):
                reader.read_if_next("TIMESTAMP")
            token = reader.advance()
            if token.kind not in ("literal", "number"):
                raise reader.error(f"expected a value of partition column {name!r}")
            is_integer = token.kind == "number" and token.text.lstrip("-").isdecimal() and len(token.text) <= 20
            values[name] = int(token.text) if is_integer else token.text
        if not reader.read_if_next(","):
            break
    reader.expect(")")
    return values, tuple(dynamic)


def _drop_table(reader: StatementReader) -> Statement:
    missing_ok, name = reader.read_if_next("IF", "EXISTS"), read_table_name(reader)
    reader.read_if_next("PURGE")
    return DropTable(name, missing_ok)


def _truncate(reader: StatementReader) -> Statement:
    name = read_table_name(reader)
    if reader.read_if_next("PARTITION"):
        return DropPartitions(name, (read_partition_values(reader),))
    return Truncate(name)


def _analyze(reader: StatementReader) -> Statement:
    """Read ``name COMPUTE STATISTICS [FOR COLUMNS a, b | FOR ALL COLUMNS]``."""
    name = read_table_name(reader)
    if reader.read_if_next("PARTITION"):
        raise Unsupported("ANALYZE of one partition", hint="leave out PARTITION: the statistics are of the whole table")
    reader.expect("COMPUTE", "STATISTICS")
    if reader.read_if_next("NOSCAN"):
        raise Unsupported("ANALYZE with NOSCAN", hint="leave out NOSCAN: rows are counted from metadata where possible")
    if not reader.read_if_next("FOR"):
        return Analyze(name)
    if reader.read_if_next("ALL"):
        reader.expect("COLUMNS")
        return Analyze(name, None)
    reader.expect("COLUMNS")
    columns = [reader.name()]
    while reader.read_if_next(","):
        columns.append(reader.name())
    return Analyze(name, tuple(columns))


def _comment_on(reader: StatementReader) -> Statement:
    if not reader.read_if_next("TABLE"):
        hint = "COMMENT ON TABLE, or ALTER TABLE … ALTER COLUMN … COMMENT"
        raise Unsupported(f"statement COMMENT ON {reader.current.text.upper()}", hint=hint)
    name = read_table_name(reader)
    reader.expect("IS")
    return AlterTable(name, (SetComment(None if reader.read_if_next("NULL") else reader.literal()),))


def _refuse(what: str, hint: str) -> Callable[[StatementReader], Statement]:
    def read(reader: StatementReader) -> Statement:
        """Refuse the statement."""
        raise Unsupported(f"statement {what}", hint=hint)

    return read


REFUSED_READERS: Mapping[tuple[str, ...], Callable[[StatementReader], Statement]] = {
    ("CREATE", "TEMPORARY", "TABLE"): _refuse("CREATE TEMPORARY TABLE", "use CREATE TEMPORARY VIEW, or a table"),
}
"""Statements of other systems by their first words; help does not list them."""

TABLE_READERS: Mapping[tuple[str, ...], Callable[[StatementReader], Statement]] = {
    ("CREATE", "OR", "REPLACE", "TABLE"): _replace_table,
    ("CREATE", "TABLE"): _create_table,
    ("ALTER", "TABLE"): _alter_table,
    ("DROP", "TABLE"): _drop_table,
    ("TRUNCATE", "TABLE"): _truncate,
    ("ANALYZE", "TABLE"): _analyze,
    ("REFRESH", "TABLE"): lambda reader: Refresh(read_table_name(reader)),
    ("COMMENT", "ON"): _comment_on,
}
"""Readers by the first words of a statement; longer beginnings come before shorter ones."""
