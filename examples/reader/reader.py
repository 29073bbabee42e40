"""Read an Apache Paimon table with pyarrow, fastavro and numpy, as the reader specification describes it."""

from __future__ import annotations

import argparse
import json
import re
from collections import defaultdict
from decimal import ROUND_HALF_UP, Context, Decimal
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import fastavro.read
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import orc, parquet

TEXTS, BINARIES = ("CHAR", "VARCHAR", "STRING"), ("BINARY", "VARBINARY", "BYTES")
BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
ARROW = {"BOOLEAN": pa.bool_(), "FLOAT": pa.float32(), "DOUBLE": pa.float64(), "DATE": pa.date32(),
         "TIME": pa.time32("ms"), "TINYINT": pa.int8(), "SMALLINT": pa.int16(), "INT": pa.int32(), "BIGINT": pa.int64(),
         **dict.fromkeys(TEXTS, pa.string()), **dict.fromkeys(BINARIES, pa.binary())}  # fmt: skip
NANOS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
DAY, SECOND = 86_400 * 10**9, 10**9
AVRO_BLOCKS = fastavro.read.BLOCK_READERS  # pyarrow has zstandard, for which fastavro needs a further package
AVRO_BLOCKS["zstandard"] = lambda file: BytesIO(pa.input_stream(AVRO_BLOCKS["null"](file), compression="zstd").read())


class Refused(Exception):
    """The table has what this reader does not know."""


class Field(NamedTuple):
    """A column, or a field of a ROW."""

    id: int
    name: str
    type: Type


class Type(NamedTuple):
    """A type: `p` is the precision or length; the children are fields of a ROW, the element, or key and value."""

    name: str
    p: int = 0
    s: int = 0
    children: tuple[Field, ...] = ()

    @property
    def arrow(self) -> pa.DataType:
        """The type of Arrow."""
        inner = [child.type.arrow for child in self.children]
        if self.name == "ROW":
            return pa.struct([(child.name, child.type.arrow) for child in self.children])
        if inner:
            return pa.list_(*inner) if self.name == "ARRAY" else pa.map_(*inner)
        if self.name.startswith("TIMESTAMP"):
            return pa.timestamp(("s", "ms", "us", "ns")[(self.p + 2) // 3], "UTC" if "ZONE" in self.name else None)
        return pa.decimal128(self.p, self.s) if self.name == "DECIMAL" else ARROW[self.name]


def parse_type(text: Any) -> Type:
    """Return a type of a schema."""
    if isinstance(text, dict):
        name = text["type"].split()[0]
        if name == "ROW":
            return Type(name, children=parse_fields(text["fields"]))
        if name not in ("ARRAY", "MAP", "MULTISET"):
            raise Refused(f"type {name}")
        inner = (
            [text["element"]] if name == "ARRAY" else [text.get("key", text.get("element")), text.get("value", "INT")]
        )
        children = tuple(Field(i, "", parse_type(child)) for i, child in enumerate(inner))
        return Type("ARRAY" if name == "ARRAY" else "MAP", children=children)
    name, p, s, zone = re.match(r"(\w+)(?:\((\d+)(?:, ?(\d+))?\))?( WITH LOCAL TIME ZONE)?", text).groups()
    if name not in ARROW and name not in ("DECIMAL", "TIMESTAMP"):
        raise Refused(f"type {name}")
    return Type(name + (zone or ""), int(p or 6 * (name == "TIMESTAMP")), int(s or 0))


def parse_fields(fields: list[dict[str, Any]]) -> tuple[Field, ...]:
    """Return the fields of a schema or a ROW."""
    return tuple(Field(field["id"], field["name"], parse_type(field["type"])) for field in fields)


def to_values(array: pa.Array) -> list[Any]:
    """Return Python values; days, milliseconds and nanoseconds for dates, times and timestamps."""
    if pa.types.is_timestamp(array.type):
        return [n if n is None else n * NANOS[array.type.unit] for n in array.cast(pa.int64()).to_pylist()]
    return (array.cast(pa.int32()) if array.type in (pa.date32(), pa.time32("ms")) else array).to_pylist()


def to_array(values: list[Any], to: Type) -> pa.Array:
    """Do the reverse of `to_values`."""
    if to.name.startswith("TIMESTAMP"):
        values = [n if n is None else n // NANOS[to.arrow.unit] for n in values]
    plain = {"FLOAT": pa.float64(), "DATE": pa.int32(), "TIME": pa.int32()}.get(to.name, to.arrow)
    return pa.array(values, pa.int64() if to.name.startswith("TIMESTAMP") else plain).cast(to.arrow)


def format_float(value: float, of: Type) -> str:
    """Return the text of a floating-point value as Java prints it."""
    sign, digits, exponent = (
        Decimal(str(np.float32(value)) if of.name == "FLOAT" else repr(value)).normalize().as_tuple()
    )
    if not isinstance(exponent, int):
        return "NaN" if exponent == "n" else "-Infinity" if sign else "Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return f"{Decimal((sign, digits, exponent)):f}" + ".0" * (exponent >= 0)
    rest = "".join(map(str, digits[1:])) or "0"
    return f"{'-' * sign}{digits[0]}.{rest}E{len(digits) - 1 + exponent}"


def format_value(value: Any, of: Type) -> str:
    """Return the text of a value."""
    if of.name in ("DATE", "TIME") or of.name.startswith("TIMESTAMP"):
        nanos = value * {"DATE": DAY, "TIME": 10**6}.get(of.name, 1)
        text = f"{np.datetime64(nanos // SECOND, 's')}.{nanos % SECOND:09}".replace("T", " ")
        if of.name == "TIME":
            return text[11:21] + text[21:23].rstrip("0")
        return text[:-19] if of.name == "DATE" else text[: len(text) - 9 + of.p].removesuffix(".")
    if of.name in ("FLOAT", "DOUBLE"):
        return format_float(value, of)
    return format(value, "f") if of.name == "DECIMAL" else str(value).lower() if of.name == "BOOLEAN" else str(value)


def cast_value(value: Any, of: Type, to: Type) -> Any:
    """Return a value as another type."""
    if to.name in TEXTS and not of.children and of.name not in BINARIES:
        text = value if of.name in TEXTS else format_value(value, of)
        return text[: to.p or None].ljust(to.p if to.name == "CHAR" else 0)
    if to.name.startswith("TIMESTAMP") and of.name in ("DATE", "TIME"):
        return value * (DAY if of.name == "DATE" else 10**6)
    if of.name.startswith("TIMESTAMP") and to.name.startswith("TIMESTAMP"):
        unit = 10 ** (9 - max(3, to.p))
        value, unit = value // unit * unit, 10 ** (9 - to.p)
        return (value // unit if value > 0 else -(-value // unit)) * unit
    numbers = ("BOOLEAN", "FLOAT", "DOUBLE", "DECIMAL", *BITS)
    if of.name not in numbers or to.name not in numbers:
        raise Refused(f"cast of {of.name} to {to.name}")
    if to.name in BITS:
        limit, half = 1 << (63 if to.name == "BIGINT" else 31), 1 << BITS[to.name] - 1
        if of.name in ("FLOAT", "DOUBLE"):
            value = 0 if value != value else max(-limit, min(limit - 1, value))
        return (int(value) + half) % (2 * half) - half
    if to.name == "DECIMAL":
        exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
        if not exact.is_finite():
            return None
        rounded = exact.quantize(Decimal(1).scaleb(-to.s), ROUND_HALF_UP, Context(prec=400))
        return rounded if abs(rounded) < 10 ** (to.p - to.s) else None
    return bool(value) if to.name == "BOOLEAN" else float(value)


def convert(array: pa.Array, of: Type, to: Type, is_orc: bool) -> pa.Array:
    """Return a stored array as another type; fields of ROWs are matched by id."""
    mask = array.is_null() if array.null_count else None
    if of.name == to.name == "ROW":
        old = {child.id: child for child in of.children}
        inner = [
            pa.nulls(len(array), new.type.arrow)
            if new.id not in old
            else convert(array.field(old[new.id].name), old[new.id].type, new.type, is_orc)
            for new in to.children
        ]
        return pa.StructArray.from_arrays(inner, fields=list(to.arrow), mask=mask)
    if of.children and of.name == to.name:
        inner = [array.values] if of.name == "ARRAY" else [array.keys, array.items]
        inner = [convert(a, x.type, y.type, is_orc) for a, x, y in zip(inner, of.children, to.children, strict=True)]
        return (pa.ListArray if of.name == "ARRAY" else pa.MapArray).from_arrays(array.offsets, *inner, mask=mask)
    if is_orc and of.name == "CHAR":
        array = pc.utf8_rtrim(array, " ")
    array = array if of.children else array.cast(of.arrow, safe=False)
    return array if of == to else to_array([v if v is None else cast_value(v, of, to) for v in to_values(array)], to)


def read_binary_row(data: bytes, types: list[Type]) -> list[Any]:
    """Return the values of a row of a manifest."""
    row, values, head = data[4:], [], (len(types) + 71) // 64 * 8
    for i, of in enumerate(types):
        slot = row[head + 8 * i : head + 8 * i + 8]
        number = int.from_bytes(slot, "little", signed=True)
        rest = row[number >> 32 :]
        if row[(i + 8) // 8] >> (i + 8) % 8 & 1:
            values.append(None)
        elif of.name in TEXTS + BINARIES:
            content = slot[: slot[7] & 0x7F] if slot[7] & 0x80 else rest[: number & 0xFFFFFFFF]
            values.append(content.decode() if of.name in TEXTS else content)
        elif of.name == "DECIMAL":
            wide = int.from_bytes(rest[: number & 0xFFFFFFFF], "big", signed=True) if of.p > 18 else number
            values.append(Decimal(wide).scaleb(-of.s, Context(prec=38)))
        elif of.name.startswith("TIMESTAMP") and of.p > 3:
            values.append(int.from_bytes(rest[:8], "little", signed=True) * 10**6 + (number & 0xFFFFFFFF))
        elif of.name in ("FLOAT", "DOUBLE"):
            values.append(float(np.frombuffer(slot, "<f4" if of.name == "FLOAT" else "<f8")[0]))
        else:
            value = int.from_bytes(
                slot[: BITS.get(of.name, 8 if of.name == "BOOLEAN" else 32) // 8], "little", signed=True
            )
            value = number * 10**6 if of.name.startswith("TIMESTAMP") else value
            values.append(value == 1 if of.name == "BOOLEAN" else value)
    return values


def name_directory(field: Field, value: Any, options: dict[str, str]) -> str:
    """Return the directory of a partition column."""
    text = "" if value is None else format_value(value, field.type)
    if value is not None and options.get("partition.legacy-name", "true") == "true":
        if field.type.name in ("DATE", "TIME"):
            text = str(value)
        elif field.type.name.startswith("TIMESTAMP"):
            text = format_value(value, field.type._replace(p=9)).replace(" ", "T")
            text = re.sub(r"(000){1,2}$", "", text).removesuffix(".000").removesuffix(":00")
    text = text if text.strip() else options.get("partition.default-name", "__DEFAULT_PARTITION__")
    special = r"[\x00-\x1f\x7f\"#%'*/:=?\\{}\[\]^]"
    return "=".join(re.sub(special, lambda found: f"%{ord(found[0]):02X}", part) for part in (field.name, text))


def read_bitmap(data: bytes, at: int) -> tuple[np.ndarray, int]:
    """Return the numbers of a roaring bitmap, and where it ends."""

    def take(kind: str, count: int) -> np.ndarray:
        nonlocal at
        values = np.frombuffer(data, kind, count, at)
        at += values.nbytes
        return values if kind == "u1" else values.astype(np.int64)

    cookie = int(take("<u4", 1)[0])
    if cookie & 0xFFFF not in (12346, 12347):
        raise Refused(f"bitmap {cookie}")
    has_runs = cookie & 0xFFFF == 12347
    count = (cookie >> 16) + 1 if has_runs else int(take("<u4", 1)[0])
    is_run = np.unpackbits(take("u1", (count + 7) // 8), bitorder="little")[:count] if has_runs else np.zeros(count)
    heads = take("<u2", 2 * count).reshape(-1, 2)
    if not has_runs or count >= 4:
        at += 4 * count  # offsets of the containers
    found = [np.zeros(0, np.int64)]
    for (high, last), run in zip(heads, is_run, strict=True):
        if run:
            pairs = take("<u2", 2 * int(take("<u2", 1)[0])).reshape(-1, 2)
            low = np.concatenate([np.arange(start, start + length + 1) for start, length in pairs])
        elif last < 4096:
            low = take("<u2", int(last) + 1)
        else:
            low = np.flatnonzero(np.unpackbits(take("u1", 8192), bitorder="little"))
        found.append(low + (high << 16))
    return np.concatenate(found), at


def read_vector(data: bytes, at: int) -> np.ndarray:
    """Return the positions of the deletion vector at an offset of an index file."""
    magic, at = data[at + 4 : at + 8].hex(), at + 8
    if magic == "5e43f2d0":
        return read_bitmap(data, at)[0]
    if magic != "d1d33964":
        raise Refused(f"deletion vector {magic}")
    found, count, at = [np.zeros(0, np.int64)], int.from_bytes(data[at : at + 8], "little"), at + 8
    for _ in range(count):
        high = int.from_bytes(data[at : at + 4], "little")
        low, at = read_bitmap(data, at + 4)
        found.append(low + (high << 32))
    return np.concatenate(found)


def read_file(path: Path, file_format: str) -> Any:
    """Return tables of Arrow, or the rows of Avro."""
    if file_format == "avro":
        with path.open("rb") as file:
            return list(fastavro.reader(file))
    if file_format == "parquet":
        return parquet.ParquetFile(path).read()
    if file_format == "orc":
        file = orc.ORCFile(path)
        stripes = [fix_zeros(file.read_stripe(i)) for i in range(file.nstripes)]
        return pa.Table.from_batches(stripes, file.schema)
    raise Refused(f"file format {file_format}")


def fix_zeros(stripe: pa.RecordBatch) -> pa.RecordBatch:
    """Give zeros of ORC the signs that Java reads."""
    for i, column in enumerate(stripe.columns):
        if pa.types.is_floating(column.type):
            parts = [column[at : at + 1024] for at in range(0, len(column), 1024)]
            parts = [
                part if part.null_count or np.any(part.to_numpy(False)) else pa.repeat(part[0], len(part))
                for part in parts
            ]
            stripe = stripe.set_column(i, stripe.schema.field(i), pa.concat_arrays(parts))
    return stripe


def read_manifest(path: Path, version: int) -> list[dict[str, Any]]:
    """Return the rows of a manifest list, a manifest or an index manifest."""
    with path.open("rb") as file:
        rows = read_file(path, {b"Obj": "avro", b"PAR": "parquet", b"ORC": "orc"}.get(file.read(3), "unknown"))
    rows = rows if isinstance(rows, list) else rows.to_pylist()
    if any(row["_VERSION"] != version for row in rows):
        raise Refused(f"version of {path}")
    return rows


def to_plain(value: Any, of: Type) -> Any:
    """Return a nested value of Avro as pyarrow takes it."""
    if value is None or not of.children:
        return value
    types = [child.type for child in of.children]
    if of.name == "ROW":
        return {child.name: to_plain(value[child.name], child.type) for child in of.children}
    if of.name == "ARRAY":
        return [to_plain(item, *types) for item in value]
    pairs = value.items() if isinstance(value, dict) else [(item["key"], item["value"]) for item in value]
    return [tuple(map(to_plain, pair, types)) for pair in pairs]


def read_columns(path: Path, wanted: list[tuple[Field, Field]]) -> dict[str, pa.Array]:
    """Return columns of a data file by new name: each is a stored and a new field."""
    *_, before, last = path.name.split(".")
    file_format = before if last in ("gz", "bz2", "deflate", "snappy", "lz4", "zst") else last
    data, columns = read_file(path, file_format), {}
    for old, new in wanted:
        if isinstance(data, list):
            array = pa.array([to_plain(row[old.name], old.type) for row in data], old.type.arrow)
        else:
            array = data[old.name].combine_chunks()
        columns[new.name] = convert(array, old.type, new.type, file_format == "orc")
    return columns


class Table:
    """A branch of a table at a snapshot."""

    def __init__(
        self, root: Path, branch: str | None, snapshot: int | None, tag: str | None, before: int | None = None
    ):
        self.root, self.base = root, root / f"branch/branch-{branch}" if branch else root
        self.schema = self.read_json(f"schema/schema-{max(self.list_ids('schema'))}")
        self.options: dict[str, str] = self.schema["options"]
        self.snapshot = self.find_snapshot(snapshot, tag, before)
        if self.snapshot and (snapshot or tag or before):
            self.schema = self.read_json(f"schema/schema-{self.snapshot['schemaId']}")
        self.fields = parse_fields(self.schema["fields"])
        named, partition, keys = ({field.name: field for field in self.fields}, self.schema["partitionKeys"],
                                  self.schema["primaryKeys"])  # fmt: skip
        self.partition = [named[name] for name in partition]
        self.keys = [name for name in keys if name not in partition]
        self.engine = self.options.get("merge-engine", "deduplicate") if keys else None
        refused = [name for name in ("chain-table.enabled", "postpone.merge-on-read") if self.is_on(name)]
        refused += ["sequence.snapshot-ordering"] * (self.is_on("sequence.snapshot-ordering") and bool(keys))
        refused += ["type"] * (self.options.get("type", "table") not in ("table", "materialized-table"))
        if refused:
            raise Refused(f"options {refused}")

    def is_on(self, *names: str) -> bool:
        """Return whether one of the options is true."""
        return any(self.options.get(name, "").lower() == "true" for name in names)

    def list_ids(self, kind: str) -> list[int]:
        """Return the ids of schemas or snapshots."""
        return sorted(int(path.name.split("-")[1]) for path in (self.base / kind).glob(f"{kind}-*"))

    def read_json(self, path: str) -> dict[str, Any]:
        """Return a schema, a snapshot or a tag."""
        found: dict[str, Any] = json.loads((self.base / path).read_text("utf8"))
        if found.get("version", 1) > 3:
            raise Refused(f"version of {path}")
        return found

    def find_snapshot(self, snapshot: int | None, tag: str | None, before: int | None) -> dict[str, Any] | None:
        """Return a snapshot by id or tag, or the newest one up to a time; None without snapshots."""
        if tag or snapshot:
            return self.read_json(f"tag/tag-{tag}" if tag else f"snapshot/snapshot-{snapshot}")
        newest_first = (self.read_json(f"snapshot/snapshot-{i}") for i in reversed(self.list_ids("snapshot")))
        return next((found for found in newest_first if before is None or found["timeMillis"] <= before), None)

    def list_entries(self) -> list[dict[str, Any]]:
        """Return the manifest entries of the live files, hidden files included."""
        live: dict[Any, dict[str, Any]] = {}
        lists = [self.snapshot["baseManifestList"], self.snapshot["deltaManifestList"]] if self.snapshot else []
        for manifest in [row for name in lists for row in read_manifest(self.root / "manifest" / name, 2)]:
            for entry in read_manifest(self.root / "manifest" / manifest["_FILE_NAME"], 2):
                names = ("_LEVEL", "_FILE_NAME", "_EXTRA_FILES", "_EMBEDDED_FILE_INDEX", "_EXTERNAL_PATH")
                identity = (entry["_PARTITION"], entry["_BUCKET"], *(str(entry["_FILE"].get(name)) for name in names))
                before = live.pop(identity, None)
                if before is None or before["_KIND"] != 1 - entry["_KIND"]:
                    live[identity] = entry
                if before and before["_KIND"] == entry["_KIND"]:
                    raise ValueError(f"{identity} is added or removed twice")
        if any(entry["_KIND"] for entry in live.values()):
            raise ValueError("files are removed that were not added")
        return list(live.values())

    def locate(self, entry: dict[str, Any], file: dict[str, Any], folder: str | None = None) -> Path:
        """Return the path of a data file, or of an index file in a folder."""
        if file.get("_EXTERNAL_PATH"):
            return Path(re.sub("^file:/+", "/", file["_EXTERNAL_PATH"]))
        if folder:
            return self.root / folder / file["_FILE_NAME"]
        values = zip(self.partition, self.partition_values(entry), strict=True)
        parts = [name_directory(field, value, self.options) for field, value in values]
        base = self.root / self.options.get("data-file.path-directory", "")
        return base.joinpath(*parts, f"bucket-{entry['_BUCKET']}", file["_FILE_NAME"])

    def partition_values(self, entry: dict[str, Any]) -> list[Any]:
        """Return the values of the partition columns."""
        return read_binary_row(entry["_PARTITION"], [field.type for field in self.partition])

    def read_vectors(self) -> dict[Any, np.ndarray]:
        """Return the deletion vectors by partition, bucket and file."""
        vectors, name = {}, (self.snapshot or {}).get("indexManifest")
        for entry in read_manifest(self.root / "manifest" / name, 1) if name else ():
            if entry["_INDEX_TYPE"] == "DELETION_VECTORS":
                folder = None if self.is_on("index-file-in-data-file-dir") else "index"
                data = self.locate(entry, entry, folder).read_bytes()
                for place in entry["_DELETIONS_VECTORS_RANGES"]:
                    vectors[entry["_PARTITION"], entry["_BUCKET"], place["f0"]] = read_vector(data, place["f1"])
        return vectors

    def read_rows(self, entries: list[dict[str, Any]], vectors: dict[Any, np.ndarray]) -> pa.Table:
        """Read files with columns of the same rows: the file with the highest sequence number wins."""
        first, *_ = entries = sorted(entries, key=lambda entry: entry["_FILE"]["_MAX_SEQUENCE_NUMBER"])
        count, columns = first["_FILE"]["_ROW_COUNT"], {}
        for entry in entries:
            fields = parse_fields(self.read_json(f"schema/schema-{entry['_FILE']['_SCHEMA_ID']}")["fields"])
            written = entry["_FILE"].get("_WRITE_COLS") or [field.name for field in fields]
            if {field.name for field in fields} - {*written} and not self.is_on("data-evolution.enabled"):
                raise Refused("files without all columns")
            stored = {field.id: field for field in fields if field.name in written}
            wanted = [(stored[field.id], field) for field in self.fields if field.id in stored]
            for system in (Field(0, "_SEQUENCE_NUMBER", Type("BIGINT")), Field(0, "_VALUE_KIND", Type("TINYINT"))):
                wanted += [(system, system)] if self.engine else []
            columns |= read_columns(self.locate(entry, entry["_FILE"]), wanted)
        for field, value in zip(self.partition, self.partition_values(first), strict=True):
            columns[field.name] = to_array([value] * count, field.type)
        columns = {field.name: pa.nulls(count, field.type.arrow) for field in self.fields} | columns
        keep = np.ones(count, bool)
        keep[vectors.get((first["_PARTITION"], first["_BUCKET"], first["_FILE"]["_FILE_NAME"]), [])] = False
        return pa.table({**columns, "_LEVEL": np.full(count, first["_FILE"]["_LEVEL"])}).filter(pa.array(keep))

    def read_partitions(self) -> dict[bytes, list[pa.Table]]:
        """Return rows by partition; all partitions with files have a place."""
        groups: dict[Any, dict[Any, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
        partitions: dict[bytes, list[pa.Table]] = {}
        hides = self.is_on("deletion-vectors.enabled") and not self.is_on("deletion-vectors.merge-on-read")
        hides = bool(self.engine) and (hides or self.engine == "first-row")
        for entry in self.list_entries():
            file, same_rows = entry["_FILE"], None
            partitions.setdefault(entry["_PARTITION"], [])
            if self.is_on("data-evolution.enabled"):
                same_rows = file.get("_FIRST_ROW_ID")
            if entry["_BUCKET"] >= 0 and not (hides and file["_LEVEL"] == 0):
                group = groups[entry["_PARTITION"], entry["_BUCKET"]]
                group[file["_FILE_NAME"] if same_rows is None else same_rows].append(entry)
        vectors, names = self.read_vectors(), [field.name for field in self.fields]
        for (partition, _), group in groups.items():
            rows = pa.concat_tables([self.read_rows(files, vectors) for files in group.values()])
            partitions[partition].append((merge(rows, self) if self.engine else rows).select(names))
        return partitions


def rank(column: pa.Array, order: str = "ascending", nulls: str = "at_start") -> np.ndarray:
    """Return integers in the order of the values: -0.0 is below 0.0, and NaN is the highest number."""
    if pa.types.is_floating(column.type):
        bits = column.cast(pa.float64()).fill_null(0).to_numpy().view(np.int64)
        column = pa.array(bits ^ (bits >> 63 & (1 << 63) - 1), mask=column.is_null().to_numpy(False))
    return pc.rank(column, order, null_placement=nulls, tiebreaker="dense").to_numpy().astype(np.int64)


def merge(rows: pa.Table, table: Table) -> pa.Table:
    """Merge the rows of a bucket."""
    rows, key = rows.combine_chunks(), np.zeros(len(rows), np.int64)
    for name in table.keys:
        key = np.unique(key * (len(rows) + 1) + rank(rows[name].combine_chunks()), return_inverse=True)[1]
    level, retracts = rows["_LEVEL"].to_numpy(), np.isin(rows["_VALUE_KIND"].to_numpy(), (1, 3))
    keep = np.ones(len(rows), bool)
    is_lookup = table.options.get("changelog-producer") == "lookup" or table.engine == "first-row"
    if is_lookup or table.is_on("force-lookup", "deletion-vectors.enabled"):
        lowest = np.full(len(rows), 1 << 30)
        np.minimum.at(lowest, key[level > 0], level[level > 0])
        keep &= (level == 0) | (level == lowest[key])
    if table.is_on(*(prefix + "ignore-delete" for prefix in ("", "deduplicate.", "partial-update.", "first-row."))):
        keep &= ~retracts
    sequence = re.findall(r"[^\s,]+", table.options.get("sequence.field", ""))
    direction = table.options.get("sequence.field.sort-order", "ascending")
    values = [rows[name].combine_chunks() for name in sequence]
    values = [pc.add(array, 0.0) if pa.types.is_floating(array.type) else array for array in values]  # no -0.0
    ranks = [rank(array, direction) for array in values]
    order = np.lexsort((~retracts, rows["_SEQUENCE_NUMBER"].to_numpy(), *reversed(ranks), key))
    order = order[keep[order]]
    rows, key, retracts = rows.take(order), key[order], retracts[order]
    first, last = np.flatnonzero(np.diff(key, prepend=-1)), np.flatnonzero(np.diff(key, append=-1))
    if table.engine in ("deduplicate", "first-row"):
        chosen = last if table.engine == "deduplicate" else first
        return rows.take(chosen[~retracts[chosen]])
    if table.engine not in ("partial-update", "aggregation"):
        raise Refused(f"merge engine {table.engine}")
    if retracts[np.repeat(last > first, last - first + 1)].any() or ".sequence-group" in str(list(table.options)):
        raise Refused("sequence groups, or retracts of keys with several rows")
    default = table.options.get("fields.default-aggregate-function") if table.engine == "aggregation" else None
    columns = {}
    for name in rows.column_names:
        function = table.options.get(f"fields.{name}.aggregate-function", default or "last_non_null_value")
        function = "last_value" if name in (*table.keys, *sequence) or name.startswith("_") else function
        columns[name] = aggregate(rows[name].combine_chunks(), function, first, last)
    return pa.table(columns).filter(pa.array(~retracts[last]))


def aggregate(column: pa.Array, function: str, first: np.ndarray, last: np.ndarray) -> pa.Array:
    """Return the result for each group of rows, from its first to its last one."""
    if function == "sum":
        values = to_values(column)
        groups = [[v for v in values[a : b + 1] if v is not None] for a, b in zip(first, last, strict=True)]
        return pa.array([sum(group[1:], group[0]) if group else None for group in groups], column.type)
    if function in ("last_value", "first_value"):
        return column.take(last if function == "last_value" else first)
    if function not in ("max", "last_non_null_value", "min", "first_non_null_value"):
        raise Refused(f"aggregate function {function}")
    is_last = function in ("max", "last_non_null_value")
    if "non_null" in function:
        by = np.where(column.is_valid(), np.arange(len(column)), -1 if is_last else len(column))
    else:
        by = rank(column, nulls="at_start" if is_last else "at_end")
    order = np.lexsort((by, np.repeat(first, last - first + 1)))
    return column.take(order[last if is_last else first])


def read_table(
    root: str | Path, snapshot: int | None = None, tag: str | None = None, branch: str | None = None
) -> pa.Table:
    """Return the rows of the newest snapshot, of one by id, or of a tag; of the main branch or another."""
    table = Table(Path(root), branch, snapshot, tag)
    partitions = table.read_partitions()
    for option in ("scan.fallback-branch", "scan.primary-branch") if not branch else ():
        if option in table.options:
            before = table.snapshot["timeMillis"] if table.snapshot and (snapshot or tag) else None
            other = Table(Path(root), table.options[option], None, None, before).read_partitions()
            partitions = {**other, **partitions} if "fallback" in option else {**partitions, **other}
    schema = pa.schema([(field.name, field.type.arrow) for field in table.fields])
    rows = pa.concat_tables(
        [schema.empty_table(), *(rows.cast(schema) for part in partitions.values() for rows in part)]
    )
    for i, field in enumerate(table.fields):
        default = table.options.get(f"fields.{field.name}.default-value")
        if default is not None:
            value = pa.scalar(default).cast(field.type.arrow)
            rows = rows.set_column(i, field.name, rows[field.name].fill_null(value))
    return rows


def main() -> None:
    """Print the rows of a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", help="directory of the table")
    parser.add_argument("--snapshot", type=int)
    parser.add_argument("--tag")
    parser.add_argument("--branch")
    given = parser.parse_args()
    print(read_table(given.table, given.snapshot, given.tag, given.branch))


if __name__ == "__main__":
    main()
