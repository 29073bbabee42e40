"""Explain why the parser of queries refused a text: what it expected, and where.

Invariant: no message contains the name of a class of the parser.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches
from itertools import pairwise

from attrs import frozen

from paimon.domain.types.sql_tokens import Token

_CLAUSES = ("FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET", "JOIN", "UNION", "SELECT", "WINDOW", "AND")
"""Words that are often misspelled, and then read as the name of a column or a table."""
_CLOSE = 0.74
"""FORM is as close to FROM as this; a column such as WORD is less close to ORDER."""
_BEFORE_BY = ("GROUP", "ORDER", "PARTITION")
_BEFORE_JOIN = ("LEFT", "RIGHT", "FULL", "INNER", "OUTER", "CROSS", "NATURAL")
_WANTED = {"table name": "the name of a table", "TYPE after CAST": "a type after AS"}
_CLAUSE_WORDS = frozenset({
    "ALL", "AND", "ANTI", "ANY", "AS", "ASC", "ASOF", "BETWEEN", "BY", "CASE", "CAST", "COLLATE", "CROSS",
    "DEFAULT", "DESC", "DISTINCT", "ELSE", "END", "ESCAPE", "EXCEPT", "FALSE", "FETCH", "FILTER", "FOR", "FROM",
    "FULL", "GROUP", "HAVING", "ILIKE", "IN", "INNER", "INTERSECT", "INTO", "IS", "ISNULL", "JOIN", "LATERAL",
    "LEFT", "LIKE", "LIMIT", "NATURAL", "NOT", "NOTNULL", "NULL", "OFFSET", "ON", "OR", "ORDER", "OUTER", "OVER",
    "PIVOT", "POSITIONAL", "QUALIFY", "RIGHT", "SELECT", "SEMI", "SIMILAR", "SOME", "TABLESAMPLE", "THEN", "TRUE",
    "UNION", "UNPIVOT", "USING", "VALUES", "WHEN", "WHERE", "WINDOW", "WITH", "WITHIN",
})  # fmt: skip
"""Words that begin or continue a clause. Without AS or quotes, they are not an alias."""
_LAST_WORDS = frozenset(("ALL", "ASC", "DEFAULT", "DESC", "END", "FALSE", "ISNULL", "NOTNULL", "NULL", "TRUE"))
"""Words that may end a clause."""
_SET_OPERATIONS = ("UNION", "INTERSECT", "EXCEPT")
_FREE_JOINS = ("CROSS", "NATURAL", "POSITIONAL")
"""Joins without a condition, by the words before JOIN."""
_MISSING = re.compile(r"Required keyword: '(\w+)'")
_NAMED = {"high": "AND and a value"}
"""Missing parts of nodes by name; all others are expressions."""


@frozen
class Explanation:
    """Where a statement is invalid, and why."""

    # What was expected
    reason: str
    position: int
    # What the user may have meant
    hint: str | None = None


def explain_refusal(description: str, tokens: Sequence[Token], place: int, is_last: bool) -> Explanation:
    """Explain a parser error: what was expected, and where.

    `tokens` is not empty. `place` is the index of the token at which the parser stopped, or of the last token if the
    text ended too early. `is_last` is true if no token follows it.
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


def find_unfinished_clause(tokens: Sequence[Token], aliases: Sequence[int]) -> Explanation | None:
    """Find a clause that ends too early, although the parser accepts the query; aliases are numbers of tokens."""
    for number in aliases:
        token, before = tokens[number], tokens[max(number - 1, 0)]
        is_clause = token.kind == "word" and token.text.upper() in _CLAUSE_WORDS
        if is_clause and (not _is_word(before, "AS") or _is_word(token, "AS")):
            hint = f'complete the clause, or write AS "{token.text}" for an alias'
            return Explanation(f"unexpected {_show(token)}", token.start, hint)
    return _find_unfinished_end(tokens) or _find_unfinished_join(tokens) or _find_unfinished_fetch(tokens)


def _find_unfinished_end(tokens: Sequence[Token]) -> Explanation | None:
    """Find a word that needs more at the end of a query or before ``)``, and a parenthesis that is not closed."""
    depth = 0
    for before, token, after in zip((None, *tokens), tokens, (*tokens[1:], None), strict=False):
        depth += {"(": 1, ")": -1}.get(token.text, 0) if token.kind == "symbol" else 0
        is_last = after is None or (after.kind == "symbol" and after.text == ")")
        is_name = before is not None and before.text.upper() in (".", "AS")
        if is_last and not is_name and _is_word(token, *_CLAUSE_WORDS - _LAST_WORDS):
            return Explanation(f"expected more after {_show(token)}", token.end)
    return Explanation("expected ), not the end of the statement", tokens[-1].end) if depth > 0 else None


def _find_unfinished_join(tokens: Sequence[Token]) -> Explanation | None:
    """Find a join without a condition; conditions may follow several joins."""
    open_joins: list[list[Token]] = [[]]
    for before, token in pairwise((*tokens[:1], *tokens)):
        if token.kind == "symbol" and token.text in "([{":
            open_joins.append([])
        elif _is_word(token, *_SET_OPERATIONS) or (token.kind == "symbol" and token.text in ")]}"):
            if open_joins[-1]:
                break
            if token.kind == "symbol" and len(open_joins) > 1:
                open_joins.pop()
        elif _is_word(token, "JOIN") and before.text != "." and not _is_word(before, *_FREE_JOINS):
            open_joins[-1].append(token)
        elif _is_word(token, "ON", "USING") and not _is_word(before, "DISTINCT") and open_joins[-1]:
            open_joins[-1].pop()
    missing = next((joins[-1] for joins in reversed(open_joins) if joins), None)
    if missing is None:
        return None
    return Explanation("expected a condition for JOIN", missing.start, "write ON, USING, or CROSS JOIN")


def _find_unfinished_fetch(tokens: Sequence[Token]) -> Explanation | None:
    """Find a FETCH that is not ``FETCH FIRST n ROWS ONLY``, and a WINDOW without its definition."""
    words = [token.text.upper() if token.kind in ("word", "number") else "" for token in tokens]
    for number, word in enumerate(words):
        following = " ".join(words[number + 1 : number + 6])
        if word == "FETCH" and not re.match(r"(FIRST|NEXT) (\d+ (PERCENT )?)?ROWS? (ONLY|WITH TIES)\b", following):
            return Explanation(
                "FETCH is not complete", tokens[number].start, "write FETCH FIRST 10 ROWS ONLY, or LIMIT 10"
            )
        if word == "WINDOW" and re.fullmatch(r"\w+( AS)?", following):
            return Explanation("WINDOW is not complete", tokens[number].start, "write WINDOW w AS (PARTITION BY …)")
    return None


def _is_word(token: Token, *words: str) -> bool:
    return token.kind == "word" and token.text.upper() in words


def _explain_unexpected(tokens: Sequence[Token], place: int) -> Explanation:
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


def _ends_operand(token: Token) -> bool:
    """Return whether a word after this token would be an alias."""
    return token.text in ("*", ")") or (token.kind != "symbol" and token.text.upper() not in _CLAUSES)


def _list_following(before: Sequence[Token]) -> str:
    """Return what can follow in a list of columns, or after the tables."""
    clauses = [token.text.upper() for token in before if token.kind == "word"]
    last = next((word for word in reversed(clauses) if word in ("SELECT", "FROM")), "FROM")
    if last == "SELECT":
        return "',', an operator or FROM"
    return "',', an operator or a clause such as JOIN, WHERE, GROUP BY, ORDER BY or LIMIT"


def _show(token: Token) -> str:
    return f"the text '{token.text}'" if token.kind == "literal" else repr(token.text)
