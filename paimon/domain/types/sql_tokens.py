"""Cuts the text of types and column lists into tokens.

Law: tokens are words, back-quoted names, numbers, quoted literals and single symbols; anything else is an
InvalidRequest that shows where the text goes wrong; the time is proportional to the text. Source:
`DataTypeJsonParser`'s tokenizer; the words are those of SQL.
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
    """One token: `kind` is ``word``, ``quoted``, ``literal``, ``number``, ``symbol`` or ``end``; `text` is unquoted."""

    kind: str
    text: str
    start: int = 0


def tokens_of(text: str) -> tuple[Token, ...]:
    """All tokens of the text, closed by one of kind ``end``."""
    found: list[Token] = []
    position = 0
    end = len(text.rstrip())
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None:
            rest = text[position : position + 20].strip()
            raise InvalidRequest(f"cannot read {rest!r} in {_short(text)!r}", subject=text)
        kind = str(match.lastgroup)
        found.append(Token(kind, _unquoted(kind, match.group(kind)), match.start(kind)))
        position = match.end()
    return (*found, Token("end", "", len(text)))


def _unquoted(kind: str, raw: str) -> str:
    if kind == "quoted":
        return raw[1:-1].replace("``", "`")
    return raw[1:-1].replace("''", "'") if kind == "literal" else raw


def _short(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:77]}..."


@define
class TokenReader:
    """Walks over the tokens of one text; a small state machine, made for one parse and thrown away."""

    text: str
    tokens: tuple[Token, ...] = field(init=False)
    position: int = 0

    def __attrs_post_init__(self) -> None:
        self.tokens = tokens_of(self.text)

    @property
    def current(self) -> Token:
        """The next token to be read."""
        return self.tokens[self.position]

    def advance(self) -> Token:
        """Reads one token."""
        token = self.current
        self.position += token.kind != "end"
        return token

    def accept(self, *words: str) -> bool:
        """Reads these words (or symbols), in any case, if all of them come next."""
        ahead = self.tokens[self.position : self.position + len(words)]
        fits = len(ahead) == len(words) and all(
            t.kind in ("word", "symbol") and t.text.upper() == w for t, w in zip(ahead, words, strict=True)
        )
        self.position += len(words) if fits else 0
        return fits

    def expect(self, *words: str) -> None:
        """Reads these words, or fails."""
        if not self.accept(*words):
            raise self.error(f"expected {' '.join(words)!r}")

    def number(self) -> int:
        """Reads a whole number that is not negative."""
        token = self.advance()
        if token.kind != "number" or not token.text.isdecimal() or len(token.text) > 10:
            raise self.error(f"expected a whole number, not {token.text!r}")
        return int(token.text)

    def literal(self) -> str:
        """Reads a text in single quotes."""
        token = self.advance()
        if token.kind != "literal":
            raise self.error(f"expected a text in single quotes, not {token.text!r}")
        return token.text

    def name(self) -> str:
        """Reads a name, back-quoted or not."""
        token = self.advance()
        if token.kind not in ("word", "quoted"):
            raise self.error(f"expected a name, not {token.text or 'the end'!r}")
        return token.text

    def error(self, reason: str, hint: str | None = None) -> InvalidRequest:
        """The error that says where in the text reading stopped."""
        rest = self.text[self.current.start :][:20]
        where = f"before {rest!r}" if rest else "at its end"
        return InvalidRequest(f"{_short(self.text)!r}: {reason} {where}", subject=self.text, hint=hint)
