"""The worked examples of `docs/specification/`, made from tables that this module writes.

A block with the title NAME has the text that `EXAMPLES[NAME]` returns. To write them into the pages:

    PYTHONPATH=tests python -m support.specification_examples
"""

from __future__ import annotations

import json
import re
import tempfile
import textwrap
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow.parquet as pq
from attrs import frozen

import paimon

PAGES = Path(__file__).resolve().parents[2] / "docs" / "specification"
BLOCK = re.compile(r'(^```[a-z]+ title="(?P<name>[^"\n]+)"\n)(?P<text>.*?)(?=^```$)', re.S | re.M)

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_CHANGING = re.compile(r'("(?:\w*[tT]imeMillis|_CREATION_TIME|\w*ListSize|_FILE_SIZE)": ?)(\d+)')
_WIDTH = 118


@frozen
class Stored:
    """A table and the folder of its files."""

    table: paimon.Table
    root: Path

    def snapshot(self) -> dict[str, Any]:
        """Return the newest snapshot."""
        return dict(json.loads(max((self.root / "snapshot").glob("snapshot-*"), key=_number).read_text("utf8")))

    def records(self, name: str) -> list[dict[str, Any]]:
        """Return the records of a manifest, a manifest list or an index manifest."""
        with (self.root / "manifest" / name).open("rb") as file:
            return [dict(record) for record in fastavro.reader(file)]  # type: ignore[call-overload]

    def entries(self) -> list[dict[str, Any]]:
        """Return the entries of the newest snapshot's delta."""
        listed = self.records(self.snapshot()["deltaManifestList"])
        return [entry for manifest in listed for entry in self.records(manifest["_FILE_NAME"])]


def _number(path: Path) -> int:
    return int(path.name.rpartition("-")[2])


def store(folder: Path, columns: str, options: dict[str, str] | None = None, **more: Any) -> Stored:
    """Create a table in a warehouse of its own."""
    catalog = paimon.connect(tempfile.mkdtemp(dir=folder))
    catalog.create_database("shop")
    options = {**(options or {}), "manifest.compression": "none"}  # fastavro lacks zstandard
    table = catalog.create_table("shop.orders", columns, options=options, **more)
    return Stored(table, Path(table.location.removeprefix("file://")))


def _orders(folder: Path) -> Stored:
    made = store(
        folder,
        "id BIGINT NOT NULL, day DATE NOT NULL, amount DECIMAL(10, 2), address ROW<city STRING, zip INT>, "
        "tags ARRAY<STRING>",
        {"bucket": "1"},
        primary_keys=["id", "day"],
        partition_keys=["day"],
    )
    row = {"day": date(2024, 1, 1), "address": {"city": "Rome", "zip": 184}, "tags": ["new"]}
    made.table.write([{"id": 1, "amount": Decimal("9.99"), **row}, {"id": 2, "amount": Decimal("20.00"), **row}])
    return made


def _to_json(value: object) -> Any:
    match value:
        case bytes():
            return value.hex()
        case datetime():
            return int(value.timestamp() * 1000)
        case dict():
            return {k: _to_json(v) for k, v in value.items()}
        case list():
            return [_to_json(v) for v in value]
    return value


def _lines_of_json(value: dict[str, Any]) -> Iterator[str]:
    """Yield lines of JSON, each with as many members as fit; objects and lists that do not fit begin a line."""
    line = "{"
    for place, (key, member) in enumerate(value.items()):
        text = f"{json.dumps(key)}: {json.dumps(member)}" + ("," if place + 1 < len(value) else "}")
        if len(line) + len(text) < _WIDTH:
            line = f"{line} {text}" if line != "{" else line + text
            continue
        yield line
        *lines, line = _wrap_json(text)
        yield from lines
    yield line


def _wrap_json(text: str) -> list[str]:
    """Wrap JSON after commas, outside of texts."""
    fixed = re.sub(r"(?<!,) ", "\0", text)
    lines = textwrap.wrap(fixed, _WIDTH, initial_indent=" ", subsequent_indent="    ", break_on_hyphens=False)
    return [line.replace("\0", " ") for line in lines]


def _as_json(value: dict[str, Any]) -> str:
    """Return JSON in which what changes from run to run is replaced."""
    return "\n".join(_lines_of_json(json.loads(_steady(json.dumps(_to_json(value))))))


def _steady(text: str) -> str:
    text = _UUID.sub("<uuid>", text)
    return _CHANGING.sub(lambda m: m[1] + ("1704067200000" if "ime" in m[1] or "TIME" in m[1] else "1000"), text)


def _schema(folder: Path) -> str:
    return _as_json(json.loads((_orders(folder).root / "schema" / "schema-0").read_text("utf8")))


def _snapshot(folder: Path) -> str:
    return _as_json(_orders(folder).snapshot())


def _manifest_list(folder: Path) -> str:
    made = _orders(folder)
    return _as_json(made.records(made.snapshot()["deltaManifestList"])[0])


def _manifest_entry(folder: Path) -> str:
    return _as_json(_orders(folder).entries()[0])


def _index_manifest(folder: Path) -> str:
    made = _with_deleted_rows(folder, {})
    return _as_json(made.records(made.snapshot()["indexManifest"])[0])


def _hex_lines(data: bytes, parts: Sequence[tuple[int, str]]) -> str:
    """Return the bytes, one line for each part of (length, meaning)."""
    lines, at, width = [], 0, 3 * max(length for length, _ in parts)
    for length, meaning in parts:
        part = data[at : at + length]
        lines.append(f"{part.hex(' '):<{width}}  {meaning}")
        at += length
    assert at == len(data), f"{len(data) - at} bytes remain: {data[at:].hex(' ')}"
    return "\n".join(line.rstrip() for line in lines)


def _binary_row(folder: Path) -> str:
    columns = "i INT, n INT, s STRING, l STRING, d DECIMAL(20, 2), t TIMESTAMP(6), v INT"
    made = store(folder, columns, partition_keys=["i", "n", "s", "l", "d", "t"])
    values = {"i": -2, "n": None, "s": "abc", "l": "ten bytes!", "d": Decimal("-1.50")}
    made.table.write([{**values, "t": datetime(2024, 1, 1, 12, 0, 0, 500), "v": 1}])
    (entry,) = made.entries()
    (file,) = made.root.rglob("bucket-0")
    lines = _hex_lines(
        entry["_PARTITION"],
        [
            (4, "number of fields, big-endian; the row begins after it"),
            (8, "row kind 0; null bits: bit 8 + 1, so field n is null"),
            (8, "i INT = -2"),
            (8, "n INT = null"),
            (8, "s STRING = 'abc': bytes, then 0x80 | length"),
            (8, "l STRING: length 10 at offset 56"),
            (8, "d DECIMAL(20, 2): length 2 at offset 72"),
            (8, "t TIMESTAMP(6): 500000 ns in the millisecond, offset 88"),
            (16, "'ten bytes!', filled with zeros to 16"),
            (16, "-150 as big-endian bytes, in 16 bytes"),
            (8, "milliseconds since 1970"),
        ],
    )
    return f"{lines}\n{file.parent.relative_to(made.root)}"


def _partition_paths(folder: Path) -> str:
    made = store(folder, "v INT, s STRING, d DATE, t TIMESTAMP(3)", partition_keys=["s", "d", "t"])
    day, noon = date(2024, 1, 1), datetime(2024, 1, 1, 12)
    cases = [("a b", day, noon), ("a/b=c:é", day, datetime(2024, 1, 1, 12, 0, 0, 5000)), (None, None, None)]
    cases += [("", date(1969, 12, 31), noon)]
    lines = []
    for place, (s, d, t) in enumerate(cases):
        made.table.write([{"v": place, "s": s, "d": d, "t": t}])
        (file,) = (f for f in made.root.rglob("data-*") if pq.read_table(f)["v"][0].as_py() == place)
        shown = f"{s!r}, {d}, {t}" if s is not None else "null, null, null"
        lines.append(f"{shown}: {file.parent.parent.relative_to(made.root)}")
    return "\n".join(lines)


def _buckets(folder: Path) -> str:
    made = store(folder, "id INT NOT NULL, name STRING NOT NULL", {"bucket": "4"}, primary_keys=["id", "name"])
    lines = []
    for key, name in ((1, "a"), (2, "b"), (-7, "Zürich")):
        made.table.write([{"id": key, "name": name}])
        (entry,) = made.entries()
        lines.append(f"({key}, {name!r}): {entry['_FILE']['_MIN_KEY'][4:].hex()} -> bucket {entry['_BUCKET']} of 4")
    return "\n".join(lines)


def _parquet_columns(folder: Path) -> str:
    made = _orders(folder)
    (path,) = made.root.rglob("data-*.parquet")
    lines = re.sub(r"\(List\) {\n.*\n", "(List) {\n", str(pq.ParquetFile(path).schema)).splitlines()[2:]
    return "\n".join(line.removesuffix(";").removesuffix(" {") for line in lines if line.strip() != "}")


def _avro_columns(folder: Path) -> str:
    made = store(
        folder,
        "amount DECIMAL(10, 2), at TIMESTAMP(3), seen TIMESTAMP(6) WITH LOCAL TIME ZONE, counts MAP<INT, INT>",
        {"file.format": "avro"},
    )
    made.table.write([{"amount": None}])
    (path,) = made.root.rglob("data-*.avro")
    with path.open("rb") as file:
        schema: Any = fastavro.reader(file).writer_schema
    shown = (f"{f['name']}: {json.dumps(f['type'])}" for f in schema["fields"])
    return "\n".join(line.removeprefix(" ") for text in shown for line in _wrap_json(text))


def _with_deleted_rows(folder: Path, options: dict[str, str]) -> Stored:
    made = store(folder, "id INT", {"deletion-vectors.enabled": "true", **options})
    made.table.write([{"id": i} for i in range(6)])
    made.table.delete(where="id in (1, 4)")
    return made


def _vector_bytes(made: Stored) -> tuple[bytes, str]:
    (record,) = made.records(made.snapshot()["indexManifest"])
    (vector,) = record["_DELETIONS_VECTORS_RANGES"]
    shown = f"f1 = {vector['f1']}, f2 = {vector['f2']}, _CARDINALITY = {vector['_CARDINALITY']}"
    return (made.root / "index" / record["_FILE_NAME"]).read_bytes(), shown


def _deletion_vectors(folder: Path) -> str:
    bitmap, checksum = (20, "roaring bitmap of 1 and 4"), (4, "CRC-32")
    head, magic = [(1, "version"), (4, "length of magic and bitmaps")], (4, "magic")
    counts = [(8, "number of bitmaps, little-endian"), (4, "high 32 bits of the positions")]
    lines = []
    for bits, parts in ((32, [*head, magic, bitmap, checksum]), (64, [*head, magic, *counts, bitmap, checksum])):
        made = _with_deleted_rows(folder, {"deletion-vectors.bitmap64": str(bits == 64).lower()})
        data, shown = _vector_bytes(made)
        lines += [f"{bits} bits: {shown}", _hex_lines(data, parts)]
    return "\n".join(lines)


def _file_index(folder: Path) -> str:
    made = store(folder, "kind STRING", {"file-index.bitmap.columns": "kind"})
    made.table.write([{"kind": "a"}, {"kind": "b"}, {"kind": "a"}])
    return _hex_lines(
        made.entries()[0]["_FILE"]["_EMBEDDED_FILE_INDEX"],
        [
            (16, "magic, version, length of the head"),
            (10, "columns; 'kind'"),
            (12, "indexes; 'bitmap'"),
            (12, "start and length of the index; redundant length"),
            (10, "bitmap: version 2, rows, distinct values, no nulls"),
            (13, "index blocks; first value of the block 'a', its offset"),
            (8, "length of all blocks; values in the block"),
            (13, "'a', offset and length of its bitmap"),
            (13, "'b', offset -1 - 1: only row 1"),
            (20, "bitmap of 'a': 0, 2"),
        ],
    )


def _casts(folder: Path) -> str:
    changes: list[tuple[str, str, str, list[Any]]] = [
        ("BIGINT", "TINYINT", "c0", [300, -129, None]),
        ("DOUBLE", "INT", "c1", [-2.9, float("nan"), 1e300]),
        ("DECIMAL(6, 3)", "DECIMAL(5, 2)", "c2", [Decimal("1.005"), Decimal("-1.005"), Decimal("999.999")]),
        ("DOUBLE", "STRING", "c3", [1e10, 0.5, -0.0]),
        ("TIMESTAMP(6)", "TIMESTAMP(3)", "c4", [datetime(1969, 12, 31, 23, 59, 59, 999999), None, None]),
        ("TIMESTAMP(6)", "STRING", "c5", [datetime(2024, 1, 1, 0, 0, 0, 50), None, None]),
        ("STRING", "CHAR(3)", "c8", ["ab", "abcd", ""]),
        ("ARRAY<INT>", "STRING", "c9", [[1, None], [], None]),
    ]
    made = store(folder, ", ".join(f"{name} {old}" for old, _, name, _ in changes))
    made.table.write([{name: values[i] for _, _, name, values in changes} for i in range(3)])
    table = made.table
    for _, new, name, _ in changes:
        table = table.alter_column_type(name, new, allow_lossy=True)
    read = table.scan().to_arrow()
    lines = []
    for old, new, name, values in changes:
        pairs = zip(values, read[name].to_pylist(), strict=True)
        shown = ", ".join(f"{_show(a)} -> {_show(b)}" for a, b in pairs if a is not None)
        lines.append(f"{old} to {new}: {shown}")
    return "\n".join(lines)


def _show(value: Any) -> str:
    return repr(value) if isinstance(value, str) else "null" if value is None else str(value).replace("None", "null")


_ENGINES: list[tuple[str, dict[str, str]]] = [
    ("deduplicate", {}),
    ("deduplicate, sequence.field = v", {"sequence.field": "v"}),
    ("deduplicate, ignore-delete", {"ignore-delete": "true"}),
    ("partial-update, remove-record-on-delete", {"partial-update.remove-record-on-delete": "true"}),
    ("partial-update, fields.v.sequence-group = s", {"fields.v.sequence-group": "s"}),
    ("aggregation, v: sum", {"fields.v.aggregate-function": "sum"}),
    ("first-row, ignore-delete", {"ignore-delete": "true"}),
]  # fmt: skip


def _merges(folder: Path) -> str:
    records = [("+I", 1, 7, "a"), ("+I", 1, 3, None), ("+I", 2, 1, "b"), ("-D", 2, 1, "b"), ("+I", 3, 5, "c")]
    lines = [", ".join(f"{kind}({k}, {_show(v)}, {_show(s)})" for kind, k, v, s in records)]
    for name, options in _ENGINES:
        engine = name.partition(",")[0]
        made = store(folder, "k INT NOT NULL, v INT, s STRING", {"bucket": "1", "merge-engine": engine, **options},
                     primary_keys=["k"])  # fmt: skip
        for kind, k, v, s in records:
            made.table.write([{"k": k, "v": v, "s": s, "kind": kind}], kind_column="kind")
        rows = sorted(made.table.scan().to_arrow().to_pylist(), key=lambda row: int(row["k"]))
        shown = " ".join(f"({', '.join(_show(value) for value in row.values())})" for row in rows)
        lines.append(f"{name}: {shown}")
    return "\n".join(lines)


EXAMPLES: dict[str, Callable[[Path], str]] = {
    "schema": _schema,
    "snapshot": _snapshot,
    "manifest list": _manifest_list,
    "manifest entry": _manifest_entry,
    "index manifest": _index_manifest,
    "binary row": _binary_row,
    "partition paths": _partition_paths,
    "buckets": _buckets,
    "parquet columns": _parquet_columns,
    "avro columns": _avro_columns,
    "deletion vectors": _deletion_vectors,
    "file index": _file_index,
    "casts": _casts,
    "merges": _merges,
}
"""By name: the function that makes the text of an example with tables in a folder."""


def main() -> None:
    """Write the examples into the pages."""
    with tempfile.TemporaryDirectory() as folder:
        for page in sorted(PAGES.glob("*.md")):
            text = page.read_text("utf8")
            page.write_text(BLOCK.sub(lambda m: f"{m[1]}{EXAMPLES[m['name']](Path(folder))}\n", text), "utf8")


if __name__ == "__main__":
    main()
