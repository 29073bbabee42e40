"""Explain why the parser of queries refused a text: what it expected, and where.

Invariant: no message contains the name of a class of the parser.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches

from attrs import frozen

from paimon.sql.parse.lexer import SqlToken

_CLAUSES = ("FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET", "JOIN", "UNION", "SELECT", "WINDOW", "AND")
"""Words that are often misspelled, and then read as the name of a column or a table."""
_CLOSE = 0.74
"""FORM is as close to FROM as this; a column such as WORD is less close to ORDER."""
_BEFORE_BY = ("GROUP", "ORDER", "PARTITION")
_BEFORE_JOIN = ("LEFT", "RIGHT", "FULL", "INNER", "OUTER", "CROSS", "NATURAL")
_WANTED = {"table name": "the name of a table", "TYPE after CAST": "a type after AS"}
_MISSING = re.compile(r"Required keyword: '(\w+)'")
_NAMED = {"high": "AND and a value"}
"""Missing parts of nodes by name; all others are expressions."""


@frozen
class Explanation:
    """Where a text goes wrong.

    Parameters
    ----------
    reason : str
        What was expected.
    position : int
        The position in the text.
    hint : str, optional
        What the user may have meant.
    """

    reason: str
    position: int
    hint: str | None = None


def explain_refusal(description: str, tokens: Sequence[SqlToken], place: int, is_last: bool) -> Explanation:
    """Explain an error of the parser.

    Parameters
    ----------
    description : str
        What the parser says.
    tokens : sequence of SqlToken
        The text; at least one token.
    place : int
        The token at which the parser stopped. If the text ended too early, it is the last one that was read.
    is_last : bool
        Whether there is no other token behind it.

    Returns
    -------
    Explanation
        The reason, and where.
    """
    token = tokens[place]
    # A closing parenthesis can end a text that lacks something before it; after other tokens, something is missing.
    has_ended = is_last and token.text != ")"
    at = tokens[-1].end if has_ended else token.start
    found = "the end of the statement" if has_ended else _show(token)
    if description.startswith(("Expecting ", "Expected ")):
        wanted = description.split(" ", 1)[1].partition(" but got")[0].rstrip(".")
        if wanted == "END after CASE" and not has_ended:
            following = tokens[place + 1]
            return Explanation(f"expected END after CASE, not {_show(following)}", following.start)
        return Explanation(f"expected {_WANTED.get(wanted, wanted)}, not {found}", at)
    missing = _MISSING.match(description)
    if missing:
        wanted = _NAMED.get(missing[1], "an expression")
        return Explanation(f"expected {wanted}, not {found}", at)
    return _explain_unexpected(tokens, place)


def _explain_unexpected(tokens: Sequence[SqlToken], place: int) -> Explanation:
    token, before = tokens[place], tokens[max(place - 1, 0)]
    word, word_before = token.text.upper(), before.text.upper()
    if before.kind == "word" and word_before in _BEFORE_BY:
        return Explanation(f"expected BY after {word_before}, not {_show(token)}", token.start)
    if token.kind == "word" and word in _BEFORE_JOIN and place + 1 < len(tokens):
        following = tokens[place + 1]
        return Explanation(f"expected JOIN after {word}, not {_show(following)}", following.start)
    # A misspelled clause is read as an alias, and the parser stops behind it.
    aliases = [before, token] if place > 1 and _ends_operand(tokens[place - 2]) else [token]
    for one in aliases:
        near = get_close_matches(one.text.upper(), _CLAUSES, n=1, cutoff=_CLOSE) if one.kind == "word" else []
        if near and one.text.upper() not in _CLAUSES:
            return Explanation(f"unexpected {_show(one)}", one.start, f"did you mean {near[0]!r}?")
    return Explanation(f"expected {_list_following(tokens[:place])}, not {_show(token)}", token.start)


def _ends_operand(token: SqlToken) -> bool:
    """Return whether a word after this token would be an alias."""
    return token.text in ("*", ")") or (token.kind != "symbol" and token.text.upper() not in _CLAUSES)


def _list_following(before: Sequence[SqlToken]) -> str:
    """Return what can follow in a list of columns, or after the tables."""
    clauses = [token.text.upper() for token in before if token.kind == "word"]
    last = next((word for word in reversed(clauses) if word in ("SELECT", "FROM")), "FROM")
    if last == "SELECT":
        return "',', an operator or FROM"
    return "',', an operator or a clause such as JOIN, WHERE, GROUP BY, ORDER BY or LIMIT"


def _show(token: SqlToken) -> str:
    return f"the text '{token.text}'" if token.kind == "literal" else repr(token.text)
