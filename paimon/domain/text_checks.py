"""Checks of texts, names and mappings that callers pass.

A text that cannot be stored as UTF-8 is refused before anything is written.

Invariant: a text that passed `check_text` can be written to every file of a table and read back unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import date, time
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from paimon.domain.errors import InvalidRequest, capitalize

if TYPE_CHECKING:
    import pyarrow as pa

_SURROGATE = re.compile("[\ud800-\udfff]")


def is_unicode(text: str) -> bool:
    r"""Return whether a text can be encoded as UTF-8: an unpaired surrogate cannot.

    >>> is_unicode("caf\u00e9"), is_unicode("\ud800")
    (True, False)
    """
    return text.isascii() or _SURROGATE.search(text) is None


def show_value(value: object) -> str:
    """Return the text of a value for a message; Python writes no integers of more than 4,300 digits.

    >>> show_value("a"), show_value(date(2026, 1, 31)), show_value(10**5000)
    ("'a'", '2026-01-31', 'an integer of more than 4300 digits')
    """
    try:
        return str(value) if isinstance(value, date | time | Decimal) else repr(value)
    except ValueError:
        return "an integer of more than 4300 digits"
    except RecursionError:
        return f"a {type(value).__name__} that nests too deep"
    except OverflowError:  # a scalar of Arrow
        return "a time that Python cannot show"


def check_text(value: object, what: str) -> str:
    """Return a text unchanged; refuse a value that is not a text, or that cannot be encoded as UTF-8."""
    if not isinstance(value, str):
        raise InvalidRequest(f"{capitalize(what)} {value!r} is not a text", subject=what, hint="pass a str")
    if not is_unicode(value):
        raise InvalidRequest(
            f"{capitalize(what)} {value!r} is not valid Unicode", subject=what, hint="remove the unpaired surrogates"
        )
    return value


def check_path(value: object, what: str) -> str:
    """Return a path or URL unchanged; refuse one that is not a valid text or contains a NUL character."""
    text = check_text(value, what)
    if "\0" in text:
        raise InvalidRequest(
            f"{capitalize(what)} {text!r} contains the character U+0000", subject=what, hint="remove it"
        )
    return text


def check_names(values: object, what: str) -> tuple[str, ...]:
    """Return the names as a tuple; refuse a single text, or a value that is not an iterable of texts."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        hint = f"write [{values!r}]" if isinstance(values, str) else "pass a list of str"
        raise InvalidRequest(f"{what!r} is {show_value(values)}, and not a list of names", subject=what, hint=hint)
    return tuple(check_text(value, what) for value in values)


def match_whole(names: pa.Array, pattern: str, argument: str) -> pa.Array:
    """Return which names match a regular expression as a whole; the time is linear in the length of a name."""
    import pyarrow as pa  # rules that only check texts do not load Arrow
    import pyarrow.compute as pc

    try:
        pc.match_substring_regex(names, pattern)  # a pattern must be valid without the group around it
        return pc.match_substring_regex(names, rf"\A(?:{pattern})\z")
    except pa.ArrowInvalid as error:
        raise InvalidRequest(
            f"Pattern {pattern!r} is not a regular expression: {error}",
            subject=argument,
            hint="look-around and back-references are not supported",
        ) from error


def check_mapping(value: object, what: str) -> Mapping[Any, Any]:
    """Refuse a value that is not a mapping; None means an empty one."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InvalidRequest(f"{capitalize(what)} {value!r} is not a mapping", subject=what, hint="pass a dict")
    return value
