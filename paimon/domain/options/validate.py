"""Checks that options are known, followed by this library, and of the right form.

Invariant: an unknown key or a wrong value is refused; the message suggests the nearest known key. An option that this
library does not follow is refused when a caller gives it. Values are checked one by one here; their combination with a
schema is checked by `paimon.domain.schema.validate`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from paimon.domain.errors import InvalidRequest, Unsupported, did_you_mean
from paimon.domain.options.known_options import (
    ALIASES,
    CALLBACK_PREFIXES,
    FEATURES,
    FIELD_OPTIONS,
    FILE_INDEX_SETTINGS,
    OPTIONS,
    TABLE_DEFAULT_PREFIX,
    TAG_CALLBACK_PARAMETERS,
    canonical_key,
)
from paimon.domain.options.layout_options import FILE_FORMATS
from paimon.domain.options.option import Effect, Kind, Option
from paimon.domain.options.parse import (
    bad_value_error,
    parse_bool,
    parse_double,
    parse_duration_nanos,
    parse_int,
    parse_levels,
    parse_long,
    parse_memory,
    parse_stats_mode,
    parse_stats_mode_levels,
)
from paimon.domain.text_checks import check_text

_CHECKS = {
    Kind.BOOL: parse_bool,
    Kind.INT: parse_int,
    Kind.LONG: parse_long,
    Kind.DOUBLE: parse_double,
    Kind.MEMORY: parse_memory,
    Kind.DURATION: parse_duration_nanos,
    Kind.LEVELS: parse_levels,
    Kind.STATS_MODE: parse_stats_mode,
    Kind.STATS_MODE_LEVELS: parse_stats_mode_levels,
}
_FORMATS_BY_LEVEL = "file.format.per.level"
FORMAT_OPTIONS = ("file.format", "changelog-file.format", "vector.file.format", _FORMATS_BY_LEVEL)
"""The options whose values name file formats."""
_FOREIGN_FORMATS = ("csv", "json", "text", "lance", "vortex", "mosaic", "row", "blob")
_DISABLED = ("", "false", "disabled", "none")
"""Values that disable a feature."""


def check_options(
    options: Mapping[str, str], allow_unknown: bool = False, formats: Collection[str] = FILE_FORMATS
) -> None:
    """Refuse unknown keys, values of a wrong form, and options that this library does not follow.

    The option texts come from a caller. An option that is not followed raises `Unsupported`, unless it has its default.
    `formats` are the file formats that a table may have. Options that begin with the name of one go to its writer.
    """
    for key, value in options.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise InvalidRequest(
                f"Option {key!r} has the value {value!r}, which is not a text",
                subject=str(key),
                hint="pass option names and values as str",
            )
        check_text(key, "option")
        check_text(value, f"the value of option {key!r}:")
        _check_option(key, value, allow_unknown, formats)


def _check_option(key: str, value: str, allow_unknown: bool, formats: Collection[str]) -> None:
    option = OPTIONS.get(canonical_key(key))
    if option is not None:
        if option.kind is Kind.CHOICE and value.strip().lower() not in option.choices:
            raise bad_value_error(key, value, "one of " + ", ".join(option.choices))
        check_form(key, value, option.kind)
        if option.catalog:
            raise Unsupported(
                f"option {key!r} of a table", hint="pass it to paimon.connect: it is an option of catalogs"
            )
        _check_follows(key, value, option)
        _check_formats(option.key, value, formats)
    elif key.startswith("fields."):
        _check_field_option(key, value, allow_unknown)
    elif key.startswith("file-index."):
        _check_index_option(key, value, allow_unknown)
    elif key.startswith(TABLE_DEFAULT_PREFIX):
        _check_option(key.removeprefix(TABLE_DEFAULT_PREFIX), value, allow_unknown, formats)
    elif key.startswith(tuple(FEATURES)):
        _check_feature(key, value)
    elif not allow_unknown and key.partition(".")[0] not in formats and not _is_callback_parameter(key):
        raise InvalidRequest(f"Option {key!r} is unknown", subject=key, hint=did_you_mean(key, [*OPTIONS, *ALIASES]))
    elif key.startswith("tag.callback."):
        _refuse(key, value, TAG_CALLBACK_PARAMETERS)


def _check_formats(key: str, value: str, formats: Collection[str]) -> None:
    for name in list_formats(key, value):
        if name not in formats and (name in _FOREIGN_FORMATS or name in FILE_FORMATS):
            raise Unsupported(f"file format {name!r} of option {key!r}", hint=f"use one of {', '.join(formats)}")
        if name not in formats:
            message = f"Option {key!r} is {name!r}, which is not a file format"
            raise InvalidRequest(message, subject=key, hint=did_you_mean(name, formats))


def list_formats(key: str, value: str) -> list[str]:
    """Return the file formats that an option names, in lower case."""
    if key not in FORMAT_OPTIONS:
        return []
    names = parse_levels(value).values() if key == _FORMATS_BY_LEVEL else (value,)
    return [name.lower() for name in names if name]


def check_stored_options(options: Mapping[str, str], keys: Iterable[str]) -> None:
    """Refuse the REFUSED options `keys` that another writer's table has set, unless to their defaults."""
    for key in keys:
        if key in options:
            _check_follows(key, options[key], OPTIONS[key])


def is_default(option: Option, value: str) -> bool:
    """Return whether a well-formed text means the same as the default of the option; the default may be none."""
    if option.default is None:
        return not value.strip()
    parse = _CHECKS.get(option.kind)
    if parse is not None:
        return bool(parse(value, option.key) == parse(option.default, option.key))
    if option.kind is Kind.CHOICE:
        return value.strip().lower() == option.default
    return value.strip() == option.default


def _check_follows(key: str, value: str, option: Option) -> None:
    if option.effect is Effect.REFUSED and not is_default(option, value):
        _refuse(key, value, option)


def _refuse(key: str, value: str, option: Option) -> None:
    raise Unsupported(f"option {key!r} with the value {value!r}", hint=option.reason)


def _check_feature(key: str, value: str) -> None:
    """Refuse an option of a feature that this library lacks, unless the value disables the feature."""
    if value.strip().lower() not in _DISABLED:
        _refuse(key, value, next(option for prefix, option in FEATURES.items() if key.startswith(prefix)))


def _is_callback_parameter(key: str) -> bool:
    """Return whether a key is `commit.callback.<name>.param`, which the callback reads itself."""
    return key.startswith(CALLBACK_PREFIXES) and key.endswith(".param")


def check_form(key: str, value: str, kind: Kind) -> None:
    """Refuse a value that is not of this kind; texts, names and choices are not checked. `key` is for the error."""
    check = _CHECKS.get(kind)
    if check is not None:
        check(value, key)


def _check_field_option(key: str, value: str, allow_unknown: bool) -> None:
    column, _, name = key.removeprefix("fields.").rpartition(".")
    kind = FIELD_OPTIONS.get(name)
    if kind is not None and column:
        check_form(key, value, kind)
    elif not allow_unknown:
        known = [f"fields.{column or '<column>'}.{n}" for n in FIELD_OPTIONS]
        raise InvalidRequest(f"Option {key!r} is unknown", subject=key, hint=did_you_mean(key, known))


def _check_index_option(key: str, value: str, allow_unknown: bool) -> None:
    kind, _, rest = key.removeprefix("file-index.").partition(".")
    column, _, name = rest.rpartition(".")
    if kind in FILE_INDEX_SETTINGS and (rest == "columns" or (column and name in FILE_INDEX_SETTINGS[kind])):
        if rest != "columns":
            check_form(key, value, FILE_INDEX_SETTINGS[kind][name])
    elif not allow_unknown:
        known = [f"file-index.{t}.columns" for t in FILE_INDEX_SETTINGS]
        known += [f"file-index.{t}.{column or '<column>'}.{n}" for t, ns in FILE_INDEX_SETTINGS.items() for n in ns]
        raise InvalidRequest(f"Option {key!r} is unknown", subject=key, hint=did_you_mean(key, known))
