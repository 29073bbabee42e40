"""`examples/reader`, which is written from the specification alone, reads what `paimon` and Java read."""

from __future__ import annotations

import ast
import json
from collections import Counter
from collections.abc import Callable
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from reader.reader import Refused, Table
from support.canonical_rows import rows_of, types_of
from support.golden_tables import GoldenRead, golden_directory, golden_reads

import paimon
from paimon.domain.predicate.bind import bind
from paimon.domain.predicate.evaluate_columnar import evaluate
from paimon.domain.predicate.sql import parse_predicate

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "reader"
TYPES = (
    "c CHAR(4), s STRING, n DECIMAL(30, 3), f FLOAT, d DOUBLE, b BYTES, day DATE, clock TIME(3), t0 TIMESTAMP(0), "
    "t TIMESTAMP(6), z TIMESTAMP(3) WITH LOCAL TIME ZONE, flag BOOLEAN, tiny TINYINT, small SMALLINT, big BIGINT, "
    "r ROW<a INT, l ARRAY<ROW<x INT, y STRING>>>, m MAP<INT, STRING>, e ARRAY<DOUBLE>"
)
VALUES: dict[str, Any] = {
    "c": "ab", "s": "Zürich", "n": Decimal("-1.500"), "f": 0.5, "d": -0.0, "b": b"\x00\xff", "day": date(1969, 1, 2),
    "clock": time(1, 2, 3, 4000), "t0": datetime(1960, 1, 1), "t": datetime(1969, 12, 31, 23, 59, 59, 1),
    "z": datetime(2024, 1, 1, 12), "flag": True, "tiny": -1, "small": 300, "big": 1 << 40,
    "r": {"a": None, "l": [{"x": 1, "y": None}, None]}, "m": [(1, "one"), (2, None)], "e": [],
}  # fmt: skip
Row = dict[str, Any]


def create(folder: Path, columns: str, **options: str) -> paimon.Table:
    """Create a table; `keys` and `partitions` are names separated by blanks."""
    keys, partitions = options.pop("keys", "").split(), options.pop("partitions", "").split()
    catalog = paimon.connect(folder)
    catalog.create_database("shop")
    named = {name.replace("_", "-").replace("--", "."): value for name, value in options.items()}
    return catalog.create_table("shop.t", columns, primary_keys=keys, partition_keys=partitions, options=named)


def write_changes(table: paimon.Table) -> paimon.Table:
    """Write rows of four keys in three commits: inserts, updates, deletes."""
    kinds = [
        [("+I", k, 10) for k in range(4)],
        [("+U", 1, 30), ("-D", 2, 10)],
        [("+I", 1, 20), ("+I", 2, 5), ("-D", 3, 10)],
    ]
    for commit in kinds:
        table.write([{"k": k, "v": v, "s": None if v == 30 else str(v), "kind": kind} for kind, k, v in commit],
                    kind_column="kind")  # fmt: skip
    return table


def write_values(file_format: str) -> Callable[[Path], paimon.Table]:
    def write(folder: Path) -> paimon.Table:
        table = create(folder, f"id INT, {TYPES}", file__format=file_format)
        table.write([{"id": 1, **VALUES}, {"id": 2, **dict.fromkeys(VALUES)}])
        return table

    return write


def write_keys(**options: str) -> Callable[[Path], paimon.Table]:
    return lambda folder: write_changes(create(folder, "k INT NOT NULL, v INT, s STRING", keys="k", **options))


def write_vectors(where: str, **options: str) -> Callable[[Path], paimon.Table]:
    def write(folder: Path) -> paimon.Table:
        table = create(folder, "k INT NOT NULL, v INT", deletion_vectors__enabled="true", **options)
        table.write([{"k": i, "v": i % 2} for i in range(9000)])
        if table.table_schema.primary_keys:
            table.compact(full=True)
        table.delete(where=where)
        assert has_vectors(table)
        return table

    return write


def has_vectors(table: paimon.Table) -> bool:
    entries = table.system_table("table_indexes").scan().to_arrow()
    return "DELETION_VECTORS" in entries["index_type"].to_pylist()


def write_ignored_deletes(folder: Path) -> paimon.Table:
    """Write deletes, then set the option, as no writer of ours does: such a one drops deletes."""
    table = write_keys(bucket="1", write_only="true")(folder)
    path = Path(table.location.removeprefix("file://")) / "schema" / "schema-0"
    schema = json.loads(path.read_text("utf8"))
    schema["options"]["ignore-delete"] = "true"
    path.write_text(json.dumps(schema), "utf8")
    return paimon.open_table(table.location)


def write_schemas(file_format: str) -> Callable[[Path], paimon.Table]:
    def write(folder: Path) -> paimon.Table:
        table = create(folder, "k INT NOT NULL, a INT, b DECIMAL(5, 2), r ROW<x INT, y INT>, gone INT", keys="k",
                       bucket="1", write_only="true", file__format=file_format)  # fmt: skip
        table.write([{"k": k, "a": k, "b": Decimal(k), "r": {"x": k, "y": 2}, "gone": 1} for k in range(3)])
        table = table.alter("RENAME COLUMN a TO c", "DROP COLUMN gone", "ADD COLUMN gone STRING FIRST")
        table = table.alter("ALTER COLUMN c TYPE BIGINT", "ALTER COLUMN b TYPE DECIMAL(12, 4)")
        table = table.alter("ADD COLUMN r.z STRING", "DROP COLUMN r.x")
        table.write([{"k": 1, "c": 1 << 40, "b": Decimal("0.1234"), "r": {"y": 5, "z": "z"}, "gone": "here"}])
        return table

    return write


def write_partitions(**options: str) -> Callable[[Path], paimon.Table]:
    def write(folder: Path) -> paimon.Table:
        table = create(folder, "s STRING, v INT, day DATE, clock TIME(3), t TIMESTAMP(6), n DECIMAL(31, 16)",
                       partitions="s day clock t n",
                       **options)  # fmt: skip
        row = {
            "day": date(2024, 2, 29),
            "clock": time(1, 2, 3, 120000),
            "t": datetime(2024, 1, 1, 12, 0, 0, 50),
            "n": Decimal("-123456789012345.0123456789012345"),
        }
        table.write([{"s": s, "v": v, **row} for v, s in enumerate(("a/b=c", "", None, "longer than seven"))])
        table.write([{"v": 9, "s": "all null"}])
        return table

    return write


TABLES: dict[str, Callable[[Path], paimon.Table]] = {
    **{f"types in {name}": write_values(name) for name in ("parquet", "orc", "avro")},
    **{f"keys in {name}": write_keys(bucket="2", file__format=name) for name in ("parquet", "orc", "avro")},
    "keys, nothing compacted": write_keys(bucket="1", write_only="true", sequence__field="v"),
    "keys, newest value lowest": write_keys(bucket="1", sequence__field="v", sequence__field__sort_order="descending"),
    "keys, dynamic buckets": write_keys(),
    "keys with vectors": write_vectors("k in (7, 5000)", keys="k", bucket="1"),
    "keys with vectors of 64 bits": write_vectors(
        "k in (1, 4)", keys="k", bucket="1", deletion_vectors__bitmap64="true"
    ),
    "keys with vectors, hidden rows": write_keys(bucket="1", deletion_vectors__enabled="true", write_only="true"),
    "keys, deletes ignored": write_ignored_deletes,
    "rows with vectors": write_vectors("v = 1"),
    "rows with vectors of 64 bits": write_vectors("k < 5000 or k in (7000, 7002)", deletion_vectors__bitmap64="true"),
    **{f"schemas in {name}": write_schemas(name) for name in ("parquet", "orc", "avro")},
    "partitions": write_partitions(),
    "partitions with plain names": write_partitions(partition__legacy_name="false"),
    "manifests in parquet": write_keys(bucket="1", manifest__format="parquet"),
    "empty": lambda folder: create(folder, TYPES),
}


@pytest.mark.parametrize("name", TABLES)
def test_rows_of_our_tables(name: str, tmp_path: Path) -> None:
    table = TABLES[name](tmp_path)
    scan = table.scan()
    types, root = types_of(scan.fields), table.location.removeprefix("file://")
    assert rows_of(Table(root).read(), types) == rows_of(scan.to_arrow(), types)


def test_older_snapshots_tags_and_branches(tmp_path: Path) -> None:
    table = write_schemas("parquet")(tmp_path)
    root = table.location.removeprefix("file://")
    table.tags.create("first", snapshot=1)
    table.branches.create("side", tag="first")
    for wanted in ({"snapshot": 1}, {"tag": "first"}):
        scan = table.scan(**wanted)
        types = types_of(scan.fields)
        assert rows_of(Table(root, **wanted).read(), types) == rows_of(scan.to_arrow(), types)
    side = paimon.open_table(table.location, {"branch": "side"})
    types = types_of(side.scan().fields)
    assert rows_of(Table(root, branch="side").read(), types) == rows_of(side.scan().to_arrow(), types)


@pytest.mark.parametrize(
    "options",
    [
        {"merge_engine": "aggregation", "fields__v__aggregate_function": "sum"},
        {"merge_engine": "partial-update"},
        {"merge_engine": "first-row"},
        {"scan__fallback_branch": "other"},
    ],
)
def test_what_the_reader_lacks_is_refused_by_name(options: dict[str, str], tmp_path: Path) -> None:
    table = create(tmp_path, "k INT NOT NULL, v INT", keys="k", bucket="1")
    ((name, value),) = list(options.items())[:1]
    name = name.replace("__", ".").replace("_", "-")
    path = Path(table.location.removeprefix("file://")) / "schema" / "schema-0"
    schema = json.loads(path.read_text("utf8"))
    schema["options"][name] = value
    path.write_text(json.dumps(schema), "utf8")
    with pytest.raises(Refused, match=f"option {name} = {value}"):
        Table(path.parents[1])


CASTS: list[tuple[str, str, list[Any]]] = [
    ("BIGINT", "TINYINT", [300, -129, None]),
    ("DECIMAL(6, 3)", "DECIMAL(5, 2)", [Decimal("1.005"), Decimal("-1.005"), Decimal("999.999")]),
    ("DECIMAL(6, 3)", "INT", [Decimal("-2.900"), Decimal("2.900"), None]),
    ("DECIMAL(6, 3)", "DOUBLE", [Decimal("0.100"), Decimal("-0.001"), None]),
    ("BOOLEAN", "DECIMAL(3, 1)", [True, False, None]),
    ("DECIMAL(9, 8)", "STRING", [Decimal("0.00000001"), Decimal("-1.00000000"), None]),
    ("TIMESTAMP(6)", "STRING", [datetime(1969, 12, 31, 23, 59, 59, 10), datetime(2024, 1, 1), None]),
    ("TIME(3)", "STRING", [time(1, 2, 3), time(1, 2, 3, 120000), None]),
    ("DATE", "TIMESTAMP(3)", [date(1969, 12, 31), date(2024, 1, 1), None]),
    ("STRING", "CHAR(3)", ["", "ab", "abcd"]),
    ("BOOLEAN", "INT", [True, False, None]),
    ("INT", "BOOLEAN", [2, 0, None]),
]


def test_casts(tmp_path: Path) -> None:
    columns = ", ".join(f"c{i} {old}" for i, (old, _, _) in enumerate(CASTS))
    table = create(tmp_path, columns)
    table.write([{f"c{i}": values[row] for i, (_, _, values) in enumerate(CASTS)} for row in range(3)])
    changes = [f"ALTER COLUMN c{i} TYPE {new}" for i, (_, new, _) in enumerate(CASTS)]
    table = table.alter(*changes, allow_lossy=True)
    scan = table.scan()
    types = types_of(scan.fields)
    assert rows_of(Table(table.location.removeprefix("file://")).read(), types) == rows_of(scan.to_arrow(), types)


def test_the_reader_is_independent() -> None:
    named = {
        name.split(".")[0]
        for path in FOLDER.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf8")))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names])
    }
    third_party = {"fastavro", "numpy", "pyarrow", "reader"}
    assert named - third_party <= {"__future__", "argparse", "collections", "datetime", "decimal", "io", "itertools",
                                   "json", "pathlib", "re", "typing"}  # fmt: skip


def is_read_as_java_reads(read: GoldenRead) -> bool | None:
    """Return whether the reader returns the rows of Java; None for reads that it does not offer."""
    arguments = dict(read.arguments)
    where, columns, options = (arguments.pop(name, None) for name in ("where", "columns", "options"))
    if options:
        arguments["snapshot"] = int(options.pop("scan.snapshot-id", 0))
    if read.kind != "rows" or options:
        return None
    try:
        rows = Table(read.table, **arguments).read()
    except Refused:
        return False
    branch = arguments.pop("branch", None)
    table = paimon.open_table(read.table, {"branch": branch} if branch else {})
    assert isinstance(table, paimon.Table)
    fields = table.scan(**arguments).fields
    if where:
        rows = rows.filter(evaluate(bind(parse_predicate(where), fields), rows))
    return rows_of(rows.select(columns) if columns else rows, types_of(fields)) == read.rows()


BY_DAY = ("dv_pk", "evo_nested", "v07_pk", "part_multi", "types_nested_orc")


@pytest.mark.parametrize("case", BY_DAY)
def test_rows_of_java(case: str) -> None:
    reads = [read for read in golden_reads(golden_directory()) if read.case == case and read.kind == "rows"]
    assert reads and all(map(is_read_as_java_reads, reads))


@pytest.mark.nightly
@pytest.mark.slow("reads all golden tables")
def test_rate_of_append_and_deduplicate_tables() -> None:
    counts: Counter[bool | None] = Counter()
    for read in golden_reads(golden_directory()):
        table = paimon.open_table(read.table)
        assert isinstance(table, paimon.Table)
        engine = table.table_schema.options.get("merge-engine", "deduplicate")
        if not table.table_schema.primary_keys or engine == "deduplicate":
            counts[is_read_as_java_reads(read)] += 1
    right, wrong = counts[True], counts[False]
    print(f"{right} of {right + wrong} reads: {right / (right + wrong):.2%}; not offered: {counts[None]}")
    assert right >= 0.97 * (right + wrong)
