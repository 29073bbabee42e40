"""Whether file formats can hold the columns, and whether stored scan options agree.

Law: one function a subject, one sentence a refusal; see `validate`. Source: `SchemaValidation.validateStartupMode`,
the formats' `validateDataFields`.
"""

from __future__ import annotations

from collections.abc import Mapping

from paimon.domain.errors import InvalidRequest, Unsupported, did_you_mean
from paimon.domain.options.parse import parse_levels, parse_list
from paimon.domain.options.table_options import TableOptions
from paimon.domain.schema.rules.layout import refuse
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.types import data_types as dt
from paimon.domain.types.data_types import DataType
from paimon.domain.types.text import format_type
from paimon.domain.types.walk import all_types

LATEST_DELTA = "latest-delta"
"""The scan mode of what the latest snapshot appended (Java's Paimon 2.x)."""
COLUMN_FORMATS = ("parquet", "orc", "avro")
_FOREIGN_FORMATS = ("csv", "json", "text", "lance", "vortex", "row", "blob")
_SCAN_GROUPS: Mapping[str, tuple[str, ...]] = {
    "from-timestamp": ("scan.timestamp", "scan.timestamp-millis"),
    "from-snapshot": ("scan.snapshot-id", "scan.tag-name", "scan.watermark", "scan.version"),
    "from-snapshot-full": ("scan.snapshot-id",),
    "from-file-creation-time": ("scan.file-creation-time-millis",),
    "from-creation-timestamp": ("scan.creation-time-millis",),
    "incremental": ("incremental-between", "incremental-between-timestamp", "incremental-to-auto-tag"),
}
"""Scan mode -> the options of which it needs exactly one."""


def check_files(schema: TableSchema, options: TableOptions) -> None:
    """Refuse what does not fit."""
    for option, name in _formats(options):
        _check_format(schema, option, name)
    _check_file_indexes(schema, options)
    check_scan(options)


def _formats(options: TableOptions) -> list[tuple[str, str]]:
    named = [(key, options.get(key) or "") for key in ("file.format", "changelog-file.format")]
    levels = parse_levels(options.get("file.format.per.level") or "")
    named += [("file.format.per.level", name) for name in levels.values()]
    return [(key, name.lower()) for key, name in named if name]


def _check_format(schema: TableSchema, option: str, name: str) -> None:
    if name in _FOREIGN_FORMATS:
        raise Unsupported(f"file format {name!r} of option {option!r}", hint=f"use one of {', '.join(COLUMN_FORMATS)}")
    if name not in COLUMN_FORMATS:
        raise refuse(option, f"is {name!r}, which is no file format", did_you_mean(name, COLUMN_FORMATS))
    for column in schema.fields:
        for part in all_types(column.type):
            if not _holds(name, part):
                raise InvalidRequest(
                    f"column {column.name!r} holds {format_type(part)}, which {name} files cannot", subject=column.name,
                    hint="use another type, or another 'file.format'",
                )


def _holds(name: str, data_type: DataType) -> bool:
    match data_type:
        case dt.VectorType():
            return False
        case dt.VariantType():
            return name == "parquet"
        case dt.TimestampType(precision=p) | dt.LocalZonedTimestampType(precision=p):
            return name != "avro" or p <= 6
        case dt.TimeType(precision=p):
            return name != "avro" or p <= 3
    return True


def _check_file_indexes(schema: TableSchema, options: TableOptions) -> None:
    for key, value in options.values.items():
        if key.startswith("file-index.") and key.endswith(".columns"):
            for name in parse_list(value):
                column = name.partition("[")[0]
                if column not in schema.fields_by_name:
                    raise refuse(key, f"names {column!r}, which is no column", did_you_mean(column, schema.names))


def check_scan(options: TableOptions) -> None:
    """At most one way of travelling is given, and the scan mode has what it needs."""
    mode = options.scan_mode
    given = [k for k in dict.fromkeys(k for keys in _SCAN_GROUPS.values() for k in keys) if k in options.values]
    if len(given) > 1:
        raise refuse(given[1], f"does not go with {given[0]!r}", "keep one of them")
    wanted = _SCAN_GROUPS.get(mode, ())
    if mode == "default":
        return
    if wanted and not any(key in wanted for key in given):
        raise refuse("scan.mode", f"is {mode!r}, which needs one of {', '.join(wanted)}")
    if given and given[0] not in wanted:
        raise refuse(given[0], f"does not go with scan mode {mode!r}")
