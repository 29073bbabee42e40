"""Tokens of the text of types, column lists and ALTER TABLE clauses.

Invariant: tokens are words, back-quoted names, numbers, quoted literals and single symbols. Anything else is an
InvalidRequest that shows where the text goes wrong. The time is proportional to the length of the text.
Source: `DataTypeJsonParser`'s tokenizer; the words are those of SQL.
"""

from __future__ import annotations

import re

from attrs import define, field, frozen

from paimon.domain.errors import InvalidRequest

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<quoted>`(?:[^`]|``)+`)
    | (?P<literal>'(?:[^']|'')*')
    | (?P<number>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)
    | (?P<word>[^\W\d]\w*)
    | (?P<symbol>[<>(),:.=;])
    )""",
    re.VERBOSE,
)


@frozen
class Token:
    """One token of a text."""

    # word, quoted, literal, number, symbol or end
    kind: str
    # without quotes
    text: str
    # the position of the token in the whole text
    start: int = 0


def split_tokens(text: str) -> tuple[Token, ...]:
    """Split a text into tokens; the last token is of kind ``end``."""
    found: list[Token] = []
    position = 0
    end = len(text.rstrip())
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None:
            rest = text[position : position + 20].strip()
            raise InvalidRequest(f"Text {_shorten_text(text)!r} has an unexpected character at {rest!r}", subject=text)
        kind = str(match.lastgroup)
        found.append(Token(kind, _unquote(kind, match.group(kind)), match.start(kind)))
        position = match.end()
    return (*found, Token("end", "", len(text)))


def _unquote(kind: str, raw: str) -> str:
    if kind == "quoted":
        return raw[1:-1].replace("``", "`")
    return raw[1:-1].replace("''", "'") if kind == "literal" else raw


def _shorten_text(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:77]}..."


@define
class TokenReader:
    """A parser state: it reads the tokens of one text from left to right. Use it for one text only."""

    text: str
    tokens: tuple[Token, ...] = field(init=False)
    position: int = 0

    def __attrs_post_init__(self) -> None:
        self.tokens = split_tokens(self.text)

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
