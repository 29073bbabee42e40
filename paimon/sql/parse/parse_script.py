"""Parse scripts: split them into statements, and parse each by its first words.

Invariant: a statement is read to its end or refused. A statement that is not supported is refused by its name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from attrs import frozen

from paimon.domain.errors import PaimonError, Unsupported, did_you_mean
from paimon.domain.types.sql_tokens import StatementReader, split_statements
from paimon.sql.parse.parse_catalogs import CATALOG_READERS, parse_call
from paimon.sql.parse.parse_query import QUERY_WORDS, parse_query
from paimon.sql.parse.parse_rows import ROW_READERS
from paimon.sql.parse.parse_tables import REFUSED_READERS, TABLE_READERS
from paimon.sql.parse.statements import Explain, Statement

Read = Callable[[StatementReader], Statement]
_FEW_WORDS = 2
"""A statement whose first word has so few continuations is a mistake; other words may name a statement elsewhere."""


@frozen(eq=False)
class ParsedStatement:
    """A statement with its text and its line in the script."""

    statement: Statement
    # Without comments
    text: str
    # Line number of the first word
    line: int


def parse_script(script: str) -> list[ParsedStatement]:
    """Parse all statements of a script, which are separated by semicolons; empty if it has only comments.

    Raises `Unsupported` if a statement is not supported.
    """
    parsed = []
    for reader in split_statements(script):
        line, text = reader.line_of_next(), reader.text.strip()
        parsed.append(ParsedStatement(parse_statement(reader), text, line))
    return parsed


def parse_statement(reader: StatementReader) -> Statement:
    """Parse one statement to its end; raise `Unsupported` for an unknown kind of statement."""
    if reader.current.text.upper() in QUERY_WORDS:  # no reader begins with one of them
        return parse_query(reader)
    for words, read in (*REFUSED_READERS.items(), *_READERS.items()):
        if reader.read_if_next(*words):
            statement = read(reader)
            reader.expect_end()
            return statement
    return _refuse(reader)


def _refuse(reader: StatementReader) -> Statement:
    first = reader.current
    if first.kind != "word":
        raise reader.error(f"expected a statement, not {reader.describe_next()}", hint=_list_statements())
    following = reader.tokens[reader.position + 1 :][:2]
    if following[0].text == ".":
        name = f"{first.text}.{following[-1].text}"
        raise reader.error(f"expected a statement, not the name {name!r}", hint=f"write SELECT * FROM {name}")
    words = _next_words(reader, 2)
    known = {words[0] for words in _READERS} | set(QUERY_WORDS)
    if words[0] in known:
        raise _refuse_second_word(reader, words)
    if words[0] in _OTHER_STATEMENTS:
        raise Unsupported(f"statement {words[0]}", hint=_WAYS.get(words[0]) or _list_statements())
    near = did_you_mean(words[0], known) or ""
    hint = near if near.startswith("did") else _list_statements()
    raise reader.error(f"expected a statement, not {first.text!r}", hint=hint)


def _next_words(reader: StatementReader, count: int) -> list[str]:
    return [t.text.upper() for t in reader.tokens[reader.position : reader.position + count] if t.kind == "word"]


def _refuse_second_word(reader: StatementReader, words: list[str]) -> PaimonError:
    """Return the error for a statement whose first word is known."""
    same = [w for w in _READERS if w[:2] == tuple(words)]
    longer = sorted({" ".join(w) for w in same or _READERS if w[0] == words[0]})
    seconds = sorted({w[1] for w in _READERS if w[0] == words[0] and len(w) > 1})
    if same:
        raise Unsupported(f"statement {' '.join(_next_words(reader, 3))}", hint=f"did you mean {' or '.join(longer)}?")
    near = (did_you_mean(words[1], seconds) if len(words) > 1 else None) or ""
    hint = f"statements with {words[0]}: {', '.join(longer)}"
    if near.startswith("did"):
        hint = near.replace("'", f"'{words[0]} ", 1)
    if len(words) == 1 or len(seconds) <= _FEW_WORDS:
        reader.advance()
        wanted = " or ".join(filter(None, (", ".join(seconds[:-1]), seconds[-1])))
        return reader.error(f"expected {wanted} after {words[0]}, not {reader.describe_next()}", hint=hint)
    return Unsupported(f"statement {' '.join(words)}", hint=hint)


def _list_statements() -> str:
    words = sorted({words[0] for words in _READERS} | {word for word in QUERY_WORDS if word.isalpha()})
    return f"statements begin with {', '.join(words)}"


def _explain(reader: StatementReader) -> Statement:
    if reader.read_if_next("ANALYZE"):
        raise Unsupported("EXPLAIN ANALYZE", hint="EXPLAIN shows the plan without running the statement")
    reader.read_if_next("PLAN", "FOR")
    return Explain(parse_statement(reader))


_READERS: Mapping[tuple[str, ...], Read] = {
    ("EXPLAIN",): _explain,
    ("CALL",): parse_call,
    **CATALOG_READERS,
    **TABLE_READERS,
    **ROW_READERS,
}
"""Readers by the first words of a statement; longer beginnings come before shorter ones."""
_OTHER_STATEMENTS = frozenset(
    (
        *("ATTACH", "BEGIN", "CACHE", "CLEAR", "COMMIT", "DECLARE", "DETACH", "EXECUTE"),
        *("EXPORT", "GRANT", "IMPORT", "INSTALL", "LIST", "LOAD", "MSCK", "OPTIMIZE", "PRAGMA"),
        *("PREPARE", "REPAIR", "REPLACE", "RESTORE", "REVOKE", "ROLLBACK", "START", "SUMMARIZE"),
        *("UNCACHE", "UPSERT", "VACUUM", "COMPACT", "STOP", "ADD", "REMOVE", "EXECUTE", "TABLE"),
    )
)
"""First words of statements that other systems have."""


_WAYS: Mapping[str, str] = {
    **dict.fromkeys(("OPTIMIZE", "COMPACT"), "CALL sys.compact('database.table') compacts a table"),
    "VACUUM": (
        "CALL sys.expire_snapshots('database.table') removes old snapshots, CALL sys.remove_orphan_files the rest"
    ),
    **dict.fromkeys(("ROLLBACK", "RESTORE"), "CALL sys.rollback('database.table', 'snapshot or tag') restores a state"),
    **dict.fromkeys(
        ("LOAD", "IMPORT", "EXPORT"),
        "INSERT INTO table SELECT * FROM read_csv('path') loads a file, COPY table TO 'path' writes one",
    ),
    **dict.fromkeys(("MSCK", "REPAIR"), "each statement reads the latest snapshot, with all partitions: leave it out"),
    **dict.fromkeys(("CACHE", "UNCACHE"), "CREATE TEMPORARY VIEW name AS SELECT … names a query, and keeps no rows"),
    **dict.fromkeys(("UPSERT", "REPLACE"), "INSERT INTO replaces the rows of the same primary key"),
    **dict.fromkeys(("PRAGMA", "LIST"), "SHOW TABLES lists tables, DESCRIBE table its columns"),
    **dict.fromkeys(("BEGIN", "START", "COMMIT"), "each statement is a commit of its own: leave it out"),
    "ATTACH": "CREATE CATALOG name WITH ('warehouse' = 'path') opens another warehouse",
}
"""What does the work of the statements of other systems."""


def list_statement_words() -> list[str]:
    """Return the first words of all statements, for help and completion."""
    return sorted({" ".join(words) for words in _READERS} | {word for word in QUERY_WORDS if word.isalpha()})
