"""Bad input to the Python interface and the command line: a typed error names the object and what to do."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from attrs import frozen
from support.consistent_damage import avro_file, avro_records, update_recorded_sizes

import paimon
from paimon.cli.main import main
from paimon.domain.errors import AlreadyExists, CommitConflict, CorruptTable, InvalidRequest, NotFound, PaimonError

ROWS = [{"k": i, "v": f"v{i}", "d": None} for i in range(10)]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    catalog = paimon.connect(tmp_path / "lake")
    catalog.create_database("d")
    options = {"bucket": "2", "write-only": "true"}
    table = catalog.create_table(
        "d.t", "k INT NOT NULL, v STRING, d DECIMAL(10, 2)", primary_keys=["k"], options=options
    )
    table.write(ROWS)
    return tmp_path / "lake" / "d.db" / "t"


def find_file(root: Path, pattern: str) -> Path:
    return sorted(p for p in root.glob(pattern) if p.is_file() and "list" not in p.name.replace(pattern, ""))[0]


def data_file(root: Path) -> Path:
    return find_file(root, "bucket-*/data-*")


def manifest(root: Path) -> Path:
    return find_file(root, "manifest/manifest-[0-9a-f]*-0")


def edited_manifest(root: Path, edit: Callable[[dict[str, Any]], None]) -> Path:
    """The manifest, of which the first entry is another; all sizes agree."""
    path = manifest(root)
    schema, records = avro_records(path.read_bytes())
    edit(records[0])
    path.write_bytes(avro_file(schema, records))
    update_recorded_sizes(root)
    return path


def edited_json(path: Path, **members: object) -> Path:
    path.write_text(json.dumps(json.loads(path.read_text()) | members))
    return path


def cut_file(path: Path) -> Path:
    path.write_bytes(path.read_bytes()[:-20])
    return path


def flip_bit(path: Path) -> Path:
    """One bit of a block or page is another one."""
    data = bytearray(path.read_bytes())
    place = len(data) // 3
    if data.endswith(b"PAR1"):
        chunk = pq.read_metadata(path).row_group(0).column(3)
        place = chunk.data_page_offset + chunk.total_compressed_size - 10
    data[place] ^= 0x10
    path.write_bytes(bytes(data))
    return path


def remove_file(path: Path) -> Path:
    path.unlink()
    return path


def overwrite_magic(path: Path) -> Path:
    data = path.read_bytes()
    path.write_bytes(b"XXXX" + data[4:-4] + b"XXXX")
    return path


@frozen
class Case:
    """The action, what the message contains next to the damaged object, and the error class."""

    damage: Callable[[Path], Path]
    error: type[PaimonError]
    message: str


def _names_outside(entry: dict[str, Any]) -> None:
    entry["_FILE"]["_FILE_NAME"] = "../../../precious"


def _lies_outside(entry: dict[str, Any]) -> None:
    entry["_FILE"]["_EXTERNAL_PATH"] = "/etc/passwd"


def _negative(entry: dict[str, Any]) -> None:
    entry["_FILE"]["_ROW_COUNT"] = -5


def _newer(entry: dict[str, Any]) -> None:
    entry["_FILE"]["_SCHEMA_ID"] = 77


DAMAGED = {
    "data file missing": Case(lambda r: remove_file(data_file(r)), CorruptTable, "does not exist"),
    "data file cut": Case(lambda r: cut_file(data_file(r)), CorruptTable, "bytes"),
    "data file of another magic": Case(lambda r: overwrite_magic(data_file(r)), CorruptTable, "Parquet"),
    "data file flipped": Case(lambda r: flip_bit(data_file(r)), CorruptTable, "Parquet"),
    "manifest missing": Case(lambda r: remove_file(manifest(r)), CorruptTable, "does not exist"),
    "manifest cut": Case(lambda r: cut_file(manifest(r)), CorruptTable, "bytes"),
    "manifest of another magic": Case(lambda r: overwrite_magic(manifest(r)), CorruptTable, "magic"),
    "manifest flipped": Case(lambda r: flip_bit(manifest(r)), CorruptTable, "Avro"),
    "manifest names a file outside": Case(lambda r: edited_manifest(r, _names_outside), CorruptTable, "precious"),
    "external path outside": Case(lambda r: edited_manifest(r, _lies_outside), CorruptTable, "allowed_roots"),
    "negative row count": Case(lambda r: edited_manifest(r, _negative), CorruptTable, "out of range"),
    "snapshot cut": Case(lambda r: cut_file(r / "snapshot" / "snapshot-1"), CorruptTable, "JSON"),
    "snapshot of another id": Case(
        lambda r: edited_json(r / "snapshot" / "snapshot-1", id=5), CorruptTable, "contains snapshot 5"
    ),
    "schema cut": Case(lambda r: cut_file(r / "schema" / "schema-0"), CorruptTable, "JSON"),
    "schema of a newer version": Case(
        lambda r: edited_json(r / "schema" / "schema-0", version=9), PaimonError, "version 9"
    ),
    "snapshot of a newer version": Case(
        lambda r: edited_json(r / "snapshot" / "snapshot-1", version=9), PaimonError, "version 9"
    ),
    "snapshot names a list outside": Case(
        lambda r: edited_json(r / "snapshot" / "snapshot-1", deltaManifestList="../../x"), PaimonError, "../../x"
    ),
    "files of a schema that is not there": Case(lambda r: edited_manifest(r, _newer), NotFound, "schema-77"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_tables(root: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    case = DAMAGED[name]
    path = case.damage(root)
    with pytest.raises(case.error) as caught:
        paimon.open_table(root).scan().to_arrow()
    named = ("schema-77",) if "not there" in name else (path.name, "../../x", "/etc/passwd")
    assert any(part in str(caught.value) for part in named)
    assert case.message in str(caught.value)
    assert caught.value.hint
    message = run_failing_command(capsys, "cat", str(root))
    assert case.message in message
    assert any(part in message for part in named)


@pytest.mark.parametrize("left", [0, 1, 5, -1])
def test_an_index_file_that_is_cut(root: Path, left: int, capsys: pytest.CaptureFixture[str]) -> None:
    table = paimon.connect(root.parent.parent).create_table(
        "d.v",
        "k INT NOT NULL, v STRING",
        primary_keys=["k"],
        options={"bucket": "1", "deletion-vectors.enabled": "true"},
    )
    table.write([{"k": i, "v": "a"} for i in range(20)])
    table.write([{"k": i, "v": "b"} for i in range(5)])
    place = root.parent / "v"
    (index,) = (place / "index").iterdir()
    index.write_bytes(index.read_bytes()[:left])
    with pytest.raises(CorruptTable, match=index.name):
        paimon.open_table(place).scan().to_arrow()
    assert index.name in run_failing_command(capsys, "cat", str(place))


def run_failing_command(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Run a command that fails; return its output: a sentence and a hint, no traceback."""
    assert main(list(arguments)) == 1
    printed = capsys.readouterr()
    lines = [line for line in printed.err.splitlines() if line.strip()]
    assert lines[0].startswith("paimon: ")
    assert all(line.startswith("hint: ") for line in lines[1:]) or "column" in printed.err
    assert "Traceback" not in printed.err
    return printed.err


REQUESTS: dict[str, tuple[Callable[[paimon.Table], object], list[str], type[PaimonError], str]] = {
    "unknown column": (lambda t: t.scan(["vv"]).to_arrow(), ["cat", "T", "--columns", "vv"], InvalidRequest, "'v'"),
    "unknown column in a predicate": (
        lambda t: t.scan(where="kk > 1").to_arrow(), ["cat", "T", "--where", "kk > 1"], InvalidRequest, "'k'"
    ),
    "no predicate": (
        lambda t: t.scan(where="k >").to_arrow(), ["cat", "T", "--where", "k >"], InvalidRequest, "k >"
    ),
    "a literal of another type": (
        lambda t: t.scan(where="k = 'x'").to_arrow(), ["cat", "T", "--where", "k = 'x'"], InvalidRequest, "'x'"
    ),
    "no such snapshot": (
        lambda t: t.scan(snapshot=99).to_arrow(), ["cat", "T", "--snapshot", "99"], NotFound, "are 1 to 1"
    ),
    "no such tag": (lambda t: t.scan(tag="x").to_arrow(), ["cat", "T", "--tag", "x"], NotFound, "Tag 'x'"),
    "no such consumer": (
        lambda t: t.consumers.delete("x"), ["consumer", "delete", "T", "x"], NotFound, "Consumer 'x'"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REQUESTS)
def test_requests(root: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    call, arguments, error, message = REQUESTS[name]
    with pytest.raises(error) as caught:
        call(paimon.open_table(root))
    assert message in str(caught.value)
    assert message in run_failing_command(capsys, *(str(root) if a == "T" else a for a in arguments))


WRITES: dict[str, tuple[pa.Table, tuple[str, ...]]] = {
    "a null in the key": (pa.table({"k": pa.array([1, None], pa.int32()), "v": ["a", "b"], "d": [None, None]}), ("k",)),
    "a type that does not fit": (
        pa.table({"k": ["one"], "v": ["a"], "d": pa.nulls(1)}), ("k", "INT NOT NULL", "string")
    ),
    "a number out of range": (pa.table({"k": pa.array([2**40], pa.int64()), "v": ["a"], "d": pa.nulls(1)}), ("k",)),
    "a decimal that loses digits": (pa.table({"k": [1], "v": ["a"], "d": [1.23456]}), ("d",)),
    "an unknown column": (pa.table({"k": [1], "v": ["a"], "d": pa.nulls(1), "w": [1]}), ("w",)),
    "a missing key": (pa.table({"v": ["a"], "d": pa.nulls(1)}), ("k",)),
}  # fmt: skip


@pytest.mark.parametrize("name", WRITES)
def test_writes(root: Path, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows, message = WRITES[name]
    table = paimon.open_table(root)
    before = sorted(p for p in root.rglob("*") if p.is_file())
    with pytest.raises(InvalidRequest) as caught:
        table.write(rows)
    assert all(part in str(caught.value) for part in message)
    source = tmp_path / "rows.parquet"
    pq.write_table(rows, source)
    error_text = run_failing_command(capsys, "write", str(root), str(source))
    assert all(part in error_text for part in message)
    assert sorted(p for p in root.rglob("*") if p.is_file()) == before
    assert table.scan().to_arrow().num_rows == len(ROWS)


def test_a_bucket_count_that_differs(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edited = json.loads((root / "schema" / "schema-0").read_text())
    edited["options"]["bucket"] = "5"
    (root / "schema" / "schema-0").write_text(json.dumps(edited))
    before = sorted(p for p in root.rglob("*") if p.is_file())
    with pytest.raises((CommitConflict, InvalidRequest), match=r"2 buckets.* 5|bucket") as caught:
        paimon.open_table(root).write(ROWS)
    assert caught.value.hint
    source = tmp_path / "rows.jsonl"
    source.write_text('{"k": 1, "v": "a", "d": null}\n')
    assert "bucket" in run_failing_command(capsys, "write", str(root), str(source))
    assert sorted(p for p in root.rglob("*") if p.is_file()) == before


@pytest.mark.parametrize("place", ["snapshot/snapshot-1", "schema/schema-0", "snapshot/LATEST"])
def test_a_file_that_is_one_large_hole(root: Path, place: str) -> None:
    with (root / place).open("r+b") as file:
        file.truncate(1 << 40)
    if place.endswith("LATEST"):  # an unreadable hint is ignored
        assert paimon.open_table(root).scan().to_arrow().num_rows == len(ROWS)
        return
    with pytest.raises(PaimonError, match=place.rpartition("/")[2]):
        paimon.open_table(root).scan().to_arrow()


PLACES = {
    "a directory that is no table": lambda r: r.parent,
    "a directory of a table": lambda r: r / "snapshot",
    "a file": lambda r: data_file(r),
    "nothing": lambda r: r.parent / "nothing",
    "path parts": lambda r: r / ".." / ".." / "..",
    "a bad suffix": lambda r: f"{r}$branch_../x",
    "no such branch": lambda r: f"{r}$branch_x",
    "no such system table": lambda r: f"{r}$snapshotss",
    "an unknown scheme": lambda r: "nosuch://x/y",
}


@pytest.mark.parametrize("place", PLACES)
def test_paths_that_are_no_table(root: Path, place: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(PLACES[place](root))
    with pytest.raises(PaimonError) as caught:
        paimon.open_table(path).scan().to_arrow()
    assert caught.value.hint, str(caught.value)
    run_failing_command(capsys, "cat", path)


@pytest.mark.parametrize("name", ["d.../x", "d.a/b", "../d.t", "d", "d.", ".t", "d.t$a$b$c", "d\0.t"])
def test_table_names_with_path_parts(root: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    warehouse = root.parent.parent
    catalog = paimon.connect(warehouse)
    for call in (catalog.table, lambda n: catalog.create_table(n, "k INT"), catalog.drop_table):
        with pytest.raises((InvalidRequest, NotFound, AlreadyExists)):
            call(name)
    run_failing_command(capsys, "cat", name, "--warehouse", str(warehouse))


def test_an_invalid_warehouse(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("x")
    for place in ("file", "nothing"):
        run_failing_command(capsys, "ls", str(tmp_path / place))
