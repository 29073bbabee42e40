"""Secrets in the storage options of a caller: which options are secret, and text without their values.

Invariant: a secret never leaves the process that received it: not in a repr, a message, a plan, a pickle or a task. An
option is secret by its name, at any depth. A name that may be that of a secret is treated as one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

_SECRET = re.compile(
    r"secret|passw|pwd|passphrase|token|credential|signature|private|account.?key|access.?key|api.?key|sas|connection.?string"
    r"|service.?account|^key$|authorization|cookie",
    re.IGNORECASE,
)
_LEAST = 4
"""Shorter values are not replaced in texts, because ordinary words contain them."""
_HIDDEN = "***"
_PASSWORD = re.compile(r"(?P<scheme>(?:[A-Za-z][A-Za-z0-9+.-]*:)?//)(?P<user>[^/@:\s]*):[^/@\s]+@")
_LOGIN = re.compile(r"(?P<scheme>(?:[A-Za-z][A-Za-z0-9+.-]*:)?//)[^/@:\s]*:[^@\s]+@")
"""Like `_PASSWORD`, and passwords with a slash too; rather too much of a text is removed than too little."""
_PARAMETER = re.compile(r"(?P<name>(?<=[?&;])[^=&;?\s]+)=(?P<value>[^&;\s'\"]+)")
"""A parameter of a URL, as JDBC and signed links have them."""

_PIECE = re.compile(r"""'(?:[^']|'')*(?:'|\Z)|"(?:[^"]|"")*(?:"|\Z)|`[^`]*(?:`|\Z)|;|[\w.-]+""")
"""The parts of a statement that can be the name or the value of an option; a text without an end goes to the last."""
_AFTER_NAME = re.compile(
    r"""(?P<sign>\s*(?:=>|==?|[:,])\s*|\s+)(?P<value>'(?:[^']|'')*(?:'|\Z)|"(?:[^"]|"")*(?:"|\Z)|[^\s,;()'"`]+)"""
)
_QUOTED = re.compile(r"""(['"])([^'"]+)\1""")
_SIGN = re.compile(r"\s*(?:=|:)")
_BROKEN = re.compile(r"""(?P<name>[\w.-]+)['"`]?\s*(?:=>|==?|:)\s*['"`]?(?P<value>[^\s,;)'"`=>]+)""")
"""A name and a value whose quotes may be wrong."""
_LONGEST_VALUE = 500
_QUERY = re.compile(r"(?:SELECT|WITH|VALUES|FROM|INSERT|UPDATE|DELETE|MERGE|EXPLAIN)\Z", re.IGNORECASE)
"""The first words of statements whose unquoted names are columns."""


def is_secret(name: str) -> bool:
    """Return whether an option of this name must not be shown or sent.

    >>> is_secret("aws_secret_access_key"), is_secret("region")
    (True, False)
    """
    return _SECRET.search(name) is not None


def remove_secrets(options: Mapping[str, object]) -> dict[str, object]:
    """Return the options that may be sent to another process; mappings inside them are cleaned too."""
    return {
        name: remove_secrets(value) if isinstance(value, Mapping) else _clean_value(value)
        for name, value in options.items()
        if not is_secret(name)
    }


def redact_secrets(text: str, options: Mapping[str, object]) -> str:
    """Replace each secret value, and what is secret in a URL, by stars."""
    text = _without_parameters(_LOGIN.sub(rf"\g<scheme>{_HIDDEN}@", text))
    for value in sorted({str(v) for _, v in _secrets(options)}, key=len, reverse=True):
        if len(value) >= _LEAST:
            text = text.replace(value, _HIDDEN)
    return text


def redact_option(name: str, value: str) -> str:
    """Return the value of an option as it may be shown: stars for a secret, URLs without passwords."""
    return _HIDDEN if is_secret(name) else redact_secrets(value, {})


def find_secrets(statement: str) -> list[tuple[int, int]]:
    """Return where a SQL statement, which may be wrong, has values of secret options and passwords of URLs."""
    found = [(m.start("user") + len(m["user"]), m.end() - 1) for m in _PASSWORD.finditer(statement)]
    found += [m.span("value") for m in _PARAMETER.finditer(statement) if is_secret(m["name"])]
    first_word: str | None = None
    begin = 0
    for piece in _PIECE.finditer(statement):
        raw = piece.group()
        if raw == ";":
            first_word, begin = None, piece.end()
            continue
        first_word = first_word or raw
        is_query = _QUERY.match(first_word) is not None
        is_column = is_query and raw[0] != "'"
        if is_secret(raw.strip("'\"`")) and not is_column and piece.start() > begin:
            found += _find_value(statement, piece.end(), is_text=raw[0] == "'" and not is_query)
        if raw[0] == "'" and len(raw) > 1:
            found += [(piece.start() + 1 + start, piece.start() + 1 + end) for start, end in find_secrets(raw[1:-1])]
        if not is_column and is_secret(raw):
            broken = _BROKEN.search(statement, piece.start(), piece.end() + _LONGEST_VALUE)
            found += [broken.span("value")] if broken and is_secret(broken["name"]) else []
    return found


def _find_value(statement: str, start: int, is_text: bool) -> list[tuple[int, int]]:
    """Return where the value after the name of a secret option is; without a sign, only a text after a text is one."""
    match = _AFTER_NAME.match(statement, start)
    if match is None:
        return []
    value, is_quoted = match["value"], match["value"][0] in "'\""
    if match["sign"].strip() in ("", ","):
        is_next_name = match["sign"].strip() and _SIGN.match(statement, match.end())
        if not is_text or not is_quoted or is_next_name:
            return []
    begin, end = match.span("value")
    return [(begin + 1, end - (len(value) > 1 and value[-1] == value[0]))] if is_quoted else [(begin, end)]


def mask_statement(statement: str) -> str:
    """Return a SQL statement with stars for the characters of its secrets, so that positions stay.

    >>> mask_statement("CREATE CATALOG c WITH ('s3.secret-key' = 'hush')")
    "CREATE CATALOG c WITH ('s3.secret-key' = '****')"
    """
    characters = list(statement)
    for start, end in find_secrets(statement):
        characters[start:end] = ["*" if c not in "\n\r" else c for c in characters[start:end]]
    return "".join(characters)


def mask_quoted(text: str, statement: str) -> str:
    """Replace the secrets of a SQL statement, and quoted parts of them, in a text about it."""
    values = {statement[start:end] for start, end in find_secrets(statement)}
    for value in sorted(values | {v.replace("''", "'") for v in values}, key=len, reverse=True):
        text = text.replace(value, _HIDDEN) if len(value) >= _LEAST else text
    parts = "\n".join(values)
    return _QUOTED.sub(lambda m: f"{m[1]}{_HIDDEN}{m[1]}" if m[2] in parts else m[0], text)


def has_password(url: str) -> bool:
    """Return whether a URL contains a password."""
    return _PASSWORD.match(url) is not None


def remove_password(url: str) -> str:
    """Return the URL with its user, if any, and without a password or other secrets.

    >>> remove_password("postgresql://ada:secret@host/db")
    'postgresql://ada@host/db'
    """
    return _without_parameters(_PASSWORD.sub(r"\g<scheme>\g<user>@", url))


def _without_parameters(text: str) -> str:
    return _PARAMETER.sub(lambda m: f"{m['name']}={_HIDDEN}" if is_secret(m["name"]) else m[0], text)


def _clean_value(value: object) -> object:
    return remove_password(value) if isinstance(value, str) else value


def _secrets(options: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    for name, value in options.items():
        if is_secret(name):
            yield from ((name, part) for part in (value.values() if isinstance(value, Mapping) else (value,)))
        elif isinstance(value, Mapping):
            yield from _secrets(value)
