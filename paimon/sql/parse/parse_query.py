"""Parse queries with sqlglot in DuckDB's dialect; hints, time travel and names with ``$`` are read before.

Invariant: the tree names each table by an entry of `Query.tables`, and positions of errors are those of the script.
"""

# sqlglot does not know Paimon's clauses, and where it knows similar ones, it reads only a part of them. So they are cut
# out of the text before, and the table they belong to is named by a mark:
#
#     SELECT id FROM shop.`order items` /*+ OPTIONS('scan.mode' = 'latest') */ VERSION AS OF 3 WHERE id > 1 -- all
#     SELECT id FROM "__paimon_name_0_3" WHERE id > 1
#
# `_NormalText.options` has, by mark, the name and the options: `shop.order items`, scan.mode and scan.version. Both
# clauses can follow one table; the second finds the mark of the first and adds to it. After the parse `_name_tables`
# gives each table of the tree a short name, an entry of `Query.tables`.
#
# A mark is not as long as what it replaces, so positions in the two texts differ. `_starts` has, for each token of the
# text for the parser, its position there and in the statement. An error of sqlglot has a line and a column of its text;
# `_find_token` finds the token at this place, and the error shows the token in the statement.
#
# sqlglot also accepts what is certainly a mistake: it skips a comma with nothing before it, and reads the first word of
# a clause that is not complete as an alias (`FROM t WHERE` has a table with the alias WHERE). `_check_commas` and
# `find_unfinished_clause` look for these; `query_errors.py` explains the errors that it reports itself.

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count, pairwise

import sqlglot
from attrs import define, evolve, field
from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError

from paimon.domain.errors import InvalidRequest, Unsupported
from paimon.domain.types.sql_tokens import StatementReader, Token, syntax_error
from paimon.domain.types.type_text import quote_identifier
from paimon.sql.parse.query_errors import explain_refusal, find_unfinished_clause
from paimon.sql.parse.query_tree import DIALECT, iterate_aliases
from paimon.sql.parse.statements import Options, Query, TableName

QUERY_WORDS = ("SELECT", "WITH", "VALUES", "FROM", "PIVOT", "UNPIVOT", "(")
"""The words that begin a query."""
_FIRST_WORDS = frozenset(word for word in QUERY_WORDS if word.isalpha())
_MARK = "__paimon_name_"
_HINT = "write /*+ OPTIONS('key' = 'value') */ after the name of a table"
_TRAVEL: Mapping[tuple[str, ...], str] = {
    ("VERSION", "AS", "OF"): "scan.version",
    ("FOR", "VERSION", "AS", "OF"): "scan.version",
    ("FOR", "SYSTEM_VERSION", "AS", "OF"): "scan.version",
    ("TIMESTAMP", "AS", "OF"): "scan.timestamp",
    ("FOR", "TIMESTAMP", "AS", "OF"): "scan.timestamp",
    ("FOR", "SYSTEM_TIME", "AS", "OF"): "scan.timestamp",
}
_TRAVEL_HINTS = {
    "scan.version": "write the id of a snapshot, or a tag in quotes",
    "scan.timestamp": "write a time such as '2026-01-31 23:59:59', without functions and arithmetic",
}
_TRAVEL_WORDS = frozenset(words[0] for words in _TRAVEL)
_RESERVED = ("SELECT", "FROM", "JOIN", "WHERE", "ON", "AND", "OR", "BY", "AS", "WITH", "DISTINCT", "ALL", "UNION")
"""Words that are not the name of a table before a hint."""
FILE_FORMATS: Mapping[str, str] = {f"read_{form}": form for form in ("parquet", "csv", "json", "orc", "avro", "arrow")}
"""The table functions that read files, and the format of each."""
_HEXADECIMAL = re.compile("[0-9a-fA-F]*")
_TYPES = {"BYTES": "BLOB", "TIMESTAMP_LTZ": "TIMESTAMPTZ", "TIMESTAMP_NTZ": "TIMESTAMP"}
"""Types of Flink and Spark by their names in DuckDB, where the parser does not know them."""


def begins_subquery(tokens: Sequence[Token], place: int) -> bool:
    """Return whether the token at index `place` is an open parenthesis that a query follows."""
    token = tokens[place]
    if token.kind != "symbol" or token.text != "(":
        return False
    following = tokens[place + 1]
    return following.kind == "word" and following.text.upper() in _FIRST_WORDS


def parse_query(reader: StatementReader) -> Query:
    """Read a query from its first word to the end of its statement.

    Raises `Unsupported` if the query contains a clause that is not supported.
    """
    tokens = [token for token in reader.tokens[reader.position :] if token.kind != "end"]
    body = reader.rest()
    normal = _NormalText(reader.text.rstrip(), reader.first_line, tokens)
    try:
        return _to_query(normal.parse(), body, normal.options)
    except RecursionError as error:
        raise InvalidRequest("The query is nested too deep.", hint="split it with CREATE TEMPORARY VIEW") from error


def _to_query(tree: exp.Expression, body: str, marked: Mapping[str, tuple[tuple[str, ...], Options]]) -> Query:
    """Return a query from its tree; raise `Unsupported` if the tree is that of another statement."""
    if isinstance(tree, exp.Values):
        after = {part: tree.args.pop(part) for part in ("order", "limit", "offset") if tree.args.get(part)}
        tree = exp.select("*").from_(exp.alias_(tree, "v", table=True))
        for part, node in after.items():
            tree.set(part, node)
    if isinstance(tree, exp.Pivot):
        tree = exp.select("*").from_(exp.Subquery(this=tree))
    if not isinstance(tree, exp.Query):
        words = body.split(None, 1)[0].upper()
        raise Unsupported(f"statement {words}", hint="a query begins with SELECT, WITH, VALUES or FROM")
    return Query(body, *_name_tables(tree, marked))


@define
class _NormalText:
    """The text that sqlglot parses, with the positions of its tokens in the statement. Other tokens become blanks."""

    text: str
    first_line: int
    tokens: list[Token]
    options: dict[str, tuple[tuple[str, ...], Options]] = field(factory=dict)
    """By mark: the parts of the table's name, and the options of its hint and its time travel."""
    _starts: list[tuple[int, int]] = field(factory=list)

    def parse(self) -> exp.Expression:
        """Return the syntax tree."""
        self._check_commas()
        sql = self._build()
        try:
            trees = sqlglot.parse(sql, dialect=DIALECT)
        except SqlglotError as error:
            raise self._to_syntax_error(error, sql) from error
        if len(trees) != 1 or trees[0] is None:
            raise syntax_error(self.text, len(self.text), "expected one query", first_line=self.first_line)
        self._check_clauses(trees[0])
        return trees[0]

    def _check_clauses(self, tree: exp.Expression) -> None:
        """Refuse a clause that ends too early, which the parser would read as an alias or leave out."""
        aliases = [self._find_token(node.meta["start"]) for node in iterate_aliases(tree) if "start" in node.meta]
        found = find_unfinished_clause(self.tokens, aliases)
        if found is not None:
            raise syntax_error(self.text, found.position, found.reason, found.hint, self.first_line)

    def _find_token(self, offset: int) -> int:
        """Return the number of the token at an offset of the text for the parser."""
        place = max(bisect_right(self._starts, max(offset, 0), key=lambda pair: pair[0]) - 1, 0)
        at = self._starts[place][1] if self._starts else 0
        return max(bisect_right(self.tokens, at, key=lambda token: token.start) - 1, 0)

    def _check_commas(self) -> None:
        """Refuse a comma without an expression before it, because the parser would ignore it."""
        for before, token in pairwise(self.tokens):
            if token.text == "," and token.kind == "symbol" and _needs_expression(before):
                raise syntax_error(
                    self.text, token.start, "expected an expression, not ','", first_line=self.first_line
                )

    def _build(self) -> str:
        """Replace hints, time travel and quoted names, and copy all else."""
        parts: list[str] = []
        length = position = 0
        for token, text in self._replace_clauses(self.tokens):
            gap = "".join(c if c == "\n" else " " for c in self.text[position : token.start])
            self._starts.append((length + len(gap), token.start))
            parts += [gap, text]
            length, position = length + len(gap) + len(text), token.end
        return "".join(parts)

    def _replace_clauses(self, tokens: list[Token]) -> Iterator[tuple[Token, str]]:
        """Yield each token with its text for the parser."""
        found: list[tuple[Token, str]] = []
        position = 0
        while position < len(tokens):
            clause = self._read_clause(tokens, position)
            if clause is None:
                written = self._read_bytes(tokens, position) or (tokens[position], self._to_text(tokens[position]))
                found.append(written)
                position += 2 if written[0].end > tokens[position].end else 1
                continue
            options, position = clause
            found = self._mark_table(found, options, tokens[min(position, len(tokens)) - 1])
        yield from found

    def _to_text(self, token: Token) -> str:
        if token.kind == "quoted" or (token.kind == "word" and "$" in token.text):
            return quote_identifier(token.text)
        return self.text[token.start : token.end]

    def _read_bytes(self, tokens: list[Token], position: int) -> tuple[Token, str] | None:
        """Return a literal such as ``X'00FF'`` as a call that DuckDB and Spark have; None for another token."""
        first, *following = tokens[position : position + 2]
        if first.kind != "word" or first.text.upper() != "X":
            return None
        if not following or following[0].kind != "literal" or following[0].start != first.end:
            return None
        digits = following[0].text
        if len(digits) % 2 or not _HEXADECIMAL.fullmatch(digits):
            reason = f"{digits!r} is not a text of bytes"
            hint = "write two hexadecimal digits for each byte, such as X'00FF'"
            raise syntax_error(self.text, following[0].start, reason, hint, self.first_line)
        return evolve(first, end=following[0].end), f"unhex('{digits}')"

    def _read_clause(self, tokens: list[Token], position: int) -> tuple[Options, int] | None:
        """Read a hint or a time travel; return its options and the position after it."""
        token = tokens[position]
        if token.kind == "hint":
            return self._parse_hint(token), position + 1
        if token.kind != "word" or token.text.upper() not in _TRAVEL_WORDS:
            return None
        for words, key in _TRAVEL.items():
            ahead = tokens[position : position + len(words)]
            if tuple(t.text.upper() for t in ahead if t.kind == "word") == words:
                value, after = position + len(words), position + len(words) + 1
                if value < len(tokens) and tokens[value].text.upper() in ("TIMESTAMP", "DATE"):
                    value, after = value + 1, after + 1
                if value >= len(tokens) or tokens[value].kind not in ("literal", "number"):
                    at = tokens[value].start if value < len(tokens) else len(self.text)
                    reason = f"expected a value after {' '.join(words)}"
                    raise syntax_error(self.text, at, reason, _TRAVEL_HINTS[key], self.first_line)
                if key == "scan.timestamp" and tokens[value].kind == "number":
                    key = "scan.timestamp-millis"
                return {key: tokens[value].text}, after
        return None

    def _parse_hint(self, token: Token) -> Options:
        reader = StatementReader(token.text)
        options: dict[str, str] = {}
        try:
            reader.expect("OPTIONS")
            options = read_options(reader)
            reader.expect_end()
        except InvalidRequest as error:
            reason = "the hint is not OPTIONS('key' = 'value')"
            raise syntax_error(self.text, token.start, reason, _HINT, self.first_line) from error
        return options

    def _mark_table(self, found: list[tuple[Token, str]], options: Options, last: Token) -> list[tuple[Token, str]]:
        """Replace the name of a table at the end of the tokens by a mark with options."""
        end = len(found)
        first = end - 1
        while first >= 2 and found[first - 1][0].text == "." and found[first - 1][0].kind == "symbol":
            first -= 2
        if first < 0 or not _can_be_name(found[first][0]):
            raise syntax_error(self.text, last.start, "expected the name of a table before it", _HINT, self.first_line)
        names = [token for token, _ in found[first:end:2]]
        text = found[first][1]
        parts, earlier = self.options.pop(text.strip('"'), (tuple(t.text for t in names), {}))
        mark = f"{_MARK}{len(self.options)}_{first}"
        self.options[mark] = (parts, {**earlier, **options})
        joined = evolve(names[0], end=last.end)
        return [*found[:first], (joined, f'"{mark}"')]

    def _to_syntax_error(self, error: Exception, sql: str) -> InvalidRequest:
        found = error.errors[0] if isinstance(error, ParseError) and error.errors else {}
        offset, shown = len(sql), found.get("highlight") or ""
        if found.get("line") and found.get("col"):
            lines = sql.split("\n")
            offset = sum(len(line) + 1 for line in lines[: found["line"] - 1]) + found["col"] - len(shown)
        if not self.tokens:
            return syntax_error(self.text, 0, "the query is not complete", first_line=self.first_line)
        number = self._find_token(offset)
        is_last = offset + len(shown) >= len(sql.rstrip())
        why = explain_refusal(str(found.get("description") or ""), self.tokens, number, is_last)
        return syntax_error(self.text, why.position, why.reason, why.hint, self.first_line)


def _needs_expression(token: Token) -> bool:
    words = ("SELECT", "DISTINCT", "BY", "FROM", "VALUES", "WHERE", "HAVING", "ON", "AND", "OR")
    if token.kind == "symbol":
        return token.text in (",", "(", "[", "{")
    return token.kind == "word" and token.text.upper() in words


def _can_be_name(token: Token) -> bool:
    return token.kind == "quoted" or (token.kind == "word" and token.text.upper() not in _RESERVED)


def read_options(reader: StatementReader) -> dict[str, str]:
    """Read options in parentheses: ``('key' = 'value', …)``; keys may also be words with dots."""
    options: dict[str, str] = {}
    reader.expect("(")
    while not reader.read_if_next(")"):
        key = reader.literal() if reader.current.kind == "literal" else read_dotted_key(reader)
        reader.expect("=")
        options[key] = read_option_value(reader)
        if not reader.read_if_next(",") and reader.current.text != ")":
            raise reader.error(f"expected ',' or ')', not {reader.describe_next()}")
    return options


def read_dotted_key(reader: StatementReader) -> str:
    """Read the key of an option without quotes: words, joined by dots and dashes."""
    parts = [reader.name()]
    while reader.current.text in (".", "-"):
        parts += [reader.advance().text, reader.name()]
    return "".join(parts)


def read_option_value(reader: StatementReader) -> str:
    """Read the value of an option: a text, a number, TRUE or FALSE."""
    token = reader.current
    is_flag = token.kind == "word" and token.text.upper() in ("TRUE", "FALSE")
    if token.kind not in ("literal", "number") and not is_flag:
        raise reader.error(f"expected a value, not {reader.describe_next()}", hint="write texts in single quotes")
    reader.advance()
    return token.text.lower() if is_flag else token.text


def _name_tables(
    tree: exp.Expression, marked: Mapping[str, tuple[tuple[str, ...], Options]]
) -> tuple[exp.Expression, dict[str, TableName]]:
    """Give each table of a tree a name of its own, and return the table of each name."""
    _name_columns(tree, marked)
    tables: dict[str, TableName] = {}
    numbers = count()
    for node in list(tree.find_all(exp.Table)):
        name = _to_table_name(node, marked)
        if name is None:
            continue
        own = f"__paimon_{next(numbers)}"
        tables[own] = name
        if not node.alias:
            node.set("alias", exp.TableAlias(this=exp.to_identifier(name.parts[-1])))
        node.args["alias"].this.set("quoted", True)  # so the engine finds the name of the table by its alias
        for part in ("db", "catalog"):
            node.set(part, None)
        node.set("this", exp.to_identifier(own, quoted=True))
        if node.alias_column_names:
            _move_into_subquery(node)
    _shorten_columns(tree, tables)
    return _adapt_nodes(tree), tables


def _name_columns(tree: exp.Expression, marked: Mapping[str, tuple[tuple[str, ...], Options]]) -> None:
    """Name each column of a subquery by its text; the engine would take the text with its own names of the tables."""
    for select in list(tree.find_all(exp.Select)):
        for column in list(select.expressions):
            if column.alias or isinstance(column, exp.Star | exp.Column) or not column.find(exp.Table):
                continue
            text = column.sql(dialect=DIALECT, comments=False)
            for mark, (parts, _) in marked.items():
                text = text.replace(quote_identifier(mark), ".".join(parts))
            column.replace(exp.alias_(column.copy(), text, quoted=True))


def _move_into_subquery(node: exp.Table) -> None:
    """Write ``t AS a(x, y)`` as ``(SELECT * FROM t) AS a(x, y)``, so that a name means one column everywhere."""
    alias = node.args["alias"]
    node.set("alias", exp.TableAlias(this=alias.this.copy()))
    node.replace(exp.Subquery(this=exp.select("*").from_(node.copy()), alias=alias))


def _to_table_name(node: exp.Table, marked: Mapping[str, tuple[tuple[str, ...], Options]]) -> TableName | None:
    """Return the table that a node names; None for a common table expression and for functions of the engine."""
    if isinstance(node.this, exp.Identifier):
        parts = tuple(part.name for part in node.parts)
        if len(parts) == 1 and parts[0] in marked:
            found, options = marked[parts[0]]
            return TableName(found, options)
        return None if len(parts) == 1 and _is_common_table(node, parts[0]) else TableName(parts)
    called = node.this if isinstance(node.this, exp.Func) else None
    function = (
        "" if called is None else (called.name if isinstance(called, exp.Anonymous) else called.sql_name()).lower()
    )
    if called is not None and function in FILE_FORMATS:
        return TableName((function,), arguments=_read_paths(called, function), function=function)
    if isinstance(node.this, exp.Anonymous) and node.this.name.lower().startswith("paimon_"):
        values = [argument for argument in node.this.expressions if isinstance(argument, exp.Literal | exp.Neg)]
        name = node.this.name.lower()
        if not values or len(values) != len(node.this.expressions):
            raise InvalidRequest(
                f"Function {name!r} needs the name of a table and literals.", subject=name, hint=f"write {name}('t', …)"
            )
        first, *others = (value.name if isinstance(value, exp.Literal) else value.sql() for value in values)
        return TableName(tuple(first.split(".")), arguments=tuple(others), function=name)
    return None


def _read_paths(called: exp.Func, function: str) -> tuple[str, ...]:
    """Return the paths that a function reads; refuse its options, which the formats of this library do not have."""
    given = [*([called.this] if isinstance(called.this, exp.Expression) else []), *called.expressions]
    listed = given[0].expressions if len(given) == 1 and isinstance(given[0], exp.Array) else given
    texts = [node.name for node in listed if isinstance(node, exp.Literal) and node.is_string]
    if not texts or len(texts) < len(listed) or (len(given) > 1):
        hint = f"write {function}('path'), or {function}(['path', …]); a path may have * and **"
        raise InvalidRequest(f"Function {function!r} takes one text, or a list of texts.", subject=function, hint=hint)
    return tuple(texts)


def _is_common_table(node: exp.Expression, name: str) -> bool:
    """Return whether a name is that of a common table expression that the node can see."""
    below: exp.Expression = node
    above = node.parent
    passed: exp.CTE | None = None
    while above is not None:
        if isinstance(above, exp.CTE):
            passed = above
        elif isinstance(above, exp.With):
            assert isinstance(below, exp.CTE)
            names = [cte.alias.lower() for cte in above.expressions]
            visible = names if above.recursive else names[: above.expressions.index(below)]
            if name.lower() in visible:
                return True
        elif isinstance(above, exp.Query) and not isinstance(below, exp.With):
            names = [cte.alias.lower() for cte in above.ctes if cte is not passed]
            if name.lower() in names:
                return True
        below, above = above, above.parent
    return False


def _shorten_columns(tree: exp.Expression, tables: Mapping[str, TableName]) -> None:
    """Write columns such as ``db.t.a`` as ``t.a``, because the tree knows tables by their last name."""
    qualified = {name.parts[-2:] for name in tables.values() if len(name.parts) > 1}
    for column in tree.find_all(exp.Column):
        if (column.args.get("db") is not None) and (column.db, column.table) in qualified:
            column.set("db", None)
            column.set("catalog", None)


def _adapt_nodes(tree: exp.Expression) -> exp.Expression:
    """Write types and UNNEST of rows as DuckDB has them."""
    adapt: Callable[[exp.Expression], exp.Expression] = _adapt_node
    return tree.transform(adapt, copy=False)


def _adapt_node(node: exp.Expression) -> exp.Expression:
    if isinstance(node, exp.DataType) and node.this == exp.DataType.Type.USERDEFINED:
        other = _TYPES.get(str(node.args.get("kind") or "").upper())
        return exp.DataType.build(other, dialect=DIALECT) if other else node
    if isinstance(node, exp.Unnest) and len(node.alias_column_names) > 1:
        depth = exp.PropertyEQ(this=exp.to_identifier("max_depth"), expression=exp.Literal.number(2))
        call = exp.Anonymous(this="unnest", expressions=[*node.expressions, depth])
        alias = node.args["alias"].copy()
        return exp.Subquery(this=exp.select(call), alias=alias)
    return node
