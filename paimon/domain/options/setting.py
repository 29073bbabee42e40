"""Settings: options as typed attributes of a class that holds option texts.

Law: an attribute's value is the option's text, else its older keys', else its default, each through the option's
own parser.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic, Protocol, TypeVar

from attrs import frozen

from paimon.domain.errors import InvalidRequest
from paimon.domain.options.registry import OPTIONS

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")


def option_text(value: object) -> str:
    """An option's value as tables store it; InvalidRequest for None."""
    if value is None:
        raise InvalidRequest("None is not the value of an option.", subject="options", hint="leave the option out")
    return str(value).lower() if isinstance(value, bool) else str(value)


class HoldsValues(Protocol):
    """What has option texts by key."""

    @property
    def values(self) -> Mapping[str, str]: ...


def text_of(values: Mapping[str, str], key: str) -> str | None:
    """The text that is in force for `key`: given, given under an older key, or the default."""
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
    """A descriptor that reads one option."""

    key: str
    read: Callable[[str | None, str], T_co]

    def __get__(self, owner: HoldsValues, kind: type | None = None) -> T_co:
        return self.read(text_of(owner.values, self.key), self.key)


def required(key: str, parse: Callable[[str, str], T]) -> Setting[T]:
    """An option that always has a value: given or by default."""
    default = OPTIONS[key].default
    if default is None:
        raise KeyError(f"{key} has no default")
    return Setting(key, lambda text, k: parse(default if text is None else text, k))


def optional(key: str, parse: Callable[[str, str], T]) -> Setting[T | None]:
    """An option that may be absent (None)."""
    return Setting(key, lambda text, k: None if text is None else parse(text, k))


def as_text(text: str, key: str) -> str:
    """The text, without the blanks around it."""
    return text.strip()


def as_word(text: str, key: str) -> str:
    """The text of a choice, which is the same in any case."""
    return text.strip().lower()


def names(key: str) -> Setting[tuple[str, ...]]:
    """A list of names, empty where absent."""
    return Setting(key, lambda text, _: tuple(n.strip() for n in (text or "").split(",") if n.strip()))
