"""Words that complete a statement: keywords, tables, columns, options and procedures.

Invariant: completion reads metadata only, and an error of the catalog leads to fewer words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from paimon.domain.errors import PaimonError
from paimon.domain.options.known_options import OPTIONS
from paimon.procedures.registry import PROCEDURES
from paimon.sql.parse import list_statement_words
from paimon.sql.session import Session
from paimon.sql.statements import TableName
from paimon.system_table import SYSTEM_TABLES

_CLAUSES = (
    *("AND", "AS", "ASC", "BETWEEN", "BUCKET", "BY", "CASE", "CAST", "COMMENT", "COUNT", "DESC", "DISTINCT", "ELSE"),
    *("END", "ENFORCED", "EXISTS", "FROM", "GROUP", "HAVING", "IF", "IN", "INTO", "IS", "JOIN", "KEY", "LEFT", "LIKE"),
    *("LIMIT", "NOT", "NULL", "ON", "OR", "ORDER", "OVERWRITE", "PARTITION", "PARTITIONED", "PRIMARY", "SET", "SUM"),
    *("TABLE", "THEN", "TIMESTAMP AS OF", "UNION", "USING", "VALUES", "VERSION AS OF", "WHEN", "WHERE", "WITH"),
)
_TABLES = re.compile(r"\b(?:FROM|JOIN|INTO|UPDATE|TABLE|OVERWRITE|DESCRIBE|DESC)\s+([\w.$`]+)", re.IGNORECASE)
_AFTER_TABLE_WORD = re.compile(
    r"\b(?:FROM|JOIN|INTO|UPDATE|TABLE|OVERWRITE|DESCRIBE|DESC|COLUMNS IN)\s+[\w.$`]*\Z", re.I
)
_IN_TEXT = re.compile(r"'[^']*\Z")
_PROCEDURE = re.compile(r"\bCALL\s+(?:sys\.)?\w*\Z", re.IGNORECASE)
WORD = re.compile(r"[\w.$-]*\Z")
"""The word before the cursor."""


def complete(session: Session, before: str) -> list[str]:
    """Return the words that continue a text.

    Parameters
    ----------
    session : Session
        Whose names are completed.
    before : str
        The text before the cursor.

    Returns
    -------
    list of str
        Whole words in alphabetical order, which begin with the word before the cursor in any case.
    """
    match = WORD.search(before)
    begun = match.group().lower() if match else ""
    if begun and before.count("'") % 2 and _IN_TEXT.search(before):
        candidates: Iterable[str] = OPTIONS
    elif _PROCEDURE.search(before):
        candidates = [f"sys.{name}" for name in (*PROCEDURES, "help", "repair")]
    elif _AFTER_TABLE_WORD.search(before):
        candidates = _list_tables(session, begun)
    else:
        candidates = [*list_statement_words(), *_CLAUSES, *_list_columns(session, before)]
    return sorted({word for word in candidates if word.lower().startswith(begun)}, key=str.lower)


def _list_tables(session: Session, begun: str) -> list[str]:
    try:
        catalog, here = session.catalog(), session.database
        databases = catalog.databases()
        names = [*session.views, *(catalog.tables(here) if here in databases else [])]
        names += [f"{database}.{table}" for database in databases for table in catalog.tables(database)]
    except PaimonError:
        return []
    base, dollar, _ = begun.partition("$")
    if dollar:
        names = [f"{name}${system}" for name in names if name.lower() == base for system in SYSTEM_TABLES]
    return names


def _list_columns(session: Session, before: str) -> list[str]:
    found: list[str] = []
    for name in _TABLES.findall(before):
        try:
            found += session.open(TableName(tuple(name.replace("`", "").split(".")))).arrow_schema.names
        except PaimonError:  # the table does not exist, or not yet
            continue
    return found
