"""Tokens of SQL: of the text of types, column lists and clauses, and of whole scripts; readers of tokens for parsers.

Invariant: the time is proportional to the length of the text, and each token has its position in it. What is no token
is an `InvalidRequest` that shows where the text goes wrong.
Source: `DataTypeJsonParser`'s tokenizer for the types that a schema file has; the words are those of SQL.
"""

# One loop splits two languages. A *declaration* is a short text that a schema file or an argument has, such as
#
#     ROW<a INT NOT NULL, b ARRAY<DECIMAL(10, 2)>> COMMENT 'it''s'
#
# It has words, back-quoted names, numbers with their sign, texts, and single symbols, so that `>>` closes two types.
# Comments, operators and names in double quotes are refused, because Java refuses them in a schema, too. A *script* is
# whatever a user writes or generates:
#
#     SELECT a AS "b" /*+ OPTIONS('scan.snapshot-id' = '3') */ FROM t WHERE c >= -1; -- a comment
#
# It has comments, hints for the engine, both kinds of quoted names, and symbols of two characters. A minus sign is a
# symbol, since `a -1` is a difference. It is the sign of a number only where a value must follow: `= -1`, `DEFAULT -1`.
#
# Both patterns match at each position, if need be what is no token (kind ``other``): a character that the language does
# not have, or a quote or comment that is not closed. The caller refuses it at once. So no alternative scans to the end
# of the text more than once, and a text of a million quotes or `/*` takes no longer than any other.
#
# A script is split at its semicolons after it was split into tokens, since only tokens know which semicolon is in a
# text or a comment. Statements keep their text, because queries go to the engine as text. Comments are replaced by
# blanks and the first line keeps its indentation, so that the line and the column of an error are those of the script:
#
#     SELECT 1; /* x */ SELECT        ->   "SELECT 1"  and  "          " + "        SELECT"
#                                           line 1           line 1, and the same columns as in the script

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from attrs import define, field, frozen

from paimon.domain.errors import InvalidRequest
from paimon.domain.secrets import mask_quoted, mask_statement

LONGEST_SCRIPT = 1_000_000
"""Characters of a script at most."""
_MOST_TOKENS = 200_000
"""Tokens of a script at most. Parsing needs about a kilobyte and ten microseconds for each."""
_DECLARATION = re.compile(
    r"""(?P<blank>\s+)
    | (?P<quoted>`(?:[^`]|``)+`)
    | (?P<literal>'(?:[^']|'')*')
    | (?P<number>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)
    | (?P<word>[^\W\d]\w*)
    | (?P<symbol>[<>(),:.=;])
    | (?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
_SCRIPT = re.compile(
    r"""(?P<blank>\s+)
    | (?P<comment>--[^\n]*|/\*(?!\+).*?\*/)
    | (?P<hint>/\*\+.*?\*/)
    | (?P<quoted>`(?:[^`]|``)+`|"(?:[^"]|"")+")
    | (?P<literal>'(?:[^']|'')*')
    | (?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)
    | (?P<word>[^\W\d][\w$]*)
    | (?P<other>['"`]|/\*)
    | (?P<symbol>=>|<=|>=|<>|!=|\|\||::|->|.)""",
    re.VERBOSE | re.DOTALL,
)
_NEGATIVE = re.compile(r"-\s*(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
_BEFORE_VALUES = ("(", ",", "=", "=>", "DEFAULT")
_UNCLOSED = {
    "'": "the text is not closed",
    '"': "the name is not closed",
    "`": "the name is not closed",
    "/*": "the comment is not closed",
}


@frozen
class Token:
    """One token of a text."""

    # word, quoted, literal, number, hint, symbol, other or end
    kind: str
    # without quotes, and without the delimiters of a hint
    text: str
    # the position of the token in the whole text
    start: int = 0
    # the position after it
    end: int = 0


def _iterate_tokens(pattern: re.Pattern[str], text: str) -> Iterator[Token]:
    before, position = "", 0
    while position < len(text):
        match = pattern.match(text, position)
        assert match is not None  # the last alternative is any character
        kind, raw, position = str(match.lastgroup), match.group(), match.end()
        if kind in ("blank", "comment"):
            continue
        signed = _NEGATIVE.match(text, match.start()) if kind == "symbol" and before in _BEFORE_VALUES else None
        if signed is not None:  # the number of an option, an argument or a default
            kind, raw, position = "number", signed.group(), signed.end()
        yield Token(kind, _unquote(kind, raw), match.start(), position)
        before = raw.upper()


def _unquote(kind: str, raw: str) -> str:
    if kind == "hint":
        return raw[3:-2]
    if kind == "number":
        return "".join(raw.split())
    return raw[1:-1].replace(raw[0] * 2, raw[0]) if kind in ("quoted", "literal") else raw


def _split_declaration(text: str) -> tuple[Token, ...]:
    """Split the text of a declaration into tokens; the last token is of kind ``end``."""
    found: list[Token] = []
    for token in _iterate_tokens(_DECLARATION, text):
        if token.kind == "other":
            position = found[-1].end if found else 0
            rest = text[position : position + 20].strip()
            raise InvalidRequest(f"Text {_shorten_text(text)!r} has an unexpected character at {rest!r}", subject=text)
        found.append(token)
    return (*found, Token("end", "", len(text), len(text)))


def _shorten_text(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:77]}..."


def tokenize(text: str, first_line: int = 1) -> tuple[Token, ...]:
    """Split a script into tokens, without comments, up to an ``end``; refuse unclosed and huge ones."""
    if len(text) > LONGEST_SCRIPT:
        raise InvalidRequest(
            f"The script has {len(text):,} characters.", subject="script", hint=f"the limit is {LONGEST_SCRIPT:,}"
        )
    tokens = tuple(islice(_iterate_closed(text, first_line), _MOST_TOKENS + 1))
    if len(tokens) > _MOST_TOKENS:
        hint = f"the limit is {_MOST_TOKENS:,}; split the script, or write many rows with Table.write"
        raise InvalidRequest(
            f"The script has more than {_MOST_TOKENS:,} words and symbols.", subject="script", hint=hint
        )
    return (*tokens, Token("end", "", len(text), len(text)))


def _iterate_closed(text: str, first_line: int) -> Iterator[Token]:
    """Yield the tokens of a script; refuse a string, a name or a comment that is not closed."""
    for token in _iterate_tokens(_SCRIPT, text):
        if token.kind == "other":
            raise syntax_error(text, token.start, _UNCLOSED[token.text], first_line=first_line)
        yield token


def syntax_error(text: str, position: int, reason: str, hint: str | None = None, first_line: int = 1) -> InvalidRequest:
    """Build the error of a statement, with line and caret; `first_line` is that of `text` in the script."""
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


@define
class TokenReader:
    """A parser state: it reads the tokens of one text from left to right. Use it for one text only."""

    text: str
    tokens: tuple[Token, ...] = field(init=False)
    position: int = 0

    def __attrs_post_init__(self) -> None:
        self.tokens = _split_declaration(self.text)

    @property
    def current(self) -> Token:
        """The next token to be read."""
        return self.tokens[self.position]

    def advance(self) -> Token:
        """Read one token; at the end of the text, return the token ``end`` again."""
        token = self.current
        self.position += token.kind != "end"
        return token

    def read_if_next(self, *words: str) -> bool:
        """Read these words (or symbols), in any case, if all of them come next; return whether they did."""
        ahead = self.tokens[self.position : self.position + len(words)]
        fits = len(ahead) == len(words) and all(
            t.kind in ("word", "symbol") and t.text.upper() == w for t, w in zip(ahead, words, strict=True)
        )
        self.position += len(words) if fits else 0
        return fits

    def expect(self, *words: str) -> None:
        """Read these words (or symbols), or refuse the text."""
        if not self.read_if_next(*words):
            raise self.error(f"expected {' '.join(words)!r}")

    def number(self) -> int:
        """Read a whole number that is not negative."""
        token = self.advance()
        if token.kind != "number" or not token.text.isdecimal() or len(token.text) > 10:
            raise self.error(f"expected a whole number, not {token.text!r}")
        return int(token.text)

    def literal(self) -> str:
        """Read a text in single quotes and return it without the quotes."""
        token = self.advance()
        if token.kind != "literal":
            raise self.error(f"expected a text in single quotes, not {token.text!r}")
        return token.text

    def name(self) -> str:
        """Read a name, back-quoted or not."""
        token = self.advance()
        if token.kind not in ("word", "quoted"):
            raise self.error(f"expected a name, not {token.text or 'the end'!r}")
        return token.text

    def error(self, reason: str, hint: str | None = None) -> InvalidRequest:
        """Build the error that shows where in the text reading stopped."""
        rest = self.text[self.current.start :][:20]
        where = f"before {rest!r}" if rest else "at its end"
        return InvalidRequest(f"Text {_shorten_text(self.text)!r}: {reason} {where}", subject=self.text, hint=hint)


@define
class StatementReader(TokenReader):
    """A state machine over one statement's tokens; a read raises InvalidRequest at another token."""

    # Line number in the script at which the statement begins
    first_line: int = 1
    # Tokens of the text; None means that they are computed here
    known_tokens: tuple[Token, ...] | None = field(default=None, repr=False)

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
    """Replace comments by blanks of the same length; hints stay. Linear for texts that `tokenize` accepts."""
    parts, position = [], 0
    for match in _SCRIPT.finditer(text):
        if match.lastgroup == "comment":
            blank = "".join(c if c == "\n" else " " for c in match.group())
            parts += [text[position : match.start()], blank]
            position = match.end()
    return "".join([*parts, text[position:]])


def split_statements(script: str) -> list[StatementReader]:
    """Split a script at its semicolons; statements without a token are left out."""
    found = tokenize(script)
    text = blank_comments(script)
    readers: list[StatementReader] = []
    tokens: list[Token] = []
    for token in found:
        if token.kind != "end" and not (token.kind == "symbol" and token.text == ";"):
            tokens.append(token)
        elif tokens:
            readers.append(_make_reader(text, tokens, token.start))
            tokens = []
    return readers


def _make_reader(text: str, tokens: list[Token], end: int) -> StatementReader:
    """Return the reader of the statement that has these tokens of a script."""
    first = tokens[0].start
    indent = first - text.rfind("\n", 0, first) - 1  # errors show the column in the script
    statement = " " * indent + text[first:end].rstrip()
    shift = indent - first
    moved = tokens if not shift else [Token(t.kind, t.text, t.start + shift, t.end + shift) for t in tokens]
    last = Token("end", "", len(statement), len(statement))
    return StatementReader(statement, first_line=1 + text.count("\n", 0, first), known_tokens=(*moved, last))
