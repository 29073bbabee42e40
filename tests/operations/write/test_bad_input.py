"""Bad input: each a typed error that names the cause, from the API and the command line. No data is lost.

Every damage is applied to a copy of a valid table. Earlier rows stay, and no partial commit becomes visible.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.case_lists import mark_products
from support.consistent_damage import update_recorded_sizes

import paimon
from paimon.adapters.formats.records import AvroRecordIO
from paimon.cli.main import main
from paimon.domain.errors import CorruptTable, InvalidRequest, NotFound, PaimonError, StorageError, Unsupported
from paimon.domain.manifest.avro_schema import MANIFEST_ENTRY

RECORDS = AvroRecordIO()
FORMATS = ["parquet", "orc", "avro"]
DDL = "k INT NOT NULL, s STRING, d DECIMAL(10, 2), a ARRAY<INT>, r ROW<x INT>, f DOUBLE"


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One table a format: two commits each."""
    catalog = paimon.connect(tmp_path_factory.mktemp("sound"))
    catalog.create_database("db")
    return {name: _create_table(catalog, name) for name in FORMATS}


def _create_table(catalog: paimon.Catalog, name: str) -> Path:
    options = {"bucket": 1, "file.format": name, "write-only": True}
    table = catalog.create_table(f"db.{name}", DDL, primary_keys=["k"], options=options)
    for start in (0, 20):
        rows = range(start, start + 30)
        table.write([{"k": i, "s": f"s{i}", "d": i, "a": [i, None], "r": {"x": i}, "f": i / 2} for i in rows])
    return Path(table.location)


@pytest.fixture
def table(sound: dict[str, Path], tmp_path: Path) -> Path:
    """A copy that may be damaged."""
    return Path(shutil.copytree(sound["parquet"], tmp_path / "table"))


def files(table: Path, kind: str) -> list[Path]:
    """The files of a kind, oldest first."""
    found = {
        "schema": list((table / "schema").glob("schema-*")),
        "snapshot": list((table / "snapshot").glob("snapshot-*")),
        "manifest list": list((table / "manifest").glob("manifest-list-*")),
        "manifest": [p for p in (table / "manifest").glob("manifest-*") if "list" not in p.name],
        "data file": list((table / "bucket-0").glob("data-*")),
    }[kind]
    return sorted((p for p in found if p.is_file()), key=lambda p: p.stat().st_mtime_ns)


def rows(table: Path, **arguments: Any) -> pa.Table:
    opened = paimon.open_table(table)
    assert isinstance(opened, paimon.Table)
    return opened.scan(**arguments).to_arrow()


def write(table: Path, data: Any) -> None:
    opened = paimon.open_table(table)
    assert isinstance(opened, paimon.Table)
    opened.write(data, missing_columns="null")


def refused_alike(capsys: pytest.CaptureFixture[str], table: Path, named: str, error: type[PaimonError]) -> PaimonError:
    """The read fails from the API and from the command line, with the same message, which names the damaged object."""
    with pytest.raises(error) as caught:
        rows(table)
    assert named in caught.value.message
    assert main(["cat", str(table), "--output", "json"]) == 1
    printed = capsys.readouterr().err
    assert caught.value.message in printed
    assert "Traceback" not in printed
    return caught.value


# Missing, truncated and replaced files.


def _cut_file(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _overwrite_magic(path: Path) -> None:
    """Avro has its magic at the head, Parquet and ORC at the tail."""
    path.write_bytes(b"\x00\x01\x02\x03" + path.read_bytes()[4:-4] + b"\x00\x01\x02\x03")


DAMAGES: dict[str, Callable[[Path], object]] = {
    "missing": Path.unlink,
    "empty": lambda p: p.write_bytes(b""),
    "cut in half": _cut_file,
    "wrong magic": _overwrite_magic,
    "another format": lambda p: p.write_bytes(b"PK\x03\x04 nothing of ours" * 9),
}


@pytest.mark.parametrize(("damage", "kind"), mark_products(DAMAGES, ["manifest list", "manifest"]))
def test_damaged_manifests_are_named(table: Path, kind: str, damage: str, capsys: pytest.CaptureFixture[str]) -> None:
    victim = files(table, kind)[-1]
    DAMAGES[damage](victim)
    refused_alike(capsys, table, victim.name, CorruptTable)


@pytest.mark.parametrize("damage", [d for d in DAMAGES if d != "missing"])
@pytest.mark.parametrize("kind", ["schema", "snapshot"])
def test_damaged_schemas_and_snapshots_are_named(
    table: Path, kind: str, damage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    victim = files(table, kind)[-1]
    DAMAGES[damage](victim)
    refused_alike(capsys, table, victim.name, CorruptTable)


@pytest.mark.parametrize(("damage", "data_format"), mark_products(DAMAGES, FORMATS))
def test_damaged_data_files_are_named(
    sound: dict[str, Path], tmp_path: Path, data_format: str, damage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    table = Path(shutil.copytree(sound[data_format], tmp_path / "table"))
    victim = files(table, "data file")[-1]
    DAMAGES[damage](victim)
    refused_alike(capsys, table, victim.name, CorruptTable)


def test_a_missing_snapshot_lists_the_existing_ones(table: Path) -> None:
    files(table, "snapshot")[0].unlink()
    with pytest.raises(NotFound, match="Available are 2 to 2"):
        rows(table, snapshot=1)
    assert rows(table).num_rows == 50


def test_a_table_without_schema_is_no_table(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files(table, "schema")[0].unlink()
    error = refused_alike(capsys, table, str(table), NotFound)
    assert error.hint is not None


@pytest.mark.parametrize("hint", [b"", b"1", b"0", b"99", b"-8", b"two", b"\xff\xfe", b"9" * 40])
def test_hints_are_only_hints(table: Path, hint: bytes) -> None:
    for name in ("LATEST", "EARLIEST"):
        (table / "snapshot" / name).write_bytes(hint)
    assert rows(table).num_rows == 50
    write(table, [{"k": 1000}])
    assert rows(table).num_rows == 51
    assert len(files(table, "snapshot")) == 3
    for name in ("LATEST", "EARLIEST"):
        (table / "snapshot" / name).unlink(missing_ok=True)
    assert rows(table).num_rows == 51


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_mutated_files_give_a_result_or_a_typed_error(
    sound: dict[str, Path], tmp_path: Path, data: st.DataObject
) -> None:
    """After changes of any bytes, only our own errors are raised, and intact data stays readable."""
    data_format = data.draw(st.sampled_from(FORMATS))
    kind = data.draw(st.sampled_from(["schema", "snapshot", "manifest list", "manifest", "data file"]))
    table = tmp_path / "mutated"
    shutil.rmtree(table, ignore_errors=True)
    shutil.copytree(sound[data_format], table)
    victim = data.draw(st.sampled_from(files(table, kind)))
    content = bytearray(victim.read_bytes())
    start = data.draw(st.integers(0, len(content) - 1))
    content[start : start + data.draw(st.integers(0, 4))] = data.draw(st.binary(max_size=6))
    victim.write_bytes(bytes(content))
    for attempt in (
        lambda: rows(table),
        lambda: rows(table, columns=["k"], where="k > 10 AND s <> 'x'"),
        lambda: paimon.open_table(f"{table}$files").scan().to_arrow(),
        lambda: write(table, [{"k": 1}]),
    ):
        try:
            attempt()
        except PaimonError as error:
            assert error.message


# Commits on damaged tables.


@pytest.mark.parametrize("kind", ["snapshot", "manifest list", "schema"])
def test_a_commit_on_a_damaged_table_has_no_visible_effect(table: Path, kind: str) -> None:
    victim = files(table, kind)[-1]
    original = victim.read_bytes()
    DAMAGES["cut in half"](victim)
    before = {p.name for p in files(table, "snapshot")}
    with pytest.raises(CorruptTable, match=victim.name):
        write(table, [{"k": 1000}])
    assert {p.name for p in files(table, "snapshot")} == before
    victim.write_bytes(original)
    assert rows(table).num_rows == 50
    write(table, [{"k": 1000}])
    assert rows(table).num_rows == 51


# Contents that contradict.


def _rewrite_manifest(manifest: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """The records of a manifest, changed."""
    records = list(RECORDS.read_records(manifest.read_bytes(), str(manifest)))
    for record in records:
        change(record)
    manifest.write_bytes(RECORDS.write_records(records, MANIFEST_ENTRY, "zstd", "avro"))
    update_recorded_sizes(manifest.parents[1])


@pytest.mark.parametrize("name", ["../../outside.parquet", "/etc/passwd", "a/b.parquet", "..", ""])
def test_a_manifest_cannot_name_a_file_elsewhere(table: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = files(table, "manifest")[-1]
    _rewrite_manifest(manifest, lambda entry: entry["_FILE"].update(_FILE_NAME=name))
    shutil.copy(files(table, "data file")[0], table.parent / "outside.parquet")
    refused_alike(capsys, table, "manifest", CorruptTable)


def test_external_paths_need_the_callers_leave(table: Path, tmp_path: Path) -> None:
    outside = tmp_path / "elsewhere"
    outside.mkdir()
    names = {p.name for p in files(table, "data file")}
    for path in files(table, "data file"):
        shutil.move(path, outside / path.name)
    for manifest in files(table, "manifest"):
        _rewrite_manifest(manifest, lambda e: e["_FILE"].update(_EXTERNAL_PATH=f"{outside}/{e['_FILE']['_FILE_NAME']}"))
    with pytest.raises(CorruptTable, match=r"outside the table.*allowed_roots") as caught:
        rows(table)
    assert any(name in caught.value.message for name in names)
    allowed = paimon.open_table(table, allowed_roots=[str(outside)])
    assert allowed.scan().count() == 50
    for manifest in files(table, "manifest"):
        _rewrite_manifest(manifest, lambda e: e["_FILE"].update(_EXTERNAL_PATH=f"{outside}/../elsewhere/x.parquet"))
    with pytest.raises(CorruptTable, match="outside the table"):
        paimon.open_table(table, allowed_roots=[str(outside)]).scan().to_arrow()


@pytest.mark.parametrize("member", ["baseManifestList", "deltaManifestList"])
def test_a_snapshot_cannot_name_a_list_elsewhere(table: Path, member: str, capsys: pytest.CaptureFixture[str]) -> None:
    latest = files(table, "snapshot")[-1]
    stored = json.loads(latest.read_bytes())
    latest.write_text(json.dumps(stored | {member: "../schema/schema-0"}))
    refused_alike(capsys, table, "../schema/schema-0", CorruptTable)


def test_unknown_versions_are_refused_by_name(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for kind in ("snapshot", "schema"):
        victim = files(table, kind)[-1]
        stored = victim.read_bytes()
        victim.write_text(json.dumps(json.loads(stored) | {"version": 99}))
        refused_alike(capsys, table, "99", Unsupported)
        victim.write_bytes(stored)


def test_a_snapshot_of_another_id_is_corrupt(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copy(table / "snapshot" / "snapshot-1", table / "snapshot" / "snapshot-2")
    refused_alike(capsys, table, "snapshot-2", CorruptTable)


# Values of callers.


def test_paths_and_names_that_are_no_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("x")
    for path in (tmp_path, tmp_path / "nothing", tmp_path / "file"):
        refused_alike(capsys, path, str(path), PaimonError)
    with pytest.raises(NotFound, match="contains schema/schema-0"):
        paimon.open_table(tmp_path)
    catalog = paimon.connect(tmp_path / "lake")
    catalog.create_database("db")
    for name in ("db.a/b", "db...", "../db.t", "db.", ".t", "t", "db.t/../../x", "db.a\\b", "db.a\x00b", "/etc.t"):
        for attempt in (catalog.table, lambda n: catalog.create_table(n, "x INT"), catalog.drop_table):
            with pytest.raises((InvalidRequest, NotFound)):
                attempt(name)
    for name in ("a/b", "..", "", "sys", "a\nb"):
        with pytest.raises(InvalidRequest):
            catalog.create_database(name)
    assert {p.name for p in tmp_path.iterdir()} == {"file", "lake"}
    assert main(["create", "db.x/../../y", "--columns", "x INT", "-w", str(tmp_path / "lake")]) == 1
    assert "is not in a database directory" in capsys.readouterr().err


def test_data_of_another_shape_shows_both_schemas(table: Path, tmp_path: Path, capsys: Any) -> None:
    wrong = pa.table({"k": pa.array([1], pa.int32()), "s": [b"\xff"], "amount": [1.5], "f": [[1]]})
    with pytest.raises(InvalidRequest) as caught:
        write(table, wrong)
    message = caught.value.message
    for part in ("table", "data", "s STRING", "binary", "amount double", "f DOUBLE", "list<"):
        assert part in message
    assert "k INT" not in message
    pq.write_table(wrong, tmp_path / "wrong.parquet")
    assert main(["write", str(table), str(tmp_path / "wrong.parquet")]) == 1
    printed = capsys.readouterr().err
    assert "s STRING" in printed
    assert "amount double" in printed
    assert len(files(table, "snapshot")) == 2


@pytest.mark.parametrize(
    ("data", "named"),
    [
        ([{"k": None, "s": "x"}], "k"),
        ([{"s": "x"}], "k"),
        (pa.table({"k": pa.array([1, None], pa.int32())}), "k"),
        ([{"k": 2**40}], "k"),
        ([{"k": 1, "d": "123456789.00"}], "d"),
        ([{"k": 1, "colour": "red"}], "colour"),
    ],
    ids=["null key", "no key", "null among keys", "too large", "too long", "unknown column"],
)
def test_impossible_values_are_refused_completely(table: Path, data: Any, named: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        write(table, data)
    assert named in caught.value.message
    assert caught.value.subject == named
    assert len(files(table, "snapshot")) == 2
    assert len(files(table, "data file")) == 2


def test_unknown_columns_name_the_nearest(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    opened = paimon.open_table(table)
    for ask in ({"columns": ["kk"]}, {"where": "kk > 1"}, {"where": paimon.col("kk") == 1}):
        with pytest.raises(InvalidRequest, match="Did you mean 'k'"):
            opened.scan(**ask).to_arrow()
    for arguments in (["--columns", "kk"], ["--where", "kk = 1"]):
        assert main(["cat", str(table), *arguments]) == 1
        assert "hint: did you mean 'k'?" in capsys.readouterr().err


@pytest.mark.parametrize(
    "where", ["k >", "k = 'x'", "k + 1", "SELECT 1", "k = 1; DROP TABLE t", "k LIKE 3", "a = 1", ""]
)
def test_predicates_that_cannot_be_are_refused(table: Path, where: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(Unsupported if where == "SELECT 1" else InvalidRequest):
        rows(table, where=where)
    assert main(["cat", str(table), "--where", where]) == 1
    assert "Traceback" not in capsys.readouterr().err


def test_another_bucket_count_is_refused(table: Path) -> None:
    opened = paimon.open_table(table, {"bucket": 3})
    assert isinstance(opened, paimon.Table)
    with pytest.raises(PaimonError, match="bucket") as caught:
        opened.write([{"k": 1}], missing_columns="null")
    assert caught.value.hint is not None
    assert len(files(table, "snapshot")) == 2
    assert rows(table).num_rows == 50


def test_options_that_cannot_be_are_refused_with_the_nearest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("db")
    for options, expected_text in (
        ({"buckett": 1}, "Did you mean 'bucket'"),
        ({"bucket": "many"}, "bucket"),
        ({"bucket": -7}, "bucket"),
    ):
        with pytest.raises(InvalidRequest, match=expected_text):
            catalog.create_table("db.t", "k INT NOT NULL", primary_keys=["k"], options=options)
    with pytest.raises(InvalidRequest, match="'kk'"):
        catalog.create_table("db.t", "k INT NOT NULL", primary_keys=["kk"], options={"bucket": 1})
    with pytest.raises(InvalidRequest, match="INTT"):
        catalog.create_table("db.t", "k INTT")
    assert catalog.tables("db") == []
    assert main(["create", f"{tmp_path}/db.db/t", "--columns", "k INT", "--option", "buckett=1"]) == 1
    assert "hint: did you mean 'bucket'?" in capsys.readouterr().err


def test_a_read_only_place_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "lake").write_text("a file where a warehouse should be")
    with pytest.raises((StorageError, NotFound, InvalidRequest)):
        paimon.connect(tmp_path / "lake").create_database("db")
