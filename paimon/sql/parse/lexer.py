"""Tokens of SQL scripts: words, quoted names, texts, numbers, hints and symbols.

Invariant: comments are replaced by blanks of the same length, so each token has its position in the script.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from attrs import define, field, frozen

from paimon.domain.errors import InvalidRequest
from paimon.domain.secrets import mask_quoted, mask_statement
from paimon.domain.types.sql_tokens import Token, TokenReader

LONGEST_SCRIPT = 1_000_000
"""Characters of a script at most."""
_MOST_TOKENS = 200_000
"""Tokens of a script at most. Parsing needs about a kilobyte and ten microseconds for each."""

_TOKEN = re.compile(
    r"""(?P<blank>\s+)
    | (?P<comment>--[^\n]*|/\*(?!\+).*?\*/)
    | (?P<hint>/\*\+.*?\*/)
    | (?P<quoted>`(?:[^`]|``)+`|"(?:[^"]|"")+")
    | (?P<literal>'(?:[^']|'')*')
    | (?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)
    | (?P<word>[^\W\d][\w$]*)
    | (?P<symbol>=>|<=|>=|<>|!=|\|\||::|->|.)""",
    re.VERBOSE | re.DOTALL,
)
_UNCLOSED = {"'": "the text is not closed", '"': "the name is not closed", "`": "the name is not closed"}


@frozen
class SqlToken(Token):
    """A token with the position after it. A hint ``/*+ … */`` has the kind ``hint``; its text has no delimiters."""

    end: int = 0


def syntax_error(text: str, position: int, reason: str, hint: str | None = None, first_line: int = 1) -> InvalidRequest:
    """Build the error of an invalid statement, for the caller to raise: the line, and a caret below the position.

    `reason` names what was expected. `first_line` is the line number in the script at which `text` begins.
    """
    reason, hint = mask_quoted(reason, text), None if hint is None else mask_quoted(hint, text)
    text = mask_statement(text)
    position = min(position, len(text.rstrip()))
    start = text.rfind("\n", 0, position) + 1
    line = text[start:].partition("\n")[0].rstrip()
    number, column = first_line + text.count("\n", 0, start), position - start
    shown, cut = (line, 0) if len(line) <= 200 else (line[max(column - 100, 0) :][:200], max(column - 100, 0))
    pad = "".join("\t" if c == "\t" else " " for c in shown[: column - cut])
    message = f"SQL syntax error in line {number}, column {column + 1}: {reason}\n  {shown}\n  {pad}^\n"
    return InvalidRequest(message, subject=line, hint=hint)


def tokenize(text: str, first_line: int = 1) -> tuple[SqlToken, ...]:
    """Split a script into tokens without comments; the last token is of kind ``end``.

    Refuses unclosed strings, names and comments, and scripts above a size limit.
    """
    if len(text) > LONGEST_SCRIPT:
        raise InvalidRequest(
            f"The script has {len(text):,} characters.", subject="script", hint=f"the limit is {LONGEST_SCRIPT:,}"
        )
    tokens = tuple(islice(_iterate_tokens(text, first_line), _MOST_TOKENS + 1))
    if len(tokens) > _MOST_TOKENS:
        hint = f"the limit is {_MOST_TOKENS:,}; split the script, or write many rows with Table.write"
        raise InvalidRequest(
            f"The script has more than {_MOST_TOKENS:,} words and symbols.", subject="script", hint=hint
        )
    return (*tokens, SqlToken("end", "", len(text), len(text)))


def _iterate_tokens(text: str, first_line: int) -> Iterator[SqlToken]:
    before, position = "", 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        assert match is not None  # the last alternative is any character
        kind, raw, position = str(match.lastgroup), match.group(), match.end()
        if kind in ("blank", "comment"):
            continue
        if kind == "symbol":
            if raw in _UNCLOSED:
                raise syntax_error(text, match.start(), _UNCLOSED[raw], first_line=first_line)
            if text.startswith("/*", match.start()):
                raise syntax_error(text, match.start(), "the comment is not closed", first_line=first_line)
            signed = _NEGATIVE.match(text, match.start()) if before in _BEFORE_VALUES else None
            if signed is not None:  # the number of an option, an argument or a default
                kind, raw, position = "number", signed.group(), signed.end()
        yield SqlToken(kind, _unquote(kind, raw), match.start(), position)
        before = raw.upper()


_NEGATIVE = re.compile(r"-\s*(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
_BEFORE_VALUES = ("(", ",", "=", "=>", "DEFAULT")


def _unquote(kind: str, raw: str) -> str:
    if kind == "hint":
        return raw[3:-2]
    if kind == "number":
        return "".join(raw.split())
    return raw[1:-1].replace(raw[0] * 2, raw[0]) if kind in ("quoted", "literal") else raw


@define
class StatementReader(TokenReader):
    """A parser state: it reads the tokens of one statement from left to right.

    A method that reads something raises `InvalidRequest` with the position if another token comes next.
    """

    # Line number in the script at which the statement begins
    first_line: int = 1
    # Tokens of the text; None means that they are computed here
    known_tokens: tuple[SqlToken, ...] | None = field(default=None, repr=False)

    def __attrs_post_init__(self) -> None:
        self.tokens = self.known_tokens or tokenize(self.text, self.first_line)

    def error(self, reason: str, hint: str | None = None) -> InvalidRequest:
        """Build the error that shows where in the script reading stopped."""
        return syntax_error(self.text, self.current.start, reason, hint, self.first_line)

    def describe_next(self) -> str:
        """Return the next token for an error message."""
        token = self.current
        if token.kind == "end":
            return "the end of the statement"
        return f"{token.text!r}" if token.kind != "literal" else f"the text '{token.text}'"

    def expect(self, *words: str) -> None:
        """Read these words (or symbols)."""
        if not self.read_if_next(*words):
            raise self.error(f"expected {' '.join(words)}, not {self.describe_next()}")

    def expect_end(self) -> None:
        """Check that the statement ends here."""
        if self.current.kind != "end":
            raise self.error(f"expected the end of the statement, not {self.describe_next()}")

    def name(self) -> str:
        """Read a name, quoted or not."""
        if self.current.kind not in ("word", "quoted"):
            raise self.error(f"expected a name, not {self.describe_next()}")
        return self.advance().text

    def literal(self) -> str:
        """Read a string in single quotes, and return it without the quotes."""
        if self.current.kind != "literal":
            raise self.error(f"expected a text in single quotes, not {self.describe_next()}")
        return self.advance().text

    def object_name(self) -> tuple[str, ...]:
        """Read a name of up to three parts, separated by dots."""
        parts = [self.name()]
        while self.read_if_next("."):
            parts.append(self.name())
        if len(parts) > 3:
            raise self.error(f"name {'.'.join(parts)!r} has more than three parts", hint="write catalog.database.table")
        return tuple(parts)

    def rest(self) -> str:
        """Read all that follows, as text."""
        start = self.current.start
        self.position = len(self.tokens) - 1
        return self.text[start:].rstrip()

    def names_in_parentheses(self) -> tuple[str, ...]:
        """Read a list of names in parentheses."""
        self.expect("(")
        names = [self.name()]
        while self.read_if_next(","):
            names.append(self.name())
        self.expect(")")
        return tuple(names)

    def line_of_next(self) -> int:
        """Return the number of the line of the next token in the script."""
        return self.first_line + self.text.count("\n", 0, self.current.start)


def blank_comments(text: str) -> str:
    """Replace comments by blanks, so that all other characters keep their positions; hints stay."""
    parts, position = [], 0
    for match in _TOKEN.finditer(text):
        if match.lastgroup == "comment":
            blank = "".join(c if c == "\n" else " " for c in match.group())
            parts += [text[position : match.start()], blank]
            position = match.end()
    return "".join([*parts, text[position:]])


def split_statements(script: str) -> list[StatementReader]:
    """Split a script at its semicolons; statements without a token are left out."""
    text = blank_comments(script)
    readers: list[StatementReader] = []
    tokens: list[SqlToken] = []
    for token in tokenize(script):
        if token.kind != "end" and not (token.kind == "symbol" and token.text == ";"):
            tokens.append(token)
        elif tokens:
            readers.append(_make_reader(text, tokens, token.start))
            tokens = []
    return readers


def _make_reader(text: str, tokens: list[SqlToken], end: int) -> StatementReader:
    """Return the reader of the statement that has these tokens of a script."""
    first = tokens[0].start
    indent = first - text.rfind("\n", 0, first) - 1  # errors show the column in the script
    statement = " " * indent + text[first:end].rstrip()
    shift = indent - first
    moved = tokens if not shift else [SqlToken(t.kind, t.text, t.start + shift, t.end + shift) for t in tokens]
    last = SqlToken("end", "", len(statement), len(statement))
    return StatementReader(statement, first_line=1 + text.count("\n", 0, first), known_tokens=(*moved, last))
