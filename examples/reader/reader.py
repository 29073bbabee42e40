"""Read an Apache Paimon table with pyarrow, fastavro and numpy, as the reader specification describes it.

It reads append tables, and primary-key tables with the merge engine `deduplicate`. What it does not know, it refuses.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import defaultdict
from decimal import Context, Decimal
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import fastavro.read
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import orc, parquet

INTEGERS = {"TINYINT": pa.int8(), "SMALLINT": pa.int16(), "INT": pa.int32(), "BIGINT": pa.int64()}
FLOATS = {"FLOAT": pa.float32(), "DOUBLE": pa.float64()}
TEXTS = dict.fromkeys(("CHAR", "VARCHAR", "STRING"), pa.string())
BINARIES = dict.fromkeys(("BINARY", "VARBINARY", "BYTES"), pa.binary())
OTHERS = {"BOOLEAN": pa.bool_(), "DATE": pa.date32(), "TIME": pa.time32("ms")}
SIMPLE_TYPES = {**INTEGERS, **FLOATS, **TEXTS, **BINARIES, **OTHERS}
TIMESTAMPS = ("TIMESTAMP", "TIMESTAMP WITH LOCAL TIME ZONE")
EXACT_NUMBERS = ("BOOLEAN", "DECIMAL", *INTEGERS)
CASTS = {  # from the types on the right, which a column had in an older schema, to those on the left
    (*TEXTS,): (*TEXTS, *EXACT_NUMBERS, "DATE", "TIME", *TIMESTAMPS),
    ("DECIMAL", *INTEGERS): EXACT_NUMBERS,
    (*FLOATS,): (*FLOATS, *EXACT_NUMBERS),
    ("BOOLEAN",): (*INTEGERS,),
    TIMESTAMPS: ("DATE", *TIMESTAMPS),
}
OPTIONS = {  # options that change rows, with the values that are known here
    "type": ("table", "materialized-table"),
    "merge-engine": ("deduplicate",),
    **dict.fromkeys(("chain-table.enabled", "data-evolution.enabled", "postpone.merge-on-read"), ("false",)),
    **dict.fromkeys(("sequence.snapshot-ordering", "scan.fallback-branch", "scan.primary-branch"), ("false",)),
}
SYSTEM_COLUMNS = {"_SEQUENCE_NUMBER": "BIGINT", "_VALUE_KIND": "TINYINT"}
IGNORE_DELETE = {f"{alias}ignore-delete" for alias in ("", "deduplicate.", "partial-update.", "first-row.")}
IDENTITY = ("_LEVEL", "_FILE_NAME", "_EXTRA_FILES", "_EMBEDDED_FILE_INDEX", "_EXTERNAL_PATH")
AVRO_BLOCKS = fastavro.read.BLOCK_READERS  # pyarrow has zstandard, for which fastavro needs a further package
AVRO_BLOCKS["zstandard"] = lambda file: BytesIO(pa.input_stream(AVRO_BLOCKS["null"](file), compression="zstd").read())
Entry = dict[str, Any]  # a row of a manifest


class Refused(Exception):
    """The table has what this reader does not know."""


class Column(NamedTuple):
    """A column, or a part of a nested type: a field, an element, a key or a value."""

    id: Any
    name: str
    type: str
    length: int  # or the precision
    arrow: pa.DataType
    parts: list[Column]


def parse_column(name: str, type: Any, id: Any = None, **others: Any) -> Column:
    """Return a column of a schema from its JSON."""
    nested = type if isinstance(type, dict) else {"type": type}
    pattern = r"(\w+)(?:\((\d+)(?:, ?(\d+))?\))?( WITH LOCAL TIME ZONE)?"
    type, length, scale, zone = re.match(pattern, nested["type"]).groups()
    digits = int(length or (6 if type == "TIMESTAMP" else 0))
    parts = [parse_column(**field) for field in nested.get("fields", ())]
    parts += [parse_column(part, nested[part]) for part in ("element", "key", "value") if part in nested]
    if type in SIMPLE_TYPES:
        arrow = SIMPLE_TYPES[type]
    elif type == "DECIMAL":
        arrow = pa.decimal128(digits, int(scale or 0))
    elif type == "TIMESTAMP":
        arrow = pa.timestamp(("s", "ms", "us", "ns")[(digits + 2) // 3], "UTC" if zone else None)
    elif type == "ROW":
        arrow = pa.struct([(part.name, part.arrow) for part in parts])
    elif type == "ARRAY":
        arrow = pa.list_(parts[0].arrow)
    elif type in ("MAP", "MULTISET"):
        parts += [parse_column("count", "INT")] if type == "MULTISET" else []
        arrow = pa.map_(*(part.arrow for part in parts))
    else:
        raise Refused(f"type {type}")
    return Column(id, name, type + (zone or ""), digits, arrow, parts)


def to_text(array: pa.Array, column: Column) -> pa.Array:
    """Return values as texts."""
    if column.type == "DECIMAL":
        return pa.array([None if value is None else f"{value:f}" for value in array.to_pylist()], pa.string())
    if column.type in TIMESTAMPS:
        text = array.cast(pa.timestamp(array.type.unit)).cast(pa.string())
        return pc.utf8_slice_codeunits(text, 0, 19 + bool(column.length) + column.length)
    if column.type in FLOATS or column.type in BINARIES:
        raise Refused(f"texts of {column.type}")
    text = array.cast(pa.string())
    return pc.replace_substring_regex(text, "0{1,2}$", "") if column.type == "TIME" else text


def cast(array: pa.Array, old: Column, new: Column) -> pa.Array:
    """Return values of an older schema in the type of a column."""
    sources = next((sources for targets, sources in CASTS.items() if new.type in targets), ())
    if old.type not in sources or (new.type in TIMESTAMPS and new.length < old.length):
        raise Refused(f"cast of {old.type} to {new.type}")
    if new.type in TEXTS:
        text = to_text(array, old)
        text = pc.utf8_slice_codeunits(text, 0, new.length) if new.length else text
        return pc.utf8_rpad(text, new.length) if new.type == "CHAR" else text
    if new.type == "DECIMAL":  # round half away from zero; what does not fit becomes null
        p, s = new.arrow.precision, new.arrow.scale
        array = array if old.type == "DECIMAL" else array.cast(pa.int64()).cast(pa.decimal128(19))
        array = pc.round(array.cast(pa.decimal256(76, max(array.type.scale, s))), s, "half_towards_infinity")
        array = pc.if_else(pc.less(pc.abs(array), Decimal(10) ** (p - s)), array, None)
    return array.cast(new.arrow, safe=new.type in TIMESTAMPS)  # not safe: fractions and high bits are cut off


def convert(array: pa.Array, old: Column, new: Column, in_orc: bool) -> pa.Array:
    """Return a stored array as another column. Fields of ROWs are matched by id."""
    mask = array.is_null() if array.null_count else None
    if old.type == new.type == "ROW":
        stored = {part.id: (array.field(part.name), part) for part in old.parts}
        inner = [
            convert(*stored[part.id], part, in_orc) if part.id in stored else pa.nulls(len(array), part.arrow)
            for part in new.parts
        ]
        return pa.StructArray.from_arrays(inner, fields=list(new.arrow), mask=mask)
    if old.type == new.type and old.parts:
        arrays = [array.values] if old.type == "ARRAY" else [array.keys, array.items]
        inner = [convert(*parts, in_orc) for parts in zip(arrays, old.parts, new.parts, strict=True)]
        return (pa.ListArray if old.type == "ARRAY" else pa.MapArray).from_arrays(array.offsets, *inner, mask=mask)
    array = array.cast(old.arrow, safe=False)
    array = pc.utf8_rtrim(array, " ") if in_orc and old.type == "CHAR" else array
    return array if old[2:] == new[2:] else cast(array, old, new)


def read_binary_row(row: bytes, columns: list[Column]) -> list[pa.Array]:
    """Return the values of a partition, each as an array with one value."""
    row, arrays, head = row[4:], [], (len(columns) + 71) // 64 * 8
    for i, column in enumerate(columns):
        slot = row[head + 8 * i : head + 8 * i + 8]
        number = int.from_bytes(slot, "little", signed=True)
        further, length = row[number >> 32 :], number & 0xFFFFFFFF
        if row[(i + 8) // 8] >> (i + 8) % 8 & 1:
            array = pa.nulls(1)
        elif column.type in TEXTS or column.type in BINARIES:
            array = pa.array([slot[: slot[7] & 0x7F] if slot[7] & 0x80 else further[:length]])
        elif column.type == "DECIMAL":
            number = int.from_bytes(further[:length], "big", signed=True) if column.length > 18 else number
            array = pa.array([Decimal(number).scaleb(-column.arrow.scale, Context(prec=38))])
        elif column.type in TIMESTAMPS and column.length > 3:
            nanos = int.from_bytes(further[:8], "little", signed=True) * 10**6 + length
            array = pa.array([nanos // (1000 if column.length < 7 else 1)])
        else:  # Arrow stores such a value as a slot does
            stored = pa.timestamp("ms") if column.type in TIMESTAMPS else column.arrow
            array = pa.Array.from_buffers(stored, 1, [None, pa.py_buffer(slot)])
        arrays.append(array.cast(column.arrow))
    return arrays


def name_directory(array: pa.Array, column: Column, options: dict[str, str]) -> str:
    """Return the directory of a partition column."""
    if options.get("partition.legacy-name", "true") == "true":
        if column.type in ("DATE", "TIME"):
            array = array.cast(pa.int32()).cast(pa.string())
        elif column.type in TIMESTAMPS:
            array = pc.replace_substring(to_text(array, column._replace(length=9)), " ", "T")
            array = pc.replace_substring_regex(pc.replace_substring_regex(array, r"\.?(000)*$", ""), ":00$", "")
    text = (array if array.type == pa.string() else to_text(array, column))[0].as_py()
    text = text if text and text.strip() else options.get("partition.default-name", "__DEFAULT_PARTITION__")
    special = r"[\x00-\x1f\x7f\"#%'*/:=?\\{}\[\]^`]"
    return "=".join(re.sub(special, lambda found: f"%{ord(found[0]):02X}", part) for part in (column.name, text))


def read_vector(stream: BytesIO) -> np.ndarray:
    """Return the positions of a deletion vector."""

    def take(kind: str, count: int = 1) -> np.ndarray:
        return np.frombuffer(stream.read(np.dtype(kind).itemsize * count), kind).astype(np.int64)

    magic, found = take(">u4", 2)[1], [np.zeros(0, np.int64)]
    if magic not in (0x5E43F2D0, 0xD1D33964):
        raise Refused(f"deletion vector {magic:x}")
    is_wide = magic == 0xD1D33964
    for _ in range(take("<u8")[0] if is_wide else 1):
        top = take("<u4")[0] << 32 if is_wide else 0
        cookie = take("<u4")[0]
        has_runs = cookie & 0xFFFF == 12347
        if not has_runs and cookie != 12346:
            raise Refused(f"bitmap {cookie}")
        count = (cookie >> 16) + 1 if has_runs else take("<u4")[0]
        flags = take("u1", (count + 7) // 8) if has_runs else np.zeros(count)
        heads = take("<u2", 2 * count).reshape(-1, 2)
        if not has_runs or count >= 4:
            take("<u4", count)  # offsets of the containers
        for i, (high, last) in enumerate(heads):
            if has_runs and flags[i // 8] >> i % 8 & 1:
                runs = take("<u2", 2 * take("<u2")[0]).reshape(-1, 2)
                low = np.concatenate([np.arange(start, start + length + 1) for start, length in runs])
            elif last < 4096:
                low = take("<u2", last + 1)
            else:
                low = np.flatnonzero(np.unpackbits(np.frombuffer(stream.read(8192), "u1"), bitorder="little"))
            found.append(low + (high << 16) + top)
    return np.concatenate(found)


def read_orc(path: Path) -> pa.Table:
    """Read an ORC file. 1,024 zeros of a stripe have the sign of the first one, as Java reads them."""
    file = orc.ORCFile(path)
    table = pa.Table.from_batches([file.read_stripe(i) for i in range(file.nstripes)], file.schema)
    for i, column in enumerate(table.columns):
        if pa.types.is_floating(column.type):
            parts = [chunk[at : at + 1024] for chunk in column.chunks for at in range(0, len(chunk), 1024)]
            parts = [part if part.null_count or np.any(part) else pa.repeat(part[0], len(part)) for part in parts]
            table = table.set_column(i, table.field(i), pa.chunked_array(parts, column.type))
    return table


def read_file(path: Path, file_format: str, row: Column | None = None) -> Any:
    """Return the rows of a data file as an array of a ROW type, those of a manifest as dictionaries."""
    if file_format == "avro":
        rows = list(fastavro.reader(BytesIO(path.read_bytes())))
        return pa.array(rows, row.arrow) if row else rows
    if file_format not in ("parquet", "orc"):
        raise Refused(f"file format {file_format}")
    table = read_orc(path) if file_format == "orc" else parquet.ParquetFile(path).read()
    return table.select(row.arrow.names).to_struct_array().combine_chunks() if row else table.to_pylist()


class Table:
    """A table, or a branch of it, at the newest snapshot, at one by id, or at that of a tag."""

    def __init__(self, root: str | Path, snapshot: int = 0, tag: str = "", branch: str = ""):
        self.root, self.base = Path(root), Path(root, f"branch/branch-{branch}" if branch else "")
        schema = self.read_json(f"schema/schema-{self.find_newest('schema')}")
        self.options: dict[str, str] = schema["options"]
        self.switches = {name for name, value in self.options.items() if value.lower() == "true"}
        for name, value in self.options.items():
            if value.lower() not in OPTIONS.get(name, (value.lower(),)) or name.endswith(".default-value"):
                raise Refused(f"option {name} = {value}")
        path = f"tag/tag-{tag}" if tag else f"snapshot/snapshot-{snapshot or self.find_newest('snapshot')}"
        self.snapshot = {} if path == "snapshot/snapshot-None" else self.read_json(path)
        if snapshot or tag:
            schema = self.read_json(f"schema/schema-{self.snapshot['schemaId']}")
        self.fields: list[dict[str, Any]] = schema["fields"]
        columns = {field["name"]: parse_column(**field) for field in self.fields}
        self.schema = pa.schema([(name, column.arrow) for name, column in columns.items()])
        self.partition = [columns[name] for name in schema["partitionKeys"]]
        self.keys = [name for name in schema["primaryKeys"] if name not in schema["partitionKeys"]]

    def find_newest(self, kind: str) -> int | None:
        """Return the highest number of a schema or snapshot."""
        return max((int(path.name.split("-")[1]) for path in (self.base / kind).glob(f"{kind}-*")), default=None)

    def read_json(self, path: str) -> dict[str, Any]:
        """Return a schema, a snapshot or a tag."""
        found: dict[str, Any] = json.loads((self.base / path).read_text("utf8"))
        if found.get("version", 1) > 3:
            raise Refused(f"version of {path}")
        return found

    def read_manifest(self, name: str, version: int = 2) -> list[Entry]:
        """Return the rows of a manifest list, a manifest or an index manifest."""
        path = self.root / "manifest" / name
        file_format = {b"Obj": "avro", b"PAR": "parquet", b"ORC": "orc"}.get(path.read_bytes()[:3], "unknown")
        rows: list[Entry] = read_file(path, file_format)
        if any(row["_VERSION"] != version for row in rows):
            raise Refused(f"version of {path}")
        return rows

    def list_entries(self) -> list[Entry]:
        """Return the manifest entries of the live files, hidden files included."""
        added, removed = kinds = {}, {}
        lists = [self.snapshot[name] for name in ("baseManifestList", "deltaManifestList") if self.snapshot]
        manifests = [row["_FILE_NAME"] for name in lists for row in self.read_manifest(name)]
        for entry in [row for name in manifests for row in self.read_manifest(name)]:
            file = (str(entry["_FILE"].get(name)) for name in IDENTITY)
            kinds[entry["_KIND"]][(entry["_PARTITION"], entry["_BUCKET"], *file)] = entry
        if removed.keys() - added.keys():
            raise ValueError("files are removed that were not added")
        return [entry for identity, entry in added.items() if identity not in removed]

    def locate(self, entry: Entry, file: Entry, folder: str | None = None) -> Path:
        """Return the path of a data file, or of an index file in a folder."""
        if file.get("_EXTERNAL_PATH"):
            return Path(re.sub("^file:/+", "/", file["_EXTERNAL_PATH"]))
        if folder:
            return self.root / folder / file["_FILE_NAME"]
        values = zip(read_binary_row(entry["_PARTITION"], self.partition), self.partition, strict=True)
        parts = [name_directory(array, column, self.options) for array, column in values]
        base = self.root / self.options.get("data-file.path-directory", "")
        return base.joinpath(*parts, f"bucket-{entry['_BUCKET']}", file["_FILE_NAME"])

    def read_vectors(self) -> dict[Any, np.ndarray]:
        """Return the deletion vectors by partition, bucket and file."""
        vectors, name = {}, self.snapshot.get("indexManifest")
        for entry in self.read_manifest(name, 1) if name else ():
            if entry["_INDEX_TYPE"] == "DELETION_VECTORS":
                folder = None if "index-file-in-data-file-dir" in self.switches else "index"
                data = self.locate(entry, entry, folder).read_bytes()
                for place in entry["_DELETIONS_VECTORS_RANGES"]:
                    vector = read_vector(BytesIO(data[place["f1"] :]))
                    vectors[entry["_PARTITION"], entry["_BUCKET"], place["f0"]] = vector
        return vectors

    def read_file(self, entry: Entry, deleted: np.ndarray) -> pa.Table:
        """Return the rows of a data file with the columns of the table, system columns and the level."""
        file, path = entry["_FILE"], self.locate(entry, entry["_FILE"])
        fields = self.read_json(f"schema/schema-{file['_SCHEMA_ID']}")["fields"]
        if file.get("_WRITE_COLS") and {field["name"] for field in fields} - set(file["_WRITE_COLS"]):
            raise Refused("files without all columns")
        system = [{"id": name, "name": name, "type": type} for name, type in SYSTEM_COLUMNS.items() if self.keys]
        old, new = (parse_column("", {"type": "ROW", "fields": [*x, *system]}) for x in (fields, self.fields))
        stored = read_file(path, path.suffix[1:], old)
        rows = pa.Table.from_struct_array(convert(stored, old, new, path.suffix == ".orc"))
        for array, column in zip(read_binary_row(entry["_PARTITION"], self.partition), self.partition, strict=True):
            rows = rows.set_column(rows.column_names.index(column.name), column.name, pa.repeat(array[0], len(rows)))
        rows = rows.append_column("_LEVEL", pa.repeat(file["_LEVEL"], len(rows)))
        return rows.take(np.setdiff1d(np.arange(len(rows)), deleted))

    def read(self) -> pa.Table:
        """Return the rows of the table."""
        vector_options = {"deletion-vectors.enabled", "deletion-vectors.merge-on-read"} & self.switches
        hides = self.keys and vector_options == {"deletion-vectors.enabled"}
        vectors, buckets = self.read_vectors(), defaultdict(list)
        for entry in self.list_entries():
            if entry["_BUCKET"] >= 0 and not (hides and entry["_FILE"]["_LEVEL"] == 0):
                bucket = (entry["_PARTITION"], entry["_BUCKET"])
                deleted = vectors.get((*bucket, entry["_FILE"]["_FILE_NAME"]), [])
                buckets[bucket].append(self.read_file(entry, deleted))
        tables = [pa.concat_tables(tables) for tables in buckets.values()]
        tables = [(self.merge(rows) if self.keys else rows).select(self.schema.names) for rows in tables]
        return pa.concat_tables([self.schema.empty_table(), *tables])

    def merge(self, rows: pa.Table) -> pa.Table:
        """Return the last row of each key of a bucket, unless it is a retract."""
        switches = {"force-lookup", "deletion-vectors.enabled"} & self.switches
        if switches or self.options.get("changelog-producer") == "lookup":
            upper = self.take_last(rows.filter(pc.field("_LEVEL") > 0), [("_LEVEL", "descending")])
            rows = pa.concat_tables([rows.filter(pc.field("_LEVEL") == 0), upper])
        rows = rows.append_column("_ADDS", pc.is_in(rows["_VALUE_KIND"], pa.array([0, 2], pa.int8())))
        if IGNORE_DELETE & self.switches:
            rows = rows.filter(pc.field("_ADDS"))
        order = []
        for name in re.findall(r"[^\s,]+", self.options.get("sequence.field", "")):
            rows = rows.append_column(f"_HAS_{name}", rows[name].is_valid())  # null is the lowest
            order += [(f"_HAS_{name}", "ascending"), (name, self.options.get("sequence.field.sort-order", "ascending"))]
        order += [("_SEQUENCE_NUMBER", "ascending"), ("_ADDS", "ascending")]
        return self.take_last(rows, order).filter(pc.field("_ADDS"))

    def take_last(self, rows: pa.Table, order: list[tuple[str, str]]) -> pa.Table:
        """Return the last row of each key."""
        rows = rows.take(pc.sort_indices(rows, sort_keys=order))
        numbered = rows.select(self.keys).append_column("_ROW", pa.array(np.arange(len(rows))))
        return rows.take(numbered.group_by(self.keys).aggregate([("_ROW", "max")])["_ROW_max"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", metavar="table", help="directory of the table")
    for name, kind in {"--snapshot": int, "--tag": str, "--branch": str}.items():
        parser.add_argument(name, type=kind, default=kind())
    print(Table(**vars(parser.parse_args())).read())
