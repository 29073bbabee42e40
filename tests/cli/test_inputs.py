"""Inputs of `write` and `create --like`: compressed files, standard input, and names that do not exist."""

from __future__ import annotations

import bz2
import gzip
import lzma
import subprocess
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet as pq
from support.case_lists import mark_products
from support.command_line import run
from support.terminal_commands import COMMAND, HOME, on_terminal

import paimon

CSV = b"id,name\n1,one\n2,two\n"
JSON = b'{"id": 1, "name": "one"}\n{"id": 2, "name": "two"}\n'
ROWS = [{"id": 1, "name": "one"}, {"id": 2, "name": "two"}]


def arrow_packed(codec: str) -> Callable[[bytes], bytes]:
    def pack(data: bytes) -> bytes:
        sink = pa.BufferOutputStream()
        with pa.CompressedOutputStream(sink, codec) as stream:
            stream.write(data)
        return bytes(sink.getvalue())

    return pack


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": arrow_packed("zstd"),
    "lz4": arrow_packed("lz4"),
}


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> paimon.Table:
    monkeypatch.chdir(tmp_path)
    catalog = paimon.connect("lake")
    catalog.create_database("db")
    return catalog.create_table("db.t", "id INT, name STRING, amount DECIMAL(10, 2)")


def read_written_rows(table: paimon.Table) -> list[dict[str, object]]:
    return table.scan(columns=["id", "name"]).to_arrow().to_pylist()


@pytest.mark.parametrize(("compression", "ending"), mark_products(sorted(PACKERS), ["csv", "jsonl", "parquet"]))
def test_compressed_files_are_written(
    table: paimon.Table, capsys: pytest.CaptureFixture[str], compression: str, ending: str
) -> None:
    pq.write_table(pa.Table.from_pylist(ROWS), "rows.parquet")
    content = {"csv": CSV, "jsonl": JSON, "parquet": Path("rows.parquet").read_bytes()}[ending]
    Path(f"rows.{ending}.{compression}").write_bytes(PACKERS[compression](content))
    run(capsys, "write", table.location, f"rows.{ending}.{compression}")
    assert read_written_rows(table) == ROWS


def test_a_zip_archive_of_one_file_is_written(table: paimon.Table, capsys: pytest.CaptureFixture[str]) -> None:
    with zipfile.ZipFile("rows.csv.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("inside.csv", CSV)
    run(capsys, "write", table.location, "rows.csv.zip")
    assert read_written_rows(table) == ROWS
    with zipfile.ZipFile("rows.zip", "w") as archive:
        archive.writestr("a.csv", CSV)
        archive.writestr("b.csv", CSV)
    message = run(capsys, "write", table.location, "rows.zip", "--format", "csv", code=1)
    assert "Archive 'rows.zip' contains 2 files, not one." in message
    assert len(table.snapshots()) == 1


DAMAGED = {"text": b"this is not compressed", "empty": b"", "cut": gzip.compress(CSV * 1000, mtime=0)[:-30]}
ARCHIVES = ["rows.csv.zip", "rows.csv.xz", "rows.csv.gz", "rows.csv.zst", "rows.parquet.gz"]


@pytest.mark.parametrize(("name", "damage"), mark_products(ARCHIVES, DAMAGED))
def test_damaged_archives_are_named(
    table: paimon.Table, capsys: pytest.CaptureFixture[str], name: str, damage: str
) -> None:
    Path(name).write_bytes(DAMAGED[damage])
    message = run(capsys, "write", table.location, name, code=1)
    assert message.startswith(f"paimon: {name}: cannot be read as")
    assert "paimon-input" not in message, "the name of a temporary file means nothing to the user"
    assert table.snapshot() is None


def run_with_input(data: bytes, *words: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*COMMAND, *words], input=data, capture_output=True, env={"PYTHONPATH": HOME})


@pytest.mark.parametrize(
    ("format_name", "content"), [("csv", CSV), pytest.param("json", JSON, marks=pytest.mark.nightly)]
)
def test_standard_input_is_written(table: paimon.Table, format_name: str, content: bytes) -> None:
    done = run_with_input(content, "write", table.location, "-", "--format", format_name)
    assert done.returncode == 0, done.stderr
    assert read_written_rows(table) == ROWS
    assert b"--format csv|json" in run_with_input(content, "write", table.location, "-").stderr
    twice = run_with_input(content, "write", table.location, "-", "-", "--format", format_name)
    assert b"only once" in twice.stderr
    assert len(table.snapshots()) == 1


def test_columns_are_read_from_any_file(table: paimon.Table, capsys: pytest.CaptureFixture[str]) -> None:
    Path("rows.data.gz").write_bytes(gzip.compress(CSV))
    run(capsys, "create", "lake/db.db/like", "--like", "rows.data.gz", "--format", "csv")
    assert paimon.open_table("lake/db.db/like").arrow_schema.names == ["id", "name"]  # type: ignore[union-attr]
    done = run_with_input(JSON, "create", "lake/db.db/piped", "--like", "-", "--format", "json")
    assert done.returncode == 0, done.stderr
    message = run(capsys, "create", "lake/db.db/x", "--columns", "id INT", "--format", "csv", code=1)
    assert "Option --format needs --like" in message


def test_values_that_do_not_fit_leak_no_classes(table: paimon.Table, capsys: pytest.CaptureFixture[str]) -> None:
    Path("rows.jsonl").write_text('{"id": "many"}\n')
    message = run(capsys, "write", table.location, "rows.jsonl", code=1)
    assert "'many' is not a valid INT" in message
    assert "give a whole number" in message
    assert "class" not in message


# Names that are not there.


def test_a_missing_branch_is_not_a_missing_table(table: paimon.Table, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(paimon.NotFound, match="Branch 'dev' does not exist") as none:
        paimon.open_table(f"{table.location}$branch_dev")
    assert none.value.hint == f"table {table.location!r} has only the branch 'main'"
    table.branches.create("devel")
    assert "did you mean 'devel'?" in run(capsys, "cat", table.location, "--branch", "devl", code=1)
    with pytest.raises(paimon.NotFound, match=r"Tables in .* are: t"):
        paimon.open_table("lake/db.db/none", {"branch": "dev"})


def test_a_missing_warehouse_is_not_an_empty_one(tmp_path: Path) -> None:
    catalog = paimon.connect(tmp_path / "new")
    with pytest.raises(paimon.NotFound, match=r"Warehouse .* does not exist\. .*create_database"):
        catalog.databases()
    with pytest.raises(paimon.NotFound):
        catalog.create_table("db.t", "id INT")
    catalog.create_database("db", exist_ok=True)
    assert catalog.databases() == ["db"]
    catalog.drop_database("db")
    assert catalog.databases() == []
    assert paimon.connect(tmp_path / "rows", metastore="jdbc").databases() == []


# Following, and the second name.


def test_follow_reports_its_delay(table: paimon.Table, capsys: pytest.CaptureFixture[str]) -> None:
    table.write([{"id": 1}])
    lines = on_terminal(["follow", table.location, "--from", "earliest", "--interval", "20 ms", "--until", "1"])
    assert lines[0] == "looking for new snapshots every 0.02 s (--interval); Ctrl-C ends"
    assert '"id": 1' in lines[1]
    usual = on_terminal(["follow", table.location, "--from", "earliest", "--until", "1"])
    assert usual[0].startswith("looking for new snapshots every 10 s")
    with pytest.raises(SystemExit):
        run(capsys, "follow", "--help")
    assert "10 s" in capsys.readouterr().out
    assert "continuous.discovery-interval" in run(capsys, "follow", table.location, "--interval", "soon", code=1)


def test_the_command_has_a_name_of_its_own() -> None:
    scripts = tomllib.loads((Path(HOME) / "pyproject.toml").read_text())["project"]["scripts"]
    assert scripts["paimon-lake"] == scripts["paimon"] == "paimon.cli.main:main"
