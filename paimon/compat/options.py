"""Options of catalogs and tables by the names of pypaimon: keys, defaults, and maps of values.

Source: `pypaimon.common.options`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from attrs import frozen

from paimon.compat.option_values import parse_value
from paimon.domain.errors import did_you_mean
from paimon.domain.options.known_options import OPTIONS
from paimon.domain.options.option import Kind, Option
from paimon.domain.options.setting import option_text

_CATALOG_KEYS = {
    "METASTORE": ("metastore", "filesystem"),
    "WAREHOUSE": ("warehouse", None),
    "URI": ("uri", None),
    "TOKEN": ("token", None),
    "TOKEN_PROVIDER": ("token.provider", None),
    "PREFIX": ("prefix", None),
}
_CLASSES = {
    Kind.BOOL: bool,
    Kind.INT: int,
    Kind.LONG: int,
    Kind.DOUBLE: float,
    Kind.MEMORY: int,
    Kind.DURATION: timedelta,
}
_DEFAULTS: Mapping[str, Any] = {
    "file.compression.per.level": {},
    "file.format.per.level": {},
    "postpone.target-size-per-bucket": 1 << 30,
    "scan.manifest.parallelism": 16,
    "target-file-row-num": sys.maxsize,
}
"""Defaults that pypaimon has as values, and this library as rules."""
_OTHER_NAMES = {"file_compression_per_level": "file.compression.per.level"}


@frozen
class Description:
    """What an option does."""

    text: str


@frozen
class ConfigOption:
    """The key of an option and its default."""

    name: str
    default: Any = None
    kind: Kind = Kind.TEXT
    text: str = ""

    def key(self) -> str:
        """Return the key."""
        return self.name

    def default_value(self) -> Any:
        """Return the default; None for none."""
        return self.default

    def has_default_value(self) -> bool:
        """Return whether there is a default."""
        return self.default is not None

    def get_clazz(self) -> type:
        """Return the class of the values."""
        return type(self.default) if self.default is not None else _CLASSES.get(self.kind, str)

    def description(self) -> Description:
        """Return what the option does."""
        return Description(self.text)

    def with_description(self, description: str | Description) -> ConfigOption:
        """Return the option with another description."""
        text = description.text if isinstance(description, Description) else description
        return ConfigOption(self.name, self.default, self.kind, text)


def _config_option(option: Option) -> ConfigOption:
    default = None if option.default is None else parse_value(option.key, option.kind, option.default)
    return ConfigOption(option.key, _DEFAULTS.get(option.key, default), option.kind, option.doc)


_BY_WORDS = {key.replace(".", "_").replace("-", "_"): option for key, option in OPTIONS.items()}
for _name, _key in _OTHER_NAMES.items():
    if _key in OPTIONS:
        _BY_WORDS[_name] = OPTIONS[_key]


def find_option(name: str, owner: str) -> ConfigOption:
    """Return the option of a constant or method."""
    option = _BY_WORDS.get(name.lower())
    if option is None:
        hint = did_you_mean(name.lower(), list(_BY_WORDS)) or "docs/reference/options.md lists the table options"
        raise AttributeError(f"{owner} has no option {name!r}: {hint}", name=name)
    return _config_option(option)


class Options:
    """A map of options, read by `ConfigOption`."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.data = dict(data)

    @classmethod
    def from_none(cls) -> Options:
        """Return a map without options."""
        return cls({})

    def to_map(self) -> dict[str, Any]:
        """Return the values by key."""
        return self.data

    def get(self, key: ConfigOption, default: Any = None) -> Any:
        """Return the value of an option; its default where none is given."""
        if key.name in self.data:
            return parse_value(key.name, key.kind, self.data[key.name])
        return key.default if default is None else default

    def set(self, key: ConfigOption, value: object) -> None:
        """Set an option."""
        self.data[key.name] = option_text(value)

    def contains(self, key: ConfigOption) -> bool:
        """Return whether an option is given."""
        return key.name in self.data

    def contains_key(self, key: str) -> bool:
        """Return whether the option of this key is given."""
        return key in self.data

    def copy(self) -> Options:
        """Return a copy."""
        return Options(self.data)


class _CatalogConstants(type):
    def __getattr__(cls, name: str) -> ConfigOption:
        if name not in _CATALOG_KEYS:
            hint = did_you_mean(name, list(_CATALOG_KEYS)) or "the how-to page lists the options of catalogs"
            raise AttributeError(f"CatalogOptions has no option {name!r}: {hint}", name=name)
        return ConfigOption(*_CATALOG_KEYS[name])


class CatalogOptions(metaclass=_CatalogConstants):
    """The keys of catalog options: ``CatalogOptions.WAREHOUSE.key()``."""
