"""Read the files of a scan that need no merge with Spark's own Parquet reader.

Invariant: `paimon.domain.scan.engine_files` selects the files, and their footers are checked before Spark gets their
paths. The frame has the rows of these files and no others, whatever the settings of the session are.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce

from attrs import frozen
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, FloatType, StructField, StructType

from paimon.domain.errors import InvalidRequest
from paimon.domain.scan.engine_files import FileReader
from paimon.operations.read.engine_files import NamedFile, check_engine_files, find_engine_files
from paimon.scan import Scan
from paimon.spark.frame_reads import remember_files, to_files_mark, to_read_mark
from paimon.spark.types import quote_column

SETTING = "spark.paimon.parquet-reader"
"""The setting of a session that selects who reads Parquet files without a merge."""
_SPARK, _PYTHON = "spark", "python"
_READER = FileReader(maps_names=True)
_PATH = re.compile(r"/[A-Za-z0-9_./=%+@~ -]*/[A-Za-z0-9][A-Za-z0-9_.=%+@~-]*")
"""Spark expands wildcards, leaves out files whose names begin with ``_`` or ``.``, and may not find other letters."""
_OPTIONS = {
    "datetimeRebaseMode": "CORRECTED",
    "ignoreCorruptFiles": "false",
    "ignoreMissingFiles": "false",
    "parquet.page.verify-checksum.enabled": "true",
}
"""Settings of the session with these meanings would return other rows."""
_SERIAL_LISTING = {"spark.sql.sources.parallelPartitionDiscovery.threshold": str(2**31 - 1)}
"""Spark looks up many paths with one task each, which takes longer."""
_MOST_LISTED = 32
_LOCK = threading.RLock()


@frozen(eq=False)
class ParquetPart:
    """The part of a scan that Spark reads with its own Parquet reader."""

    # Has the columns of the scan, all nullable
    frame: DataFrame
    # File names, so that the other reader leaves them out
    names: tuple[str, ...]
    # Whether these files contain all rows of the scan
    is_whole: bool


def load_parquet_part(spark: SparkSession, scan: Scan, schema: StructType) -> ParquetPart | None:
    """Load the files of a scan that need no merge; None if there are none. Only their footers are read now.

    The scan has no limit. Raises `CorruptTable` if a file is missing or damaged.
    """
    if _get_reader(spark) == _PYTHON:
        return None
    read = scan.read_plan
    selected = find_engine_files(scan.context, scan.plan().splits, read, _READER)
    files = [file for file in check_engine_files(scan.context, selected, read) if _PATH.fullmatch(file.path)]
    if not files:
        return None
    names = [file.file_name for split in (*selected.files, *selected.rest) for file in split.files]
    if len(set(names)) < len(names):  # the other reader leaves out files by name
        return None
    remember_files(scan, (file.path for file in files))
    mark = {**to_read_mark(scan), **to_files_mark(scan)}
    frames = [_load_files(spark, group, schema, mark) for group in _group_by_fields(files)]
    return ParquetPart(reduce(DataFrame.union, frames), tuple(f.name for f in files), len(files) == len(names))


def _get_reader(spark: SparkSession) -> str:
    chosen = str(spark.conf.get(SETTING, _SPARK))
    if chosen not in (_SPARK, _PYTHON):
        hint = f"set it to {_SPARK} or {_PYTHON}"
        raise InvalidRequest(f"Setting {SETTING!r} is {chosen!r}.", subject=SETTING, hint=hint)
    return chosen


def _group_by_fields(files: Sequence[NamedFile]) -> list[list[NamedFile]]:
    """Group files that have the columns under the same names."""
    groups: dict[tuple[str | None, ...], list[NamedFile]] = {}
    for file in files:
        groups.setdefault(_stored_names(file), []).append(file)
    return list(groups.values())


def _stored_names(file: NamedFile) -> tuple[str | None, ...]:
    return tuple(None if field is None else field.name for field in file.fields)


def _load_files(
    spark: SparkSession, files: Sequence[NamedFile], schema: StructType, mark: Mapping[str, str]
) -> DataFrame:
    names = _stored_names(files[0])
    stored = [StructField(name, f.dataType) for name, f in zip(names, schema, strict=True) if name is not None]
    with _use_settings(spark, _SERIAL_LISTING if len(files) > _MOST_LISTED else {}):
        reader = spark.read.schema(StructType(stored)).options(**_OPTIONS, **mark)
        frame = reader.parquet(*(f"file://{file.path}" for file in files))
    if names != tuple(schema.names):
        columns = zip(names, schema, strict=True)
        return frame.select(*(_to_column(name, field).alias(field.name) for name, field in columns))
    changed = {field.name: _to_column(field.name, field) for field in schema if _is_floating(field)}
    if len(changed) == 1:  # each call to the JVM takes time, and a dict takes ten
        return frame.withColumn(*changed.popitem())
    return frame.withColumns(changed) if changed else frame


def _is_floating(field: StructField) -> bool:
    return isinstance(field.dataType, FloatType | DoubleType)


def _to_column(stored_name: str | None, field: StructField) -> Column:
    if stored_name is None:
        return F.lit(None).cast(field.dataType)
    column = quote_column(stored_name)
    if not _is_floating(field):
        return F.col(column)
    # Statistics leave out NaN. This expression changes no value, and Spark compares no statistics with it.
    return F.expr(f"nanvl({column}, CAST('NaN' AS {field.dataType.simpleString()}))")


@contextmanager
def _use_settings(spark: SparkSession, wanted: Mapping[str, str]) -> Iterator[None]:
    with _LOCK:
        earlier = {key: spark.conf.get(key, None) for key in wanted}
        try:
            for key, value in wanted.items():
                spark.conf.set(key, value)
            yield
        finally:
            for key, before in earlier.items():
                if before is None:
                    spark.conf.unset(key)
                else:
                    spark.conf.set(key, before)
