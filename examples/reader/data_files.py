"""Data files as Arrow tables: their formats, and the conversion of columns of older schemas."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Context, Decimal
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import orc
from reader.metadata import BYTES, TEXTS, Json, Refused, parse_type

ARROW = {
    "BOOLEAN": pa.bool_(), "TINYINT": pa.int8(), "SMALLINT": pa.int16(), "INT": pa.int32(), "BIGINT": pa.int64(),
    "FLOAT": pa.float32(), "DOUBLE": pa.float64(), "DATE": pa.date32(), "TIME": pa.time32("ms"),
    **dict.fromkeys(TEXTS, pa.string()), **dict.fromkeys(BYTES, pa.binary()),
}  # fmt: skip
INTEGERS, NESTED = ("TINYINT", "SMALLINT", "INT", "BIGINT"), ("ROW", "ARRAY", "MAP", "MULTISET")
NUMBERS = (*INTEGERS, "BOOLEAN", "FLOAT", "DOUBLE", "DECIMAL")
BATCH = 1024
CODECS = ("gz", "bz2", "deflate", "snappy", "lz4", "zst")


def arrow_type(kind: Json) -> pa.DataType:
    """Return the Arrow type of a type."""
    name, *sizes = parse_type(kind)
    if name == "DECIMAL":
        return pa.decimal128(*sizes)
    if name.startswith("TIMESTAMP"):
        return pa.timestamp(("s", "ms", "us", "ns")[(sizes[0] + 2) // 3], "UTC" if name.endswith("LTZ") else None)
    if name == "ROW":
        return pa.struct([(field["name"], arrow_type(field["type"])) for field in kind["fields"]])
    if name == "ARRAY":
        return pa.list_(arrow_type(kind["element"]))
    if name in NESTED:
        return pa.map_(*map(arrow_type, entry_types(kind)))
    if name not in ARROW:
        raise Refused(f"type {name}")
    return ARROW[name]


def entry_types(kind: Json) -> tuple[Json, Json]:
    """Return the types of the keys and values of a MAP or MULTISET."""
    return (kind["key"], kind["value"]) if "key" in kind else (kind["element"], "INT")


def read_file(path: Path, fields: list[Json], wanted: list[Json]) -> pa.Table:
    """Read columns of a data file; `fields` are those of the schema that it was written with."""
    parts = path.name.split(".")
    file_format = parts[-2] if parts[-1] in CODECS else parts[-1]
    known = {field["id"]: field for field in fields}
    if file_format == "parquet":
        table = pq.ParquetFile(path).read()
    elif file_format == "orc":
        try:
            table = orc.ORCFile(path).read()
        except pa.ArrowInvalid as error:  # times that have no number of nanoseconds in 64 bits
            raise Refused(f"{path.name}: {error}") from error
    elif file_format == "avro":
        table = read_avro(path, [known[field["id"]] for field in wanted if field["id"] in known])
    else:
        raise Refused(f"file format {file_format}")
    columns = {}
    for field in wanted:
        held = known.get(field["id"])
        if held is None or held["name"] not in table.column_names:
            columns[field["name"]] = pa.nulls(table.num_rows, arrow_type(field["type"]))
        else:
            column = pa.concat_arrays(table[held["name"]].chunks or [pa.nulls(0, table[held["name"]].type)])
            column = repeat_zeros(column) if file_format == "orc" and pa.types.is_floating(column.type) else column
            columns[field["name"]] = convert(column, held["type"], field["type"], file_format == "orc")
    return pa.table(columns)


def repeat_zeros(column: pa.Array) -> pa.Array:
    """Return the column with the signs of zeros that Java reads from ORC files of one stripe."""
    values = column.to_numpy(zero_copy_only=False).copy()
    for at in range(0, len(values), BATCH):
        if not values[at : at + BATCH].any() and column.slice(at, BATCH).null_count == 0:
            values[at : at + BATCH] = values[at]
    return pa.array(values, column.type, mask=np.asarray(column.is_null()))


def read_avro(path: Path, fields: list[Json]) -> pa.Table:
    """Read columns of an Avro file."""
    with path.open("rb") as file:
        rows: list[Any] = list(fastavro.reader(file))
    columns = {field["name"]: [to_plain(row[field["name"]], field["type"]) for row in rows] for field in fields}
    return pa.table({field["name"]: pa.array(columns[field["name"]], arrow_type(field["type"])) for field in fields})


def to_plain(value: Any, kind: Json) -> Any:
    """Return a value of Avro as pyarrow takes it, with the entries of maps as pairs."""
    name = parse_type(kind)[0]
    if value is None or name not in NESTED:
        return value
    if name == "ROW":
        return {field["name"]: to_plain(value[field["name"]], field["type"]) for field in kind["fields"]}
    if name == "ARRAY":
        return [to_plain(item, kind["element"]) for item in value]
    pairs = value.items() if isinstance(value, dict) else [(entry["key"], entry["value"]) for entry in value]
    return [tuple(map(to_plain, pair, entry_types(kind))) for pair in pairs]


def convert(array: pa.Array, source: Json, target: Json, is_orc: bool) -> pa.Array:
    """Convert a column as a file has it from the type of its schema to the wanted one."""
    name, wanted, mask = parse_type(source)[0], parse_type(target)[0], array.is_null()
    if name in NESTED and name != wanted:
        raise Refused(f"cast of {name} to {wanted}")
    if name == "ROW":
        stored, children = {field["id"]: field for field in source["fields"]}, []
        for field in target["fields"]:
            held = stored.get(field["id"])
            place = -1 if held is None else array.type.get_field_index(held["name"])
            missing = pa.nulls(len(array), arrow_type(field["type"]))
            children.append(missing if place < 0 else convert(array.field(place), held["type"], field["type"], is_orc))
        return pa.StructArray.from_arrays(children, fields=list(arrow_type(target)), mask=mask)
    if name == "ARRAY":
        values = convert(array.values, source["element"], target["element"], is_orc)
        return pa.ListArray.from_arrays(array.offsets, values, mask=mask).cast(arrow_type(target))
    if name in NESTED:
        types = zip((array.keys, array.items), entry_types(source), entry_types(target), strict=True)
        entries = [convert(part, old, new, is_orc) for part, old, new in types]
        return pa.MapArray.from_arrays(array.offsets, *entries, mask=mask).cast(arrow_type(target))
    if is_orc and name in ("CHAR", "TIME"):
        array = pc.utf8_rtrim(array.cast(pa.string()), " ") if name == "CHAR" else array.cast(pa.int32())
    array = array.cast(arrow_type(source), safe=False)
    return array if parse_type(source) == parse_type(target) else cast(array, source, target)


def cast(array: pa.Array, source: Json, target: Json) -> pa.Array:
    """Cast values of atomic types to the new type of a column; the casts that lose more than digits are refused."""
    (name, *old), (wanted, *sizes), kind = parse_type(source), parse_type(target), arrow_type(target)
    if wanted in TEXTS:
        texts = to_text(array, name, *old)
        texts = pc.utf8_slice_codeunits(texts, 0, sizes[0]) if sizes else texts
        return pc.utf8_rpad(texts, sizes[0], " ") if wanted == "CHAR" else texts
    if wanted == "DECIMAL" and name in (*INTEGERS, "DECIMAL"):
        return pa.array([None if value is None else fit(Decimal(value), *sizes) for value in array.to_pylist()], kind)
    if name in NUMBERS and wanted in ("FLOAT", "DOUBLE"):
        return (array.cast(pa.string()) if name == "DECIMAL" else array).cast(kind, safe=False)
    if name in (*INTEGERS, "BOOLEAN") and wanted in INTEGERS:
        return array.cast(kind, safe=False)
    if wanted.startswith("TIMESTAMP") and (name == "DATE" or (name.startswith("TIMESTAMP") and old <= sizes)):
        return array.cast(pa.timestamp(kind.unit)).cast(kind)
    raise Refused(f"cast of {name} to {wanted}")


def fit(value: Decimal, digits: int, scale: int) -> Decimal | None:
    """Return a number rounded to a scale; None if it has too many digits."""
    rounded = value.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, Context(prec=80))
    return rounded if abs(rounded) < 10 ** (digits - scale) else None


def to_text(array: pa.Array, name: str, *sizes: int) -> pa.Array:
    """Return values as Java prints them."""
    if name in (*TEXTS, *INTEGERS, "BOOLEAN", "DATE"):
        return array.cast(pa.string())
    if name == "DECIMAL":
        return pa.array([None if value is None else format(value, "f") for value in array.to_pylist()], pa.string())
    if name.startswith("TIMESTAMP"):
        texts = array.cast(pa.timestamp(array.type.unit)).cast(pa.string())
        return pc.utf8_slice_codeunits(texts, 0, 20 + sizes[0]) if sizes[0] else texts
    raise Refused(f"cast of {name} to a text")
