"""Golden tables: tables that Java wrote, with the rows that Java reads of them, as cells of the kit.

A set is a folder, or an archive of it. Each table is a folder of the set:

    table/                        the table
    expected/latest.jsonl         its newest rows, one JSON object a line
    expected/snapshot-3.jsonl     its rows at a snapshot
    case.json                     how it was made; without "steps", an older version of Java made it

The README of the set describes how values are written.
"""

from __future__ import annotations

import json
import shutil
import tarfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
from attrs import evolve, frozen

import paimon
from paimon.domain.errors import InvalidRequest
from paimon.domain.options.table_options import TableOptions
from paimon.domain.row.literals import parse_literal
from paimon.domain.row.values import to_array
from paimon.domain.schema.bucket_mode import BucketMode, get_bucket_mode
from paimon.domain.schema.table_schema import TableSchema, schema_from_json
from paimon.domain.types import data_types as dt
from paimon.domain.types.arrow import arrow_schema
from paimon.domain.types.data_types import DataField, DataType
from paimon.testing.conformance.implementation import Capabilities, Refused, TableUnderTest, describe_error
from paimon.testing.conformance.run_cases import Cell, Mismatch, Result, Runner, to_multiset, to_rows
from paimon.testing.interleaving import catch_outcome
from paimon.testing.strategies.tables import Row

GROUP = "golden"
WRITER = "read Java's"
_DATABASE = "golden"
_MOST_ROWS = 100
_MODES = {
    BucketMode.FIXED: "fixed",
    BucketMode.DYNAMIC: "dynamic",
    BucketMode.CROSS_PARTITION: "dynamic",
    BucketMode.POSTPONED: "postponed",
    BucketMode.UNAWARE: "unaware",
}


@frozen
class _GoldenRead:
    """A read of a golden table: the snapshot, None for the newest, and the file with the rows."""

    snapshot: int | None
    expected: Path


def open_golden_set(path: str, folder: Path) -> Path:
    """Return the folder of a set, unpacked to `folder` if it is an archive; an empty path is the installed package.

    Raises
    ------
    InvalidRequest
        There are no golden tables.
    """
    source = Path(path) if path else _find_installed()
    if not source.is_dir():
        try:
            with tarfile.open(source) as archive:
                archive.extractall(folder, filter="data")
        except (OSError, tarfile.TarError) as error:
            raise InvalidRequest(f"Golden set {str(source)!r} cannot be read: {error}", subject=str(source)) from error
        source = folder
    if not any(source.glob("*/expected/latest.jsonl")):
        raise InvalidRequest(
            f"{str(source)!r} has no golden tables.", subject=path, hint="give a folder of tables, or its archive"
        )
    return source


def _find_installed() -> Path:
    try:
        return Path(import_module("paimon_golden").ARCHIVE)
    except ModuleNotFoundError as error:
        hint = "install packages/golden of this repository, or give a path: --golden PATH"
        raise InvalidRequest("Package 'paimon-golden' is not installed", hint=hint) from error


def list_golden(home: Path, can: Capabilities) -> dict[str, Path]:
    """Return the folders of the tables that need declared capabilities only, by the name of the feature."""
    folders = sorted(path.parents[1] for path in home.glob("*/expected/latest.jsonl"))
    return {f"{GROUP}:{path.name}": path for path in folders if _is_declared(path / "table", can)}


def _is_declared(table: Path, can: Capabilities) -> bool:
    schemas = [schema_from_json(path.read_bytes(), str(path)) for path in table.glob("schema/schema-*")]
    newest = max(schemas, key=lambda schema: schema.id)
    options = TableOptions.of(newest.options)
    needed = {
        "partitions": bool(newest.partition_keys),
        "row-kinds": options.rowkind_field is not None,
        "sequence-field": bool(options.sequence_fields),
        "added-columns": len(schemas) > 1,
        "deletion-vectors": options.deletion_vectors_enabled,
    }
    keys = {*newest.primary_keys} - {*newest.partition_keys}
    types = {name for schema in schemas for f in schema.fields for name in _list_types(f.type)}
    key_types = {name for schema in schemas for f in schema.fields if f.name in keys for name in _list_types(f.type)}
    return (
        types <= {*can.types}
        and key_types <= {*can.key_types}
        and {name for f in newest.partition_fields for name in _list_types(f.type)} <= {*can.partition_types}
        and {path.name.split(".")[1] for path in table.rglob("bucket-*/data-*")} <= {*can.file_formats}
        and _MODES[get_bucket_mode(newest, options)] in can.bucket_modes
        and (not newest.primary_keys or options.merge_engine in can.merge_engines)
        and {name for name, is_needed in needed.items() if is_needed} <= {*can.features}
    )


def _list_types(data_type: DataType) -> Iterator[str]:
    """Yield the names of a type and of the types in it, as `Capabilities` has them."""
    match data_type:
        case dt.LocalZonedTimestampType():
            yield "TIMESTAMP_LTZ"
        case dt.RowType(fields=fields):
            yield from ("ROW", *(name for f in fields for name in _list_types(f.type)))
        case dt.ArrayType(element=element) | dt.MultisetType(element=element):
            yield from (type(data_type).__name__.removesuffix("Type").upper(), *_list_types(element))
        case dt.MapType(key=key, value=value):
            yield from ("MAP", *_list_types(key), *_list_types(value))
        case _:
            yield type(data_type).__name__.removesuffix("Type").upper()


def list_golden_cells(runner: Runner, tables: Mapping[str, Path]) -> dict[tuple[str, str], Cell]:
    """Return a cell for each of some golden tables.

    Raises
    ------
    InvalidRequest
        The warehouse is not local.
    """
    if tables and "://" in runner.warehouse:
        hint = "leave out --warehouse, or give a local directory"
        raise InvalidRequest("Golden tables are copied to local warehouses only", subject=runner.warehouse, hint=hint)
    return {(feature, WRITER): _make_cell(runner, feature, folder) for feature, folder in tables.items()}


def _make_cell(runner: Runner, feature: str, folder: Path) -> Cell:
    return lambda _: _run_golden(runner, feature, folder)


def _run_golden(runner: Runner, feature: str, folder: Path) -> Result:
    """Let the implementation read a copy of one golden table, and compare its rows with those of Java."""
    location = Path(runner.warehouse) / f"{_DATABASE}.db" / folder.name
    shutil.rmtree(location, ignore_errors=True)
    shutil.copytree(folder / "table", location)
    count = 0
    try:
        for read in _list_reads(folder, runner.theirs.capabilities):
            found = _compare(runner, folder, location, read)
            count += 1
            if found is not None:
                return Result(feature, WRITER, "wrong", count, mismatch=found)
    except Refused as refusal:
        return Result(feature, WRITER, "refused", count + 1, 1, str(refusal))
    finally:
        if not runner.keeps_tables:
            shutil.rmtree(location, ignore_errors=True)
    return Result(feature, WRITER, "right", count)


def _list_reads(folder: Path, can: Capabilities) -> Iterator[_GoldenRead]:
    """Yield the newest rows, then the snapshots. Older versions of Java read their snapshots in another way."""
    yield _GoldenRead(None, folder / "expected" / "latest.jsonl")
    if "time-travel" in can.features and "steps" in json.loads((folder / "case.json").read_text("utf8")):
        for path in sorted(folder.glob("expected/snapshot-*.jsonl")):
            yield _GoldenRead(int(path.stem.partition("-")[2]), path)


def _compare(runner: Runner, folder: Path, location: Path, read: _GoldenRead) -> Mismatch | None:
    scan = paimon.open_table(location).scan(snapshot=read.snapshot)
    schema: TableSchema = evolve(paimon.open_table(location).table_schema, fields=scan.fields)
    keys, columns = (schema.primary_keys, schema.partition_keys), arrow_schema(scan.fields)
    table = TableUnderTest(runner.warehouse, _DATABASE, folder.name, columns, *keys, schema.options)
    lines = [json.loads(line) for line in read.expected.read_text("utf8").splitlines()]
    expected = tuple(to_rows(rows_to_arrow(lines, scan.fields), scan.fields))
    read_rows = catch_outcome(lambda: runner.theirs.read(table, read.snapshot))
    if isinstance(read_rows, Refused | NotImplementedError):
        raise Refused(f"read: {str(read_rows)[:200]}")
    what, found = "read", read_rows
    if not isinstance(read_rows, BaseException):
        what, found = "not rows of the table", catch_outcome(lambda: tuple(to_rows(read_rows, scan.fields)))
    if isinstance(found, BaseException):
        text = describe_error(found).replace(str(location), folder.name)
        return Mismatch(schema, (), read.snapshot, expected[:_MOST_ROWS], {runner.name: f"{what}: {text}"})
    if to_multiset(expected) == to_multiset(found):
        return None
    missing, added = _leave_out(expected, found), _leave_out(found, expected)
    return Mismatch(schema, (), read.snapshot, missing, {runner.name: added}, only_differences=True)


def _leave_out(rows: Sequence[Row], others: Sequence[Row]) -> tuple[Row, ...]:
    """Return the first rows that are not among others."""
    left, found = Counter(map(repr, others)), list[Row]()
    for row in rows:
        text = repr(row)
        if left[text]:
            left[text] -= 1
        elif len(found) < _MOST_ROWS:
            found.append(row)
    return tuple(found)


def rows_to_arrow(rows: Sequence[Mapping[str, Any]], fields: Sequence[DataField]) -> pa.Table:
    """Convert rows from their JSON form to Arrow; columns that a row lacks are null."""
    columns = [to_array([read_json_value(row.get(f.name), f.type) for row in rows], f.type) for f in fields]
    return pa.Table.from_arrays(columns, schema=arrow_schema(fields))


def read_json_value(value: Any, data_type: DataType) -> Any:
    """Return the internal value of one in the JSON form of a golden set."""
    match data_type:
        case _ if value is None:
            return None
        case dt.BinaryType() | dt.VarBinaryType() | dt.BlobType():
            return bytes.fromhex(value)
        case dt.ArrayType(element=element) | dt.VectorType(element=element):
            return [read_json_value(v, element) for v in value]
        case dt.MapType(key=key, value=item):
            return [(read_json_value(k, key), read_json_value(v, item)) for k, v in value]
        case dt.MultisetType(element=element):
            return [(read_json_value(k, element), v) for k, v in value]
        case dt.RowType(fields=fields):
            return tuple(read_json_value(value.get(f.name), f.type) for f in fields)
        case dt.TimestampType():  # Spark showed those of Java 0.7 as instants
            return parse_literal(value.removesuffix("Z"), data_type)
        case _:
            return parse_literal(value, data_type)
