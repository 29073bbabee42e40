"""Texts that callers give: what cannot be stored as UTF-8 is refused before anything is written.

Invariant: a text that passed `check_text` can be written to every file of a table and read back unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from paimon.domain.errors import InvalidRequest

_SURROGATE = re.compile("[\ud800-\udfff]")


def is_unicode(text: str) -> bool:
    """Check whether a text can be encoded as UTF-8: half a surrogate pair cannot."""
    return text.isascii() or _SURROGATE.search(text) is None


def check_text(value: object, what: str) -> str:
    """Refuse what is no text, and text that cannot be encoded.

    Parameters
    ----------
    value : object
        What the caller gave.
    what : str
        What it is, as the error names it.

    Returns
    -------
    str
        The value itself.

    Raises
    ------
    InvalidRequest
        The value is no `str`, or holds half a surrogate pair.
    """
    if not isinstance(value, str):
        raise InvalidRequest(f"{what} {value!r} is no text", subject=what, hint="give a str")
    if not is_unicode(value):
        raise InvalidRequest(
            f"{what} {value!r} is not valid Unicode", subject=what, hint="remove the unpaired surrogates"
        )
    return value


def check_path(value: object, what: str) -> str:
    """Refuse what no file system takes as a path: no text, half a surrogate pair, a NUL.

    Parameters
    ----------
    value : object
        The path or URL that the caller gave.
    what : str
        What it is, as the error names it.

    Returns
    -------
    str
        The value itself.

    Raises
    ------
    InvalidRequest
        Naming the path.
    """
    text = check_text(value, what)
    if "\0" in text:
        raise InvalidRequest(f"{what} {text!r} holds the character U+0000", subject=what, hint="remove it")
    return text


def check_names(values: object, what: str) -> tuple[str, ...]:
    """Refuse what is no list of texts.

    Parameters
    ----------
    values : object
        The names that the caller gave.
    what : str
        What they are, as the error names them.

    Returns
    -------
    tuple of str
        The names.

    Raises
    ------
    InvalidRequest
        A single text, no iterable, or one that holds anything but texts.
    """
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InvalidRequest(f"{what} {values!r} is no list of names", subject=what, hint="give a list of str")
    return tuple(check_text(value, what) for value in values)


def check_mapping(value: object, what: str) -> Mapping[Any, Any]:
    """Refuse what is no mapping; None stands for an empty one.

    Parameters
    ----------
    value : object
        What the caller gave.
    what : str
        What it is, as the error names it.

    Returns
    -------
    mapping
        The value itself.

    Raises
    ------
    InvalidRequest
        The value is no mapping.
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InvalidRequest(f"{what} {value!r} is no mapping", subject=what, hint="give a dict")
    return value
