"""Parse statements about catalogs, databases, views and settings, and CALL."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from paimon.domain.errors import Unsupported
from paimon.domain.types.sql_tokens import StatementReader
from paimon.sql.parse.parse_query import parse_query, read_dotted_key, read_option_value, read_options
from paimon.sql.parse.parse_tables import read_partition_values, read_table_name
from paimon.sql.parse.statements import (
    AlterDatabase,
    Call,
    CreateCatalog,
    CreateDatabase,
    CreateView,
    Describe,
    DropCatalog,
    DropDatabase,
    DropView,
    ResetOption,
    SetOption,
    Show,
    Statement,
    Use,
)


def _create_catalog(reader: StatementReader) -> Statement:
    exist_ok = reader.read_if_next("IF", "NOT", "EXISTS")
    name = reader.name()
    reader.expect("WITH")
    return CreateCatalog(name, read_options(reader), exist_ok)


def _drop_catalog(reader: StatementReader) -> Statement:
    return DropCatalog(missing_ok=reader.read_if_next("IF", "EXISTS"), name=reader.name())


def _create_database(reader: StatementReader) -> Statement:
    return CreateDatabase(exist_ok=reader.read_if_next("IF", "NOT", "EXISTS"), parts=reader.object_name())


def _alter_database(reader: StatementReader) -> Statement:
    """Read ``SET [DBPROPERTIES | PROPERTIES] (…)``, or ``UNSET`` with the names alone."""
    parts = reader.object_name()
    removes = reader.read_if_next("UNSET")
    if not removes:
        reader.expect("SET")
    if not reader.read_if_next("DBPROPERTIES"):
        reader.read_if_next("PROPERTIES")
    if not removes:
        return AlterDatabase(parts, read_options(reader))
    reader.expect("(")
    names = [_read_property(reader)]
    while reader.read_if_next(","):
        names.append(_read_property(reader))
    reader.expect(")")
    return AlterDatabase(parts, {}, tuple(names))


def _read_property(reader: StatementReader) -> str:
    return reader.literal() if reader.current.kind == "literal" else read_dotted_key(reader)


def _drop_database(reader: StatementReader) -> Statement:
    missing_ok, parts = reader.read_if_next("IF", "EXISTS"), reader.object_name()
    cascade = reader.read_if_next("CASCADE")
    if not cascade:
        reader.read_if_next("RESTRICT")
    return DropDatabase(parts, missing_ok, cascade)


def _create_view(replace: bool) -> Callable[[StatementReader], Statement]:
    def read(reader: StatementReader) -> Statement:
        """Read what follows CREATE VIEW."""
        exist_ok = not replace and reader.read_if_next("IF", "NOT", "EXISTS")
        name = reader.name()
        columns = reader.names_in_parentheses() if reader.current.text == "(" else ()
        reader.expect("AS")
        return CreateView(name, parse_query(reader), columns, replace, exist_ok)

    return read


def _drop_view(reader: StatementReader) -> Statement:
    return DropView(missing_ok=reader.read_if_next("IF", "EXISTS"), name=reader.name())


def _use(kind: str) -> Callable[[StatementReader], Statement]:
    return lambda reader: Use(reader.object_name(), kind)


_DESCRIPTIONS = {
    "HISTORY": "SELECT * FROM table$snapshots lists the snapshots",
    "DETAIL": "DESCRIBE EXTENDED table describes a table; table$files lists its files",
}
"""What describes the parts of a table, by the word that Delta Lake has for it."""


def _describe(reader: StatementReader) -> Statement:
    word, following = reader.current.text.upper(), reader.tokens[reader.position + 1 :][:1]
    if word in _DESCRIPTIONS and following and following[0].kind in ("word", "quoted"):
        raise Unsupported(f"statement DESCRIBE {word}", hint=_DESCRIPTIONS[word])
    reader.read_if_next("TABLE")
    extended = reader.read_if_next("EXTENDED") or reader.read_if_next("FORMATTED")
    return Describe(read_table_name(reader), extended)


def _set(reader: StatementReader) -> Statement:
    if reader.current.kind == "end":
        return Show("settings")
    key = reader.literal() if reader.current.kind == "literal" else read_dotted_key(reader)
    reader.expect("=")
    token = reader.current
    if token.kind == "word":  # Spark and Flink take values without quotes
        return SetOption(key, reader.advance().text)
    return SetOption(key, read_option_value(reader))


def _reset(reader: StatementReader) -> Statement:
    if reader.current.kind == "end":
        return ResetOption()
    return ResetOption(reader.literal() if reader.current.kind == "literal" else read_dotted_key(reader))


def _show_names(kind: str) -> Callable[[StatementReader], Statement]:
    def read(reader: StatementReader) -> Statement:
        """Read ``[IN database] [LIKE 'pattern']``."""
        within = reader.read_if_next("IN") or reader.read_if_next("FROM")
        parts = reader.object_name() if within else ()
        has_pattern = reader.read_if_next("LIKE") or reader.current.kind == "literal"
        return Show(kind, parts, reader.literal() if has_pattern else None)

    return read


def _show_partitions(reader: StatementReader) -> Statement:
    name = reader.object_name()
    values = read_partition_values(reader) if reader.read_if_next("PARTITION") else None
    return Show("partitions", name, partition=values)


def _show_tags(reader: StatementReader) -> Statement:
    return Show("tags", reader.object_name())


def _show_table_extended(reader: StatementReader) -> Statement:
    """Read ``[IN database] LIKE 'pattern'``."""
    shown = _show_names("table extended")(reader)
    assert isinstance(shown, Show)
    if shown.pattern is None:
        raise reader.error("expected LIKE 'pattern'")
    return shown


def _show_options(reader: StatementReader) -> Statement:
    name, key = reader.object_name(), None
    if reader.read_if_next("("):
        key = reader.literal() if reader.current.kind == "literal" else read_dotted_key(reader)
        reader.expect(")")
    return Show("options", name, key)


def _show_columns(reader: StatementReader) -> Statement:
    if not reader.read_if_next("IN"):
        reader.expect("FROM")
    return Show("columns", reader.object_name())


def parse_call(reader: StatementReader) -> Statement:
    """Read ``sys.procedure(value, name => value, …)``."""
    *parts, procedure = reader.object_name()
    if [part.lower() for part in parts[-1:]] != ["sys"]:
        raise reader.error("expected the name of a procedure, such as sys.compact", hint="CALL sys.help() lists them")
    positional: list[object] = []
    named: dict[str, object] = {}
    reader.expect("(")
    while not reader.read_if_next(")"):
        ahead = reader.tokens[min(reader.position + 1, len(reader.tokens) - 1)]
        if ahead.text == "=>":
            name = reader.name().lower()
            reader.expect("=>")
            if name in named:
                raise reader.error(f"argument {name!r} is given twice")
            named[name] = _read_argument(reader)
        elif named:
            raise reader.error("expected name => value, because a named argument came before")
        else:
            positional.append(_read_argument(reader))
        if not reader.read_if_next(",") and reader.current.text != ")":
            raise reader.error(f"expected ',' or ')', not {reader.describe_next()}")
    return Call(procedure.lower(), tuple(positional), named)


_MOST_DIGITS = 400
_CONSTANTS: Mapping[str, object] = {"TRUE": True, "FALSE": False, "NULL": None}


def _read_argument(reader: StatementReader) -> object:
    token = reader.current
    if token.kind == "word" and token.text.upper() in _CONSTANTS:
        return _CONSTANTS[reader.advance().text.upper()]
    if token.kind == "quoted" and reader.text.startswith('"', token.start):
        return reader.advance().text  # Spark writes texts in double quotes, too
    if reader.read_if_next("TIMESTAMP") or token.kind == "literal":
        return reader.literal()
    if token.kind == "number":
        if len(token.text) > _MOST_DIGITS:
            raise reader.error(f"expected a number of at most {_MOST_DIGITS} characters")
        text = reader.advance().text
        return int(text) if text.lstrip("-").isdecimal() else float(text)
    raise reader.error(f"expected a value, not {reader.describe_next()}", hint="write texts in single quotes")


_VIEWS = ("VIEW",), ("TEMPORARY", "VIEW"), ("TEMP", "VIEW")
CATALOG_READERS: Mapping[tuple[str, ...], Callable[[StatementReader], Statement]] = {
    ("CREATE", "CATALOG"): _create_catalog,
    ("DROP", "CATALOG"): _drop_catalog,
    ("CREATE", "DATABASE"): _create_database,
    ("CREATE", "SCHEMA"): _create_database,
    ("ALTER", "DATABASE"): _alter_database,
    ("ALTER", "SCHEMA"): _alter_database,
    ("DROP", "DATABASE"): _drop_database,
    ("DROP", "SCHEMA"): _drop_database,
    **{("CREATE", "OR", "REPLACE", *words): _create_view(True) for words in _VIEWS},
    **{("CREATE", *words): _create_view(False) for words in _VIEWS},
    **{("DROP", *words): _drop_view for words in _VIEWS},
    ("USE", "CATALOG"): _use("catalog"),
    ("USE", "DATABASE"): _use("database"),
    ("USE", "SCHEMA"): _use("database"),
    ("USE",): _use(""),
    ("SHOW", "CATALOGS"): lambda _: Show("catalogs"),
    ("SHOW", "CURRENT", "CATALOG"): lambda _: Show("current catalog"),
    ("SHOW", "CURRENT", "DATABASE"): lambda _: Show("current database"),
    ("SHOW", "DATABASES"): _show_names("databases"),
    ("SHOW", "SCHEMAS"): _show_names("databases"),
    ("SHOW", "TABLES"): _show_names("tables"),
    ("SHOW", "TABLE", "EXTENDED"): _show_table_extended,
    ("SHOW", "TAGS"): _show_tags,
    ("SHOW", "VIEWS"): _show_names("views"),
    ("SHOW", "PROCEDURES"): _show_names("procedures"),
    ("SHOW", "PARTITIONS"): _show_partitions,
    ("SHOW", "TBLPROPERTIES"): _show_options,
    ("SHOW", "CREATE", "TABLE"): lambda reader: Show("create table", reader.object_name()),
    ("SHOW", "COLUMNS"): _show_columns,
    ("DESCRIBE",): _describe,
    ("DESC",): _describe,
    ("SET",): _set,
    ("RESET",): _reset,
}
"""Readers by the first words of a statement; longer beginnings come before shorter ones."""
