"""Settings: options as typed attributes of a class that holds option texts.

Invariant: the value of an attribute is the option's text, else the text under an older key, else the default, each
through the option's own parser.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Generic, Protocol, TypeVar

from attrs import frozen

from paimon.domain.errors import InvalidRequest
from paimon.domain.options.known_options import OPTIONS
from paimon.domain.text_checks import show_value

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")


def option_text(value: object) -> str:
    """Return an option's value as tables store it.

    >>> option_text(4), option_text(True)
    ('4', 'true')
    """
    if value is None:
        raise InvalidRequest("An option has the value None", subject="options", hint="leave the option out")
    if isinstance(value, Enum):
        return option_text(value.value)
    if isinstance(value, int) and value.bit_length() > 64:
        raise InvalidRequest(f"An option has the value {show_value(value)}", subject="options", hint="pass a text")
    return str(value).lower() if isinstance(value, bool) else str(value)


class HoldsValues(Protocol):
    """An object with option texts by key."""

    @property
    def values(self) -> Mapping[str, str]:
        """Option texts by key."""

    @property
    def parsed(self) -> dict[str, Any]:
        """The values that were read before, by key; a commit reads a hundred of them several times."""


def effective_text(values: Mapping[str, str], key: str) -> str | None:
    """Return the effective text of an option: given, given under an older key, or the default."""
    if key in values:
        return values[key]
    option = OPTIONS.get(key)
    if option is None:
        return None
    for alias in option.aliases:
        if alias in values:
            return values[alias]
    return option.default


@frozen(eq=False)
class Setting(Generic[T_co]):
    """A descriptor that reads one option, which no other descriptor of its class reads."""

    key: str
    # takes the effective text (None if there is none) and the key, and returns the value
    read: Callable[[str | None, str], T_co]

    def __get__(self, owner: HoldsValues, kind: type | None = None) -> T_co:
        parsed = owner.parsed
        if self.key not in parsed:
            parsed[self.key] = self.read(effective_text(owner.values, self.key), self.key)
        return parsed[self.key]  # type: ignore[no-any-return]


def required_setting(key: str, parse: Callable[[str, str], T]) -> Setting[T]:
    """Build the setting of an option that always has a value: given or by default."""
    default = OPTIONS[key].default
    if default is None:
        raise KeyError(f"{key} has no default")
    return Setting(key, lambda text, k: parse(default if text is None else text, k))


def optional_setting(key: str, parse: Callable[[str, str], T]) -> Setting[T | None]:
    """Build the setting of an option that may be absent; its value is then None."""
    return Setting(key, lambda text, k: None if text is None else parse(text, k))


def as_text(text: str, key: str) -> str:
    """Return the text without the blanks around it; `key` is not used."""
    return text.strip()


def as_word(text: str, key: str) -> str:
    """Return the text of a choice in small letters, without the blanks around it; `key` is not used."""
    return text.strip().lower()


def names_setting(key: str) -> Setting[tuple[str, ...]]:
    """Build the setting of a comma-separated list of names; an absent option is an empty tuple."""
    return Setting(key, lambda text, _: tuple(n.strip() for n in (text or "").split(",") if n.strip()))
