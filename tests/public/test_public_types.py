"""What type checkers and users find: types of the public functions, alternative names, and Python's errors."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import paimon
from paimon.domain.row.literals import parse_literal
from paimon.domain.types.data_types import IntType
from paimon.domain.types.type_text import parse_type
from paimon.system_table import SystemTable

ROOT = Path(__file__).resolve().parents[2]

USER_CODE = """
from typing import assert_type

import pyarrow as pa

import paimon
from paimon import Catalog, SystemTable, Table, WriteResult, col

catalog = paimon.connect("lake")
assert_type(catalog, Catalog)
assert_type(paimon.open_table("lake/d.db/t"), Table)
assert_type(paimon.open_table("lake/d.db/t").write([{"id": 1}]), WriteResult)
assert_type(catalog.table("d.t"), Table)
assert_type(catalog.open("d.t").write([{"id": 1}]), WriteResult)
assert_type(catalog.load_table("d.t").delete(where=col("id").between(1, 3) & ~(col("id") == 2)), WriteResult)
assert_type(catalog.list_databases() + catalog.list_tables("d"), list[str])
assert_type(paimon.open_system_table("lake/d.db/t$files"), SystemTable)
assert_type(catalog.system_table("d.t$files"), SystemTable)
assert_type(catalog.table("d.t").schema, pa.Schema)
assert_type(catalog.table("d.t").alter("ADD COLUMN x INT", paimon.DropColumn("y")), Table)
assert_type(catalog.table("d.t").add_column("x", "INT", after="y").set_options({"bucket": 4}), Table)
"""
WRONG_CODE = """
import paimon

paimon.open_system_table("lake/d.db/t$files").write([{"id": 1}])
paimon.opentable("lake/d.db/t")
"""


@pytest.fixture
def catalog(tmp_path: Path) -> paimon.Catalog:
    catalog = paimon.connect(tmp_path / "lake")
    catalog.create_database("d")
    catalog.create_table("d.t", "id INT, name STRING").write([{"id": 1, "name": "a"}])
    return catalog


def check_types(code: str, place: Path) -> subprocess.CompletedProcess[str]:
    (place / "user_code.py").write_text(code)
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", str(ROOT / "pyproject.toml")]
    command += ["--cache-dir", str(ROOT / ".mypy_cache"), str(place / "user_code.py")]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_user_code_passes_a_strict_type_checker(tmp_path: Path) -> None:
    done = check_types(USER_CODE, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    done = check_types(WRONG_CODE, tmp_path)
    assert 'has no attribute "write"' in done.stdout and 'has no attribute "opentable"' in done.stdout


def test_system_tables_open_by_every_function(catalog: paimon.Catalog) -> None:
    path = f"{catalog.warehouse}/d.db/t$snapshots"
    opened = [catalog.table("d.t$snapshots"), catalog.open("d.t$snapshots"), catalog.load_table("d.t$snapshots")]
    opened += [paimon.open_table(path), catalog.system_table("d.t$snapshots"), paimon.open_system_table(path)]  # type: ignore[list-item]
    for table in opened:
        assert isinstance(table, SystemTable)
        assert table.scan(columns=["snapshot_id"]).to_arrow().to_pylist() == [{"snapshot_id": 1}]
        assert table.schema == table.scan().schema == table.arrow_schema
    with pytest.raises(paimon.InvalidRequest, match="is not the name of a system table"):
        catalog.system_table("d.t")
    with pytest.raises(paimon.InvalidRequest, match="is not the name of a system table"):
        paimon.open_system_table(f"{catalog.warehouse}/d.db/t")


def test_a_system_table_refuses_writes(catalog: paimon.Catalog) -> None:
    files = catalog.table("d.t$files")
    with pytest.raises(AttributeError, match=r"'d\.t\$files' is read-only and has no 'write'\. Open 'd\.t'"):
        files.write([{"id": 2}])
    assert not hasattr(files, "compact")
    copied, travelled = copy.copy(files), pickle.loads(pickle.dumps(files))
    assert copied.scan().count() == travelled.scan().count() == 1


def test_names_that_people_guess(catalog: paimon.Catalog) -> None:
    table = catalog.load_table("d.t", {"scan.snapshot-id": 1})
    assert table.name == catalog.table("d.t").name and table.options["scan.snapshot-id"] == "1"
    assert catalog.list_databases() == catalog.databases() == ["d"]
    assert catalog.list_tables("d") == catalog.tables("d") == ["t"]
    assert table.schema == table.arrow_schema == table.scan().schema


def test_errors_are_subclasses_of_builtin_errors(catalog: paimon.Catalog) -> None:
    with pytest.raises(ValueError, match="Table name 't' is not valid"):
        catalog.table("t")
    with pytest.raises(LookupError, match="Did you mean 't'"):
        catalog.table("d.tt")
    for kind in (paimon.InvalidRequest("a message"), paimon.NotFound("table", "t")):
        again = pickle.loads(pickle.dumps(kind))
        assert str(again) == str(kind) and again.__dict__ == kind.__dict__
    assert not issubclass(paimon.CorruptTable, ValueError | LookupError)
    assert not issubclass(paimon.StorageError, ValueError | LookupError)


def test_error_conversion_passes_our_errors_unchanged(catalog: paimon.Catalog) -> None:
    """InvalidRequest is a ValueError: a handler of ValueError must not hide its message."""
    with pytest.raises(paimon.InvalidRequest, match="'BIGIN' is not a type"):
        parse_type("ARRAY<MAP<INT, BIGIN>>")
    with pytest.raises(paimon.InvalidRequest, match="no_such_function"):
        catalog.table("d.t").scan(where="no_such_function(name) = 'A'").to_arrow()
    with pytest.raises(paimon.InvalidRequest, match="Did you mean 'name'"):
        catalog.table("d.t").write(catalog.table("d.t").scan(columns=["nam"]))
    with pytest.raises(paimon.InvalidRequest, match="is not a valid INT"):
        parse_literal("x", IntType())
