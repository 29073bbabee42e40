"""What of a caller's storage options is secret, and text without it.

Law: a secret never leaves the process that was given it: not in a repr, a message, a plan, a pickle or a task. An
option is secret by its name, at any depth; a name that might be one is taken for one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

_SECRET = re.compile(
    r"secret|passw|passphrase|token|credential|signature|private|account.?key|access.?key|api.?key|sas|connection.?string"
    r"|service.?account|^key$|authorization|cookie",
    re.IGNORECASE,
)
_LEAST = 4
"""Shorter values are not looked for in texts: they would stand in ordinary words."""
_HIDDEN = "***"
_PASSWORD = re.compile(r"(?P<scheme>(?:[A-Za-z][A-Za-z0-9+.-]*:)?//)(?P<user>[^/@:\s]*):[^/@\s]+@")
_LOGIN = re.compile(r"(?P<scheme>(?:[A-Za-z][A-Za-z0-9+.-]*:)?//)[^/@:\s]*:[^@\s]+@")
"""Like `_PASSWORD`, and passwords with a slash too; a text loses rather too much than too little."""
_PARAMETER = re.compile(r"(?P<name>(?<=[?&;])[^=&;?\s]+)=(?P<value>[^&;\s'\"]+)")
"""A parameter of a URL, as JDBC and signed links have them."""


def is_secret(name: str) -> bool:
    """Whether an option of this name is not to be shown or sent."""
    return _SECRET.search(name) is not None


def without_secrets(options: Mapping[str, object]) -> dict[str, object]:
    """The options that may travel; mappings within them are cleaned too."""
    return {
        name: without_secrets(value) if isinstance(value, Mapping) else _open(value)
        for name, value in options.items()
        if not is_secret(name)
    }


def redacted(text: str, options: Mapping[str, object]) -> str:
    """The text with stars in place of each secret value, and of what is secret in a URL."""
    text = _without_parameters(_LOGIN.sub(rf"\g<scheme>{_HIDDEN}@", text))
    for value in sorted({str(v) for _, v in _secrets(options)}, key=len, reverse=True):
        if len(value) >= _LEAST:
            text = text.replace(value, _HIDDEN)
    return text


def redact_option(name: str, value: str) -> str:
    """The value of an option as it may be shown: stars where its name is that of a secret, no passwords in URLs."""
    return _HIDDEN if is_secret(name) else redacted(value, {})


def has_password(url: str) -> bool:
    """Whether a URL carries a password."""
    return _PASSWORD.match(url) is not None


def without_password(url: str) -> str:
    """The URL with its user, if any, and without a password or other secrets."""
    return _without_parameters(_PASSWORD.sub(r"\g<scheme>\g<user>@", url))


def _without_parameters(text: str) -> str:
    return _PARAMETER.sub(lambda m: f"{m['name']}={_HIDDEN}" if is_secret(m["name"]) else m[0], text)


def _open(value: object) -> object:
    return without_password(value) if isinstance(value, str) else value


def _secrets(options: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    for name, value in options.items():
        if is_secret(name):
            yield from ((name, part) for part in (value.values() if isinstance(value, Mapping) else (value,)))
        elif isinstance(value, Mapping):
            yield from _secrets(value)
