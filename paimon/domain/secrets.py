"""Secrets in the storage options of a caller: which options are secret, and text without their values.

Invariant: a secret never leaves the process that received it: not in a repr, a message, a plan, a pickle or a task. An
option is secret by its name, at any depth. A name that may be that of a secret is treated as one.
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
"""Shorter values are not replaced in texts, because ordinary words contain them."""
_HIDDEN = "***"
_PASSWORD = re.compile(r"(?P<scheme>(?:[A-Za-z][A-Za-z0-9+.-]*:)?//)(?P<user>[^/@:\s]*):[^/@\s]+@")
_LOGIN = re.compile(r"(?P<scheme>(?:[A-Za-z][A-Za-z0-9+.-]*:)?//)[^/@:\s]*:[^@\s]+@")
"""Like `_PASSWORD`, and passwords with a slash too; rather too much of a text is removed than too little."""
_PARAMETER = re.compile(r"(?P<name>(?<=[?&;])[^=&;?\s]+)=(?P<value>[^&;\s'\"]+)")
"""A parameter of a URL, as JDBC and signed links have them."""


def is_secret(name: str) -> bool:
    """Return whether an option of this name must not be shown or sent.

    Examples
    --------
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


def has_password(url: str) -> bool:
    """Return whether a URL contains a password."""
    return _PASSWORD.match(url) is not None


def remove_password(url: str) -> str:
    """Return the URL with its user, if any, and without a password or other secrets.

    Examples
    --------
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
