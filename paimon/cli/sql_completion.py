"""Words that complete a statement: keywords, tables, columns, options and procedures.

Invariant: only metadata is read. What cannot be read, because the statement is not complete, the table does not exist
or the catalog has an error, leads to fewer words.
"""

# Two questions are decided for the text before the cursor, each by the cheapest means that works on an incomplete
# statement:
#
# 1. Which kind of word comes next? Regular expressions look at the end of the text: `FROM sh|` wants a table, `USE |` a
#    database, `WITH ('bu|` the key of an option, `CALL sys.comp|` a procedure. Otherwise keywords and columns fit.
# 2. Which columns? The tokens of the whole statement, also behind the cursor, name its sources:
#
#        SELECT o.cust|  FROM shop.orders AS o, (SELECT max(id) AS top FROM refunds) r WHERE …
#                             `- table, alias o      `- subquery, alias r
#
#    A source is a table, a view or a subquery with a name. Its columns come from the catalog, or from the plan of the
#    subquery, which is not run. The words before the last dot select sources (`o.`, `orders.`, `shop.orders.`), or
#    fields of a ROW (`o.address.`). Where they select none, they may name a table whose FROM is not written yet.
#    Without a dot, subqueries are left out, because planning them takes longer than a keystroke may.

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
from attrs import frozen

from paimon.domain.errors import InvalidRequest, PaimonError
from paimon.domain.options.known_options import OPTIONS
from paimon.domain.types.sql_tokens import StatementReader, Token, tokenize
from paimon.domain.types.type_text import quote_identifier
from paimon.sql.parse.parse_query import QUERY_WORDS, parse_query
from paimon.sql.parse.parse_script import list_statement_words
from paimon.sql.parse.statements import TableName
from paimon.sql.plan.plan_query import describe_query, plan_query
from paimon.sql.session import OPTION_PREFIX, Session
from paimon.system_table import SYSTEM_TABLES
from paimon.verbs.verb_table import CATALOG_PROCEDURES, HELP, PROCEDURES, TABLE

_BEFORE_TABLE = ("FROM", "JOIN", "INTO", "UPDATE", "TABLE", "OVERWRITE", "DESCRIBE", "DESC", "USING", "PARTITIONS")
_BEFORE_TRAVEL = ("VERSION", "TIMESTAMP", "FOR")
_AFTER_TABLE = (
    *("WHERE", "ON", "SET", "USING", "JOIN", "LEFT", "RIGHT", "FULL", "INNER", "CROSS", "GROUP", "ORDER", "HAVING"),
    *("LIMIT", "UNION", "VALUES", "SELECT", "WHEN", "PARTITION", "ADD", "DROP", "RENAME", "MODIFY", "ALTER", "NATURAL"),
)
"""Words that are no alias after a table."""
_PLAIN = re.compile(r"[^\W\d]\w*\Z")
_CLAUSES = (
    *("AND", "AS", "ASC", "BETWEEN", "BUCKET", "BY", "CASE", "CAST", "COMMENT", "COUNT", "DESC", "DISTINCT", "ELSE"),
    *("END", "ENFORCED", "EXISTS", "FROM", "GROUP", "HAVING", "IF", "IN", "INTO", "IS", "JOIN", "KEY", "LEFT", "LIKE"),
    *("LIMIT", "NOT", "NULL", "ON", "OR", "ORDER", "OVERWRITE", "PARTITION", "PARTITIONED", "PRIMARY", "SET", "SUM"),
    *("ADD COLUMN", "ALTER COLUMN", "DROP COLUMN", "MODIFY", "RENAME COLUMN", "RENAME TO", "WHEN MATCHED THEN"),
    *("WHEN NOT MATCHED BY SOURCE THEN", "WHEN NOT MATCHED THEN INSERT"),
    *("TABLE", "THEN", "TIMESTAMP AS OF", "UNION", "USING", "VALUES", "VERSION AS OF", "WHEN", "WHERE", "WITH"),
)
_TABLE_WORDS = (
    r"\b(?:FROM|JOIN|INTO|UPDATE|TABLE(?:\s+IF\s+EXISTS)?|OVERWRITE|DESCRIBE|DESC|USING|PARTITIONS|COLUMNS\s+IN)\s+"
)
_AFTER_TABLE_WORD = re.compile(_TABLE_WORDS + r"[\w.$`]*\Z", re.IGNORECASE)
_AFTER_DATABASE_WORD = re.compile(r"\b(?:USE|DATABASE|SCHEMA|TABLES\s+(?:IN|FROM))\s+\w*\Z", re.IGNORECASE)
_IN_TEXT = re.compile(r"'[^']*\Z")
_OPTION = re.compile(r"\b(?:WITH|OPTIONS|TBLPROPERTIES|SET|RESET)\s*\((?:[^()']|'[^']*')*'[^']*\Z", re.IGNORECASE)
_SETTING = re.compile(r"\b(?:SET|RESET)\s+'[^']*\Z", re.IGNORECASE)
_PROCEDURE = re.compile(r"\bCALL\s+(?:sys\.)?\w*\Z", re.IGNORECASE)
_ARGUMENT = re.compile(r"\bCALL\s+sys\.(?P<name>\w+)\s*\((?:[^()']|'[^']*')*\Z", re.IGNORECASE)
_TABLE_ARGUMENT = re.compile(r"\bCALL\s+sys\.\w+\s*\((?:[^()']*\btable\s*=>)?\s*'[^']*\Z", re.IGNORECASE)
WORD = re.compile(r"[\w.$-]*\Z")
"""The word before the cursor."""


def complete(session: Session, before: str, after: str = "") -> list[str]:
    """Return the words, in alphabetical order, that begin with the word before the cursor in any case."""
    match = WORD.search(before)
    begun = match.group() if match else ""
    found = _list_candidates(session, before, after, begun)
    wanted = begun.lower()
    return sorted({word for word in found if word.replace('"', "").lower().startswith(wanted)}, key=str.lower)


def _list_candidates(session: Session, before: str, after: str, begun: str) -> Iterable[str]:
    if before.count("'") % 2 and _IN_TEXT.search(before):
        return _list_texts(session, before, begun)
    if _PROCEDURE.search(before):
        return [f"sys.{name}" for name in (*PROCEDURES, HELP, *CATALOG_PROCEDURES)]
    call = _ARGUMENT.search(before)
    if call:
        procedure = PROCEDURES.get(call["name"].lower())
        return [f"{p.call_name} => " for p in (TABLE, *procedure.call_parameters)] if procedure else []
    if _AFTER_DATABASE_WORD.search(before):
        return _list_databases(session)
    if _AFTER_TABLE_WORD.search(before):
        return _list_tables(session, begun)
    return [*list_statement_words(), *_CLAUSES, *_list_columns(session, f"{before} {after}", begun)]


def _list_texts(session: Session, before: str, begun: str) -> Iterable[str]:
    """Return what can be in the quotes that are open: the key of an option, or the table of a procedure."""
    if _SETTING.search(before):
        return [f"{OPTION_PREFIX}{option}" for option in OPTIONS]
    if _OPTION.search(before):
        return OPTIONS
    return _list_tables(session, begun) if _TABLE_ARGUMENT.search(before) else []


def _list_databases(session: Session) -> list[str]:
    try:
        return session.catalog().databases()
    except PaimonError:
        return []


def _list_tables(session: Session, begun: str) -> list[str]:
    try:
        catalog, here = session.catalog(), session.database
        databases = catalog.databases()
        names = [*session.views, *(catalog.tables(here) if here in databases else [])]
        names += [f"{database}.{table}" for database in databases for table in catalog.tables(database)]
    except PaimonError:
        return []
    base, dollar, _ = begun.lower().partition("$")
    if dollar:
        names = [f"{name}${system}" for name in names if name.lower() == base for system in SYSTEM_TABLES]
    return names


def _list_columns(session: Session, text: str, begun: str) -> list[str]:
    """Return the columns that can replace `begun`, the word before the cursor, in an incomplete statement.

    After names and dots, these are the columns of that table, or the fields of that column. Names with other characters
    than letters are quoted.
    """
    qualifier, dot, _ = begun.rpartition(".")
    path = qualifier.lower().split(".") if dot else []
    found: list[str] = []
    try:
        # Without a dot, subqueries are left out, because planning them takes longer.
        sources = [source for source in _find_sources(text) if path or source.parts]
    except InvalidRequest:
        return []
    if path and not any(source.count_qualifier_parts(path) for source in sources):
        sources.append(_Source(tuple(qualifier.split("."))))  # its FROM may follow later
    for source in sources:
        columns = source.read_columns(session)
        if columns is not None:
            skipped = source.count_qualifier_parts(path)
            found += [f"{qualifier}{dot}{_quote_name(name)}" for name in _list_fields(columns, path[skipped:])]
    return found


def _quote_name(name: str) -> str:
    return name if _PLAIN.match(name) else quote_identifier(name)


def _list_fields(columns: pa.Schema, path: Sequence[str]) -> list[str]:
    """Return the names of the columns, or of the fields of the ROW that a path names."""
    fields = list(columns)
    for part in path:
        inner = next((f.type for f in fields if f.name.lower() == part), None)
        fields = list(inner) if inner is not None and pa.types.is_struct(inner) else []
    return [f.name for f in fields]


def _find_sources(text: str) -> Iterator[_Source]:
    """Yield the tables and the subqueries that a statement names. InvalidRequest if a quote is still open."""
    tokens = tokenize(text)
    for position, token in enumerate(tokens):
        word = token.text.upper() if token.kind == "word" else ""
        if word in _BEFORE_TABLE:
            yield from _read_tables(tokens, position + 1)
        elif token.text == "(" and token.kind == "symbol" and tokens[position + 1].text.upper() in QUERY_WORDS:
            yield from _read_subquery(text, tokens, position)


def _read_tables(tokens: Sequence[Token], position: int) -> Iterator[_Source]:
    """Yield the tables of a list with commas, each with its alias."""
    while tokens[position].kind in ("word", "quoted"):
        parts = [tokens[position].text]
        position += 1
        while tokens[position].text == "." and tokens[position + 1].kind in ("word", "quoted"):
            parts.append(tokens[position + 1].text)
            position += 2
        position = _skip_clauses(tokens, position)
        alias, position = _read_alias(tokens, position)
        yield _Source(tuple(parts[-3:]), alias=alias)
        if tokens[position].text != ",":
            return
        position += 1


def _skip_clauses(tokens: Sequence[Token], position: int) -> int:
    """Return the position after a hint and a time travel."""
    while tokens[position].kind == "hint":
        position += 1
    if tokens[position].text.upper() in _BEFORE_TRAVEL:
        while tokens[position].kind == "word":
            position += 1
        position += tokens[position].kind in ("literal", "number")
    return position


def _read_alias(tokens: Sequence[Token], position: int) -> tuple[str, int]:
    position += tokens[position].text.upper() == "AS"
    token = tokens[position]
    is_alias = token.kind == "quoted" or (token.kind == "word" and token.text.upper() not in _AFTER_TABLE)
    return (token.text, position + 1) if is_alias else ("", position)


def _read_subquery(text: str, tokens: Sequence[Token], first: int) -> Iterator[_Source]:
    """Yield the subquery in parentheses if it has a name after it, or before it in WITH."""
    depth, position = 1, first + 1
    while depth and tokens[position].kind != "end":
        depth += (tokens[position].text == "(") - (tokens[position].text == ")")
        position += 1
    if depth:
        return
    query = text[tokens[first].end : tokens[position - 1].start]
    alias, _ = _read_alias(tokens, position)
    if first > 1 and tokens[first - 1].text.upper() == "AS":
        alias = tokens[first - 2].text
    if alias:
        yield _Source(query=query, alias=alias)


@frozen
class _Source:
    """A table, a view or a subquery that a statement reads, with the names it has there."""

    # name of a table or a view; empty for a subquery
    parts: tuple[str, ...] = ()
    # text of a subquery
    query: str = ""
    # another name for the table, the view or the subquery; empty if there is none
    alias: str = ""

    def count_qualifier_parts(self, path: Sequence[str]) -> int:
        """Return how many parts at the beginning of a path name this source."""
        if self.alias and path[:1] == [self.alias.lower()]:
            return 1
        parts = [part.lower() for part in self.parts]
        return max((n for n in range(1, len(path) + 1) if path[:n] == parts[-n:]), default=0)

    def read_columns(self, session: Session) -> pa.Schema | None:
        """Return the columns; None if they cannot be read."""
        try:
            if self.parts and not (len(self.parts) == 1 and self.parts[0].lower() in session.views):
                return session.open(TableName(self.parts)).arrow_schema
            text = self.query or f"SELECT * FROM {quote_identifier(self.parts[0])}"
            return describe_query(session, plan_query(session, parse_query(StatementReader(text)), {}))
        except PaimonError:
            return None
