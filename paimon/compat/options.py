"""Options of catalogs and tables by the names of pypaimon's constants and methods.

`CoreOptions.SCAN_TAG_NAME` and `CoreOptions(options).scan_tag_name()` are found in the options of this library, whose
keys have the same words.

Source: `pypaimon.common.options`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attrs import frozen

from paimon.domain.errors import did_you_mean
from paimon.domain.options.known_options import OPTIONS
from paimon.domain.options.option import Kind, Option
from paimon.domain.options.parse import parse_bool, parse_double, parse_int, parse_long, parse_memory
from paimon.domain.options.setting import option_text
from paimon.domain.options.table_options import TableOptions

_PARSERS: Mapping[Kind, Callable[[str, str], Any]] = {
    Kind.BOOL: parse_bool,
    Kind.INT: parse_int,
    Kind.LONG: parse_long,
    Kind.DOUBLE: parse_double,
    Kind.MEMORY: parse_memory,
}
_CATALOG_KEYS = {
    "METASTORE": ("metastore", "filesystem"),
    "WAREHOUSE": ("warehouse", None),
    "URI": ("uri", None),
    "TOKEN": ("token", None),
    "TOKEN_PROVIDER": ("token.provider", None),
    "PREFIX": ("prefix", None),
}
_OTHER_NAMES = {"file_compression_per_level": "file.compression.per.level"}


@frozen
class ConfigOption:
    """The key of an option and its default.

    Parameters
    ----------
    name : str
        The key.
    default : object
        The value where none is given.
    kind : Kind
        The form of the value.
    """

    name: str
    default: Any = None
    kind: Kind = Kind.TEXT

    def key(self) -> str:
        """Return the key."""
        return self.name

    def default_value(self) -> Any:
        """Return the default; None for none."""
        return self.default

    def has_default_value(self) -> bool:
        """Return whether there is a default."""
        return self.default is not None


def _parse(option: ConfigOption, value: object) -> Any:
    parse = _PARSERS.get(option.kind)
    return parse(value, option.name) if parse is not None and isinstance(value, str) else value


def _config_option(option: Option) -> ConfigOption:
    made = ConfigOption(option.key, None, option.kind)
    return ConfigOption(option.key, None if option.default is None else _parse(made, option.default), option.kind)


_BY_WORDS = {key.replace(".", "_").replace("-", "_"): option for key, option in OPTIONS.items()}
for _name, _key in _OTHER_NAMES.items():
    if _key in OPTIONS:
        _BY_WORDS[_name] = OPTIONS[_key]


def _find_option(name: str, owner: str) -> ConfigOption:
    option = _BY_WORDS.get(name.lower())
    if option is None:
        hint = did_you_mean(name.lower(), list(_BY_WORDS)) or "docs/reference/options.md lists the table options"
        raise AttributeError(f"{owner} has no option {name!r}: {hint}", name=name)
    return _config_option(option)


class Options:
    """A map of options, read by `ConfigOption`.

    Parameters
    ----------
    data : dict
        Values by key.
    """

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
            return _parse(key, self.data[key.name])
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


class _Constants(type):
    """`CoreOptions.BUCKET` is the key of the option `bucket`."""

    def __getattr__(cls, name: str) -> ConfigOption:
        if name.startswith("_") or not name.isupper():
            raise AttributeError(f"CoreOptions has no attribute {name!r}", name=name)
        return _find_option(name, "CoreOptions")


class CoreOptions(metaclass=_Constants):
    """The options of a table: ``table.options.bucket()`` returns the value of the option `bucket`.

    Parameters
    ----------
    options : Options
        The effective options.
    """

    def __init__(self, options: Options) -> None:
        self.options = options

    @staticmethod
    def from_dict(options: Mapping[str, Any]) -> CoreOptions:
        """Return the options of a map."""
        return CoreOptions(Options(options))

    @staticmethod
    def copy(options: CoreOptions) -> CoreOptions:
        """Return a copy of options."""
        return CoreOptions(options.options.copy())

    def to_map(self) -> dict[str, Any]:
        """Return the texts by key."""
        return self.options.to_map()

    def data_file_external_paths_weights(self, default: list[int] | None = None) -> list[int] | None:
        """Return the weights of external paths; `default` if they are not set.

        Raises
        ------
        ValueError
            A weight is not a number above 0.
        """
        text = self.options.data.get("data-file.external-paths.weights")
        if text is None:
            return default
        weights = [part.strip() for part in str(text).split(",")]
        invalid = [part for part in weights if not part.isdecimal() or int(part) < 1]
        if invalid:
            raise ValueError(f"Weights of external paths must be positive numbers, not {invalid[0]!r}")
        return [int(part) for part in weights]

    def target_file_size(self, has_primary_key: bool | None = None, default: Any = None) -> Any:
        """Return the size of data files in bytes.

        Parameters
        ----------
        has_primary_key : bool, optional
            Whether the table has one: its files are half as large by default. None for the default of the option.
        default : int, optional
            The value where the option is not set.
        """
        option = _find_option("target_file_size", "CoreOptions")
        if default is None and has_primary_key is not None:
            default = TableOptions({}).target_file_size_bytes(has_primary_key)
        return self.options.get(option, default)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):
            raise AttributeError(name, name=name, obj=self)
        option = _find_option(name, "CoreOptions")
        return lambda default=None: self.options.get(option, default)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CoreOptions) and self.options.data == other.options.data

    __hash__ = None  # type: ignore[assignment]


class _CatalogConstants(type):
    def __getattr__(cls, name: str) -> ConfigOption:
        if name not in _CATALOG_KEYS:
            hint = did_you_mean(name, list(_CATALOG_KEYS)) or "the how-to page lists the options of catalogs"
            raise AttributeError(f"CatalogOptions has no option {name!r}: {hint}", name=name)
        return ConfigOption(*_CATALOG_KEYS[name])


class CatalogOptions(metaclass=_CatalogConstants):
    """The keys of catalog options: ``CatalogOptions.WAREHOUSE.key()``."""
