"""Files as rows: writes, merges and `create_table` take paths, and `read_files` also takes URLs and streams."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import fastavro
import fsspec
import pyarrow as pa
import pytest
from pyarrow import csv, feather, orc
from pyarrow import parquet as pq

import paimon
from paimon.domain.types.type_text import format_type

ROWS = pa.table({"id": pa.array([1, 2], pa.int64()), "name": ["one", "two"]})


def write_avro(rows: pa.Table, path: Path) -> None:
    fields = [{"name": "id", "type": "long"}, {"name": "name", "type": ["null", "string"]}]
    with path.open("wb") as file:
        fastavro.writer(file, {"type": "record", "name": "r", "fields": fields}, rows.to_pylist())


def write_json(rows: pa.Table, path: Path) -> None:
    path.write_text("".join(f'{{"id": {row["id"]}, "name": "{row["name"]}"}}\n' for row in rows.to_pylist()))


def write_stream(rows: pa.Table, path: Path) -> None:
    with pa.ipc.new_stream(str(path), rows.schema) as writer:
        writer.write(rows)


WRITERS: dict[str, Callable[[pa.Table, Path], object]] = {
    "parquet": pq.write_table,
    "orc": orc.write_table,
    "avro": write_avro,
    "csv": csv.write_csv,
    "jsonl": write_json,
    "feather": feather.write_feather,
    "ipc": write_stream,
}


@pytest.fixture
def catalog() -> paimon.Catalog:
    catalog = paimon.connect("memory://row-files")
    catalog.create_database("shop", exist_ok=True)
    for name in catalog.tables("shop"):
        catalog.drop_table(f"shop.{name}")
    return catalog


def read(table: paimon.Table) -> list[dict[str, object]]:
    return sorted(table.scan().to_arrow().to_pylist(), key=lambda row: str(row["id"]))


@pytest.mark.parametrize("ending", WRITERS)
def test_a_file_of_each_format_makes_and_fills_a_table(catalog: paimon.Catalog, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"rows.{ending}"
    WRITERS[ending](ROWS, path)
    table = catalog.create_table("shop.t", path)
    assert table.arrow_schema.names == ["id", "name"]
    table.write(path)
    assert read(table) == ROWS.to_pylist()
    packed = tmp_path / f"rows.{ending}.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert paimon.read_files(packed).to_reader(["name"]).read_all() == ROWS.select(["name"])


def test_a_pattern_names_files_in_order_and_each_has_its_own_columns(catalog: paimon.Catalog, tmp_path: Path) -> None:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    csv.write_csv(ROWS, tmp_path / "b.csv")
    (tmp_path / "a.csv").write_text("id\n3\n")
    (tmp_path / ".hidden.csv").write_text("id\n4\n")
    pq.write_table(ROWS.slice(1), tmp_path / "deep" / "er" / "c.parquet")
    table = catalog.create_table("shop.t", "id BIGINT, name STRING")
    assert table.write(tmp_path / "*.csv").rows == 3
    assert table.overwrite([tmp_path / "**" / "*.parquet", tmp_path / "a.csv"]).rows == 2
    assert read(table) == [{"id": 2, "name": "two"}, {"id": 3, "name": None}]
    found = paimon.read_files([str(tmp_path / "[ab].csv")])
    assert [Path(name).name for name in found.names] == ["a.csv", "b.csv"]
    with pytest.raises(paimon.CorruptTable, match=r"b\.csv.*column 'name', which the first rows lack"):
        found.to_reader().read_all()


def test_a_merge_reads_a_file_again_for_each_attempt(catalog: paimon.Catalog, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    csv.write_csv(ROWS, path)
    table = catalog.create_table("shop.t", "id BIGINT NOT NULL, name STRING", primary_keys=["id"])
    table.write([{"id": 2, "name": "old"}])
    merge = table.merge(path, on="id").when_matched_update_all().when_not_matched_insert_all()
    assert merge.execute().updated == 1
    assert merge.execute().inserted == 0
    assert read(table) == ROWS.to_pylist()


def test_urls_and_streams_are_read(catalog: paimon.Catalog) -> None:
    with fsspec.open("memory://row-files-input/rows.csv", "wb") as file:
        file.write(b"id,name\n1,one\n")
    table = catalog.create_table("shop.t", "id BIGINT, name STRING")
    table.write(paimon.read_files("memory://row-files-input/*.csv"))
    stream = io.BytesIO(b'{"id": 2, "name": "two"}\n')
    table.write(paimon.read_files(stream, "json"))
    assert read(table) == ROWS.to_pylist()


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("rows.txt", "id\n1\n", r"extension '\.txt' names no known format"),
        ("rows.csv", "id,nam\n1,x\n", r"(?s)rows\.csv': The data does not fit table.*nam string"),
        ("rows.csv", "id\nx\n", r"rows\.csv: cannot be read as csv"),
        ("rows.jsonl", '{"id": "x"}\n', r"rows\.jsonl': .*'x' is not a valid BIGINT"),
        ("rows.jsonl", '{"id": 1}\n\n[2]\n', r"rows\.jsonl: line 3 is not a JSON object"),
        ("rows.parquet", "id", r"rows\.parquet: cannot be read as parquet"),
        (".csv", "id\n1\n", r"is a directory, not a file.*\*\.parquet"),
        ("other.csv", "id\n1\n", r"(?i)file 'rows\.csv' does not exist"),
    ],
)
def test_a_file_that_cannot_be_written_is_named(
    catalog: paimon.Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_text(text)
    table = catalog.create_table("shop.t", "id BIGINT, name STRING")
    with pytest.raises(paimon.PaimonError, match=message):
        table.write(Path(name.replace("other", "rows").removeprefix(".csv")))
    assert table.snapshot() is None


def test_a_column_that_no_row_of_a_json_file_has_is_missing(catalog: paimon.Catalog, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    table = catalog.create_table("shop.t", "id BIGINT NOT NULL, name STRING", primary_keys=["id"])
    table.write([{"id": 1, "name": "kept"}])
    path.write_text('{"id": 1}\n')
    with pytest.raises(paimon.InvalidRequest, match="whose stored values would become null"):
        table.write(path)
    path.write_text('{"id": 1, "name": null}\n')
    table.write(path)
    assert read(table) == [{"id": 1, "name": None}]


def test_json_lines_are_read_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paimon.adapters.text_rows._JSON_BYTES", 20)
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(f'{{"id": {number}, "text": "line {number}"}}\n' for number in range(50)))
    pieces = list(paimon.read_files(path).read())
    assert len(pieces) > 20
    assert paimon.read_files(path).to_reader().read_all()["id"].to_pylist() == list(range(50))


def test_lines_without_a_column_may_come_before_those_with_it(
    catalog: paimon.Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("paimon.adapters.text_rows._JSON_BYTES", 20)
    path = tmp_path / "rows.jsonl"
    path.write_text('{"id": 1           }\n{"id": 2, "name": "two"}\n')
    table = catalog.create_table("shop.t", "id BIGINT NOT NULL, name STRING", primary_keys=["id"])
    assert table.write(path).rows == 2
    assert read(table) == [{"id": 1, "name": None}, {"id": 2, "name": "two"}]


def test_a_column_that_a_file_has_twice_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("id,id\n1,2\n")
    with pytest.raises(paimon.CorruptTable, match="has column 'id' more than once"):
        paimon.read_files(tmp_path / "rows.csv").to_reader()


@pytest.mark.parametrize("row", ['{"id": 1, "v": {"a": 1}}', '{"id": 1, "v": "\\ud800"}'])
def test_values_without_a_common_type_are_refused(catalog: paimon.Catalog, tmp_path: Path, row: str) -> None:
    (tmp_path / "mixed.jsonl").write_text(row + '\n{"id": 2, "v": "text"}\n')
    with pytest.raises(paimon.CorruptTable, match="do not fit one type"):
        catalog.create_table("shop.mixed", tmp_path / "mixed.jsonl")
    query = f"SELECT id FROM read_json('{tmp_path}/mixed.jsonl')"
    with pytest.raises(paimon.CorruptTable, match="do not fit one type"):
        catalog.sql(query, allowed_files=[str(tmp_path)])


LONG = 18446744073709551615
FILES = {
    "one.csv": (f"v,w\n{LONG},1\n,2\n-7,3\n", "DECIMAL(38, 0)", [Decimal(LONG), None, Decimal(-7)]),
    "far.csv": (f"v\n{'9' * 50}\n", "STRING", ["9" * 50]),
    "mixed.csv": (f"v\n{LONG}\n0.5\n", "DECIMAL(38, 1)", [Decimal(LONG), Decimal("0.5")]),
    "spaced.csv": (f"v,w\n {LONG},1\n", "DECIMAL(38, 0)", [Decimal(LONG)]),
    "quoted.csv": (f'v,w\n{LONG},1\n"",2\n', "STRING", [str(LONG), ""]),
    "one.jsonl": (f'{{"v": {LONG}}}\n{{"v": 1}}\n', "DECIMAL(38, 0)", [Decimal(LONG), Decimal(1)]),
    "mixed.jsonl": (f'{{"v": {LONG}}}\n{{"v": 0.5}}\n', "DECIMAL(38, 1)", [Decimal(LONG), Decimal("0.5")]),
    "points.csv": (f"v\n{LONG}.\n.5\n", "DECIMAL(38, 1)", [Decimal(LONG), Decimal("0.5")]),
    "short_points.csv": ("v\n1.\n2.\n", "DOUBLE", [1.0, 2.0]),
    "floating.csv": (f"v\n{LONG}\n1e300\n", "DOUBLE", [float(LONG), 1e300]),
    "floating.jsonl": (f'{{"v": {LONG}}}\n{{"v": 1e300}}\n', "DOUBLE", [float(LONG), 1e300]),
    "far.jsonl": (f'{{"v": {"9" * 39}}}\n{{"v": -0.50}}\n{{"v": 7}}\n', "DOUBLE", [1e39, -0.5, 7]),
    "far_whole.jsonl": (f'{{"v": {"9" * 39}}}\n{{"v": 7}}\n', "STRING", ["9" * 39, "7"]),
    "nested.jsonl": (f'{{"v": [{LONG}, 1]}}\n', "ARRAY<DECIMAL(20, 0)>", [[Decimal(LONG), Decimal(1)]]),
}


@pytest.mark.parametrize("name", FILES)
def test_whole_numbers_beyond_64_bits_keep_their_digits(catalog: paimon.Catalog, tmp_path: Path, name: str) -> None:
    text, kind, values = FILES[name]
    (tmp_path / name).write_text(text)
    table = catalog.create_table("shop.long", tmp_path / name)
    assert format_type(table.table_schema.fields[0].type) == kind
    table.write(tmp_path / name)
    assert table.to_arrow()["v"].to_pylist() == values
    other = catalog.create_table("shop.other", "w INT")
    other.write(tmp_path / name, merge_schema=True)
    assert catalog.table("shop.other").to_arrow()["v"].to_pylist() == values


def test_values_that_nest_too_deep_for_a_type_are_refused(catalog: paimon.Catalog, tmp_path: Path) -> None:
    (tmp_path / "deep.jsonl").write_text('{"v": ' + "[" * 2000 + "]" * 2000 + "}\n")
    with pytest.raises(paimon.InvalidRequest, match="Column 'v': types nest deeper than 64 levels"):
        catalog.create_table("shop.deep", tmp_path / "deep.jsonl")
    value: object = 1
    for _ in range(3000):
        value = [value]
    with pytest.raises(paimon.InvalidRequest, match="a list that nests too deep is not a valid INT"):
        catalog.create_table("shop.lists", "v ARRAY<INT>").write([{"v": value}])


def test_numbers_of_json_in_a_column_of_texts_are_what_the_file_has(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text("".join(f'{{"v": {v}}}\n' for v in ("NaN", "1.50", "1e3", LONG, '"x"')))
    catalog = paimon.connect(tmp_path)
    catalog.create_database("d")
    table = catalog.create_table("d.t", "v STRING")
    table.write(paimon.read_files(tmp_path / "rows.jsonl"))
    assert table.scan().to_arrow()["v"].to_pylist() == ["NaN", "1.50", "1e3", str(LONG), "x"]
