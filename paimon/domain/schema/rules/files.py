"""Checks that file formats can hold the columns, and that stored scan options agree.

Source: `SchemaValidation.validateStartupMode`, the formats' `validateDataFields`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from paimon.domain.errors import InvalidRequest, Unsupported
from paimon.domain.options.layout_options import FILE_FORMATS
from paimon.domain.options.table_options import TableOptions
from paimon.domain.options.validate import FORMAT_OPTIONS, list_formats
from paimon.domain.schema.declared_indexes import declare_indexes
from paimon.domain.schema.rules.layout import option_error
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.types import data_types as dt
from paimon.domain.types.data_types import DataType
from paimon.domain.types.field_ids import all_types
from paimon.domain.types.type_text import format_type

LATEST_DELTA = "latest-delta"
"""The scan mode that reads what the latest snapshot appended (Java's Paimon 2.x)."""
VECTOR_FORMAT = "vector.file.format"
_SCAN_GROUPS: Mapping[str, tuple[str, ...]] = {
    "from-timestamp": ("scan.timestamp", "scan.timestamp-millis"),
    "from-snapshot": ("scan.snapshot-id", "scan.tag-name", "scan.watermark", "scan.version"),
    "from-snapshot-full": ("scan.snapshot-id",),
    "from-file-creation-time": ("scan.file-creation-time-millis",),
    "from-creation-timestamp": ("scan.creation-time-millis",),
    "incremental": ("incremental-between", "incremental-between-timestamp", "incremental-to-auto-tag"),
}
"""By scan mode: the options of which it needs exactly one."""


def check_files(schema: TableSchema, options: TableOptions, formats: Collection[str] = FILE_FORMATS) -> None:
    """Refuse formats that cannot hold a column, indexes of unknown columns, and contradicting scan options."""
    for option in FORMAT_OPTIONS:
        for name in list_formats(option, options.get(option) or ""):
            _check_format(schema, option, name, formats)
    declare_indexes(schema.fields, options.values)
    check_scan(options)


def _check_format(schema: TableSchema, option: str, name: str, formats: Collection[str]) -> None:
    if name not in formats:
        known = f"known formats are {', '.join(sorted(formats))}"
        raise Unsupported(
            f"file format {name!r} of option {option!r}",
            hint=f"{known}; install the package that offers it, or give it to the engine",
        )
    for column in _list_stored_columns(schema, option):
        for part in all_types(column.type):
            if not _holds(name, part):
                raise InvalidRequest(
                    f"Column {column.name!r} contains {format_type(part)}, which {name} files cannot store",
                    subject=column.name,
                    hint="use another type, or another 'file.format'",
                )


def _list_stored_columns(schema: TableSchema, option: str) -> list[dt.DataField]:
    """Return the columns in files of the format that an option names."""
    if not schema.options.get(VECTOR_FORMAT):
        return list(schema.fields)
    return [column for column in schema.fields if isinstance(column.type, dt.VectorType) == (option == VECTOR_FORMAT)]


def can_store_columns(schema: TableSchema, format_name: str) -> bool:
    """Return whether files of a format can store all columns of the table."""
    return all(_holds(format_name, part) for column in schema.fields for part in all_types(column.type))


def _holds(name: str, data_type: DataType) -> bool:
    match data_type:
        case dt.VectorType():
            return name != "orc"
        case dt.VariantType():
            return name not in ("orc", "avro")
        case dt.TimestampType(precision=p) | dt.LocalZonedTimestampType(precision=p):
            return name != "avro" or p <= 6
        case dt.TimeType(precision=p):
            return name != "avro" or p <= 3
    return True


def check_scan(options: TableOptions) -> None:
    """Check that at most one point of time travel is given, and that the scan mode has the option that it needs."""
    mode = options.scan_mode
    given = [k for k in dict.fromkeys(k for keys in _SCAN_GROUPS.values() for k in keys) if k in options.values]
    if len(given) > 1:
        raise option_error(given[1], f"cannot be combined with {given[0]!r}", "leave out one of them")
    wanted = _SCAN_GROUPS.get(mode, ())
    if mode == "default":
        return
    if wanted and not any(key in wanted for key in given):
        raise option_error("scan.mode", f"is {mode!r}, which needs one of {', '.join(wanted)}")
    if given and given[0] not in wanted:
        raise option_error(given[0], f"cannot be combined with scan mode {mode!r}")
