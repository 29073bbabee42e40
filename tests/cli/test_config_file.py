"""`paimon --config FILE`: the warehouse and the catalog options of a YAML file, as pypaimon's terminal reads them."""

from __future__ import annotations

from pathlib import Path

import pytest

import paimon
from paimon.cli.main import main


def run(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    assert main(arguments) == code
    printed = capsys.readouterr()
    return printed.err if code else printed.out


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PAIMON_WAREHOUSE", raising=False)
    monkeypatch.delenv("PAIMON_CATALOG", raising=False)


def make_lake(path: Path, database: str, **options: str) -> str:
    paimon.connect(str(path), **options).create_database(database)
    return str(path)


def write_config(tmp_path: Path, text: str) -> str:
    file = tmp_path / "paimon.yaml"
    file.write_text(text)
    return str(file)


def test_a_file_names_the_warehouse_and_the_catalog(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    uri = f"sqlite:///{tmp_path}/catalog.db"
    lake = make_lake(tmp_path / "lake", "shop", metastore="jdbc", uri=uri)
    config = write_config(tmp_path, f"metastore: jdbc\nuri: {uri}\nwarehouse: {lake}\nsync-all-properties: true\n")
    expected = '{"database": "shop", "tables": 0}\n'
    assert run(capsys, "-c", config, "db", "list", "-o", "json") == expected
    assert run(capsys, "--config", config, "sql", "-e", "SHOW DATABASES", "-o", "csv").split() == [
        '"database"',
        '"shop"',
    ]


def test_arguments_have_priority_over_the_file_and_the_file_over_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lakes = {name: make_lake(tmp_path / name, name) for name in ("argument", "file", "environment")}
    config = write_config(tmp_path, f"warehouse: {lakes['file']}\n")
    monkeypatch.setenv("PAIMON_WAREHOUSE", lakes["environment"])
    monkeypatch.setenv("PAIMON_CATALOG", "metastore=unknown")
    assert "file" in run(capsys, "-c", config, "db", "list")
    assert "argument" in run(capsys, "-c", config, "db", "list", "-w", lakes["argument"])
    assert "filesystem" not in run(capsys, "-c", config, "db", "list", "--catalog", "metastore=filesystem")
    assert "unknown" in run(capsys, "db", "list", code=1)
    monkeypatch.delenv("PAIMON_CATALOG")
    assert "environment" in run(capsys, "db", "list")
    empty = write_config(tmp_path, "metastore: filesystem\n")
    assert "environment" in run(capsys, "-c", empty, "db", "list")


def test_no_file_is_read_that_is_not_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_config(tmp_path, f"warehouse: {make_lake(tmp_path / 'lake', 'shop')}\n")
    monkeypatch.chdir(tmp_path)
    assert "needs a warehouse" in run(capsys, "db", "list", code=1)


@pytest.mark.parametrize("text", ["", "- a\n- b\n", "warehouse: [1, 2]\n", "warehouse: {a: b}\n", "a: b: c\n"])
def test_a_file_of_another_form_is_refused(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = write_config(tmp_path, text)
    assert "is not a YAML mapping of catalog options" in run(capsys, "-c", config, "db", "list", code=1)


def test_a_file_that_does_not_exist_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "missing.yaml" in run(capsys, "-c", str(tmp_path / "missing.yaml"), "db", "list", code=1)
