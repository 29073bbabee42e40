"""Files that `paimon write` reads.

Law: a file becomes Arrow tables with the file's own types; text formats are read with the table's types where they can
be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa
from pyarrow import csv, feather, json, orc
from pyarrow import parquet as pq

from paimon.domain.errors import CorruptTable, InvalidRequest, NotFound

_ENDINGS = {
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".parquet": "parquet",
    ".orc": "orc",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}


def read_file(name: str, format_name: str | None, schema: pa.Schema | None = None) -> list[pa.Table]:
    """The file as Arrow tables; `schema` gives text formats their types.

    Raises
    ------
    NotFound
        No such file.
    InvalidRequest
        A format that is not known.
    CorruptTable
        The file is not of its format.
    """
    path = Path(name)
    if not path.is_file():
        raise NotFound("file", name)
    chosen = format_name or _ENDINGS.get(path.suffix.lower())
    if chosen is None:
        raise InvalidRequest(
            f"{name}: the ending {path.suffix!r} names no known format",
            subject=name,
            hint="pass --format csv|json|parquet|orc|arrow",
        )
    try:
        return [_READERS[chosen](path, schema)]
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, pa.ArrowKeyError, OSError) as error:
        raise CorruptTable(name, f"cannot be read as {chosen}: {str(error).splitlines()[0]}") from error


def _csv(path: Path, schema: pa.Schema | None) -> pa.Table:
    types = {} if schema is None else {f.name: f.type for f in schema if not pa.types.is_nested(f.type)}
    return csv.read_csv(path, convert_options=csv.ConvertOptions(column_types=types, strings_can_be_null=True))


def _json(path: Path, schema: pa.Schema | None) -> pa.Table:
    # Arrow reads text for dates and decimals by itself where the schema says so; other columns are inferred.
    options = json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="infer")
    try:
        return json.read_json(path, parse_options=options)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return json.read_json(path)


def _parquet(path: Path, _: pa.Schema | None) -> pa.Table:
    return pq.ParquetFile(path).read()


def _orc(path: Path, _: pa.Schema | None) -> pa.Table:
    return orc.ORCFile(path).read()


def _arrow(path: Path, _: pa.Schema | None) -> pa.Table:
    return feather.read_table(path)


_READERS: Mapping[str, Callable[[Path, pa.Schema | None], pa.Table]] = {
    "csv": _csv,
    "json": _json,
    "parquet": _parquet,
    "orc": _orc,
    "arrow": _arrow,
}
