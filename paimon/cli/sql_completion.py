"""Words that complete a statement: keywords, tables, columns, options and procedures.

Invariant: completion reads metadata only, and an error of the catalog leads to fewer words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from paimon.cli.completed_columns import list_columns
from paimon.domain.errors import PaimonError
from paimon.domain.options.known_options import OPTIONS
from paimon.procedures.registry import HELP, PROCEDURES, REPAIR
from paimon.sql.parse.parse_script import list_statement_words
from paimon.sql.session import OPTION_PREFIX, Session
from paimon.system_table import SYSTEM_TABLES

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
    """Return the words that continue a text, whole and in alphabetical order.

    They begin with the word before the cursor, in any case of letters.
    """
    match = WORD.search(before)
    begun = match.group() if match else ""
    found = _list_candidates(session, before, after, begun)
    wanted = begun.lower()
    return sorted({word for word in found if word.replace('"', "").lower().startswith(wanted)}, key=str.lower)


def _list_candidates(session: Session, before: str, after: str, begun: str) -> Iterable[str]:
    if before.count("'") % 2 and _IN_TEXT.search(before):
        return _list_texts(session, before, begun)
    if _PROCEDURE.search(before):
        return [f"sys.{name}" for name in (*PROCEDURES, HELP, REPAIR)]
    call = _ARGUMENT.search(before)
    if call:
        procedure = PROCEDURES.get(call["name"].lower())
        return [f"{name} => " for name in ("table", *(p.name for p in procedure.parameters))] if procedure else []
    if _AFTER_DATABASE_WORD.search(before):
        return _list_databases(session)
    if _AFTER_TABLE_WORD.search(before):
        return _list_tables(session, begun)
    return [*list_statement_words(), *_CLAUSES, *list_columns(session, f"{before} {after}", begun)]


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
