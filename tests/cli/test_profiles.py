"""`paimon.toml`: profiles with the settings of commands, and `paimon config`, which lists them with their origin."""

from __future__ import annotations

import json
import traceback
from pathlib import Path

import pytest
from support.command_line import run

import paimon
from paimon.engines import read_settings

FILE = """
default-profile = "dev"

[profiles.dev]
warehouse = "dev-lake"
threads = 2

[profiles.prod]
warehouse = "prod-lake"
metastore = "jdbc"
uri = "sqlite:///catalog.db"
"jdbc.password" = "hunter22"
sync-all-properties = true
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("WAREHOUSE", "CATALOG", "CONFIG", "PROFILE"):
        monkeypatch.delenv(f"PAIMON_{name}", raising=False)
    (tmp_path / "paimon.toml").write_text(FILE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def settings(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, tuple[str, str]]:
    lines = run(capsys, *arguments, "-o", "json").splitlines()
    return {r["name"]: (r["value"], r["origin"]) for r in map(json.loads, lines)}


def test_profiles_are_chosen_by_argument_environment_and_file(monkeypatch, capsys) -> None:
    dev = {"warehouse": ("dev-lake", "paimon.toml, profile dev"), "threads": ("2", "paimon.toml, profile dev")}
    assert settings(capsys, "-c", "paimon.toml", "config") == dev
    monkeypatch.setenv("PAIMON_CONFIG", "paimon.toml")
    monkeypatch.setenv("PAIMON_PROFILE", "prod")
    prod = settings(capsys, "config")
    assert prod["sync-all-properties"] == ("true", "paimon.toml, profile prod")
    assert prod["jdbc.password"][0] == "***"
    assert settings(capsys, "--profile", "dev", "config") == dev
    changed = settings(capsys, "--profile", "dev", "config", "-w", "mine", "--catalog", "threads=1")
    assert changed == {"warehouse": ("mine", "--warehouse"), "threads": ("1", "--catalog")}


def test_commands_use_the_profile(capsys) -> None:
    paimon.connect("dev-lake").create_database("shop")
    assert "shop" in run(capsys, "-c", "paimon.toml", "db", "list")


def test_the_environment_is_an_origin(monkeypatch, capsys) -> None:
    monkeypatch.setenv("PAIMON_WAREHOUSE", "s3://me:hunter22@bucket/lake")
    monkeypatch.setenv("PAIMON_CATALOG", "threads=3 jdbc.password=hunter22")
    found = settings(capsys, "config")
    assert found["threads"] == ("3", "PAIMON_CATALOG")
    assert found["warehouse"][1] == "PAIMON_WAREHOUSE"
    assert "hunter22" not in str(found)


def test_an_option_of_the_environment_needs_a_value(monkeypatch, capsys) -> None:
    monkeypatch.setenv("PAIMON_CATALOG", "jdbc.password=two hunter22")
    error = run(capsys, "config", code=1)
    assert error.startswith("paimon: A part of PAIMON_CATALOG has no '='")
    assert "hunter22" not in error


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a b", "File 'paimon.toml' is not TOML: "),
        ("color = 1", "File 'paimon.toml': key 'color' is not known"),
        ("[profiles.dev]", "File 'paimon.toml': no profile is chosen"),
        ("default-profile = 'de'\n[profiles.dev]", "File 'paimon.toml': profile 'de' does not exist"),
        ("default-profile = 1", "File 'paimon.toml': profile 1 does not exist"),
        ("default-profile = 'a'\nprofiles = 1", "File 'paimon.toml': profile 'a' does not exist"),
        ("default-profile = 'a'\nprofiles.a = 1", "File 'paimon.toml': key 'profiles.a' is not a value"),
        (
            "default-profile = 'a'\n[profiles.a]\njdbc.password = 'x'",
            "File 'paimon.toml': key 'profiles.a.jdbc' is not",
        ),
        ("default-profile = 'a'\n[profiles.a]\nx = []", "File 'paimon.toml': key 'profiles.a.x' is not a value"),
    ],
)
def test_a_bad_file_is_one_line_with_file_and_key(text: str, message: str, capsys) -> None:
    Path("paimon.toml").write_text(text)
    error = run(capsys, "-c", "paimon.toml", "config", code=1)
    assert error.startswith(f"paimon: {message}")
    assert len([line for line in error.splitlines() if not line.startswith("hint:")]) == 1


def test_a_profile_without_a_file_or_of_yaml_is_refused(capsys) -> None:
    assert "needs a file" in run(capsys, "--profile", "dev", "config", code=1)
    Path("a.yaml").write_text("warehouse: lake")
    assert "has no profiles" in run(capsys, "-c", "a.yaml", "--profile", "dev", "config", code=1)


def test_programs_use_the_settings_of_commands(monkeypatch, folder: Path) -> None:
    paimon.connect("dev-lake").create_database("shop")
    assert paimon.connect(config="paimon.toml").databases() == ["shop"]
    monkeypatch.setenv("PAIMON_CONFIG", "paimon.toml")
    catalog = paimon.connect(threads=3)
    assert (catalog.warehouse, catalog.options) == (str(folder / "dev-lake"), {"threads": "3"})
    prod = paimon.connect(profile="prod", sync_all_properties=False)
    assert prod.options["sync-all-properties"] == "false" and prod.options["metastore"] == "jdbc"
    monkeypatch.setenv("PAIMON_PROFILE", "prod")
    assert paimon.connect().options["metastore"] == "jdbc"
    assert paimon.connect("dev-lake").options == {}  # a warehouse that is named takes no settings
    assert paimon.connect(folder / "prod-lake", profile="prod").options["metastore"] == "jdbc"
    with pytest.raises(paimon.InvalidRequest, match="profile prod are of another warehouse") as caught:
        paimon.connect("dev-lake", profile="prod")
    assert "hunter22" not in str(caught.value)


def test_the_environment_gives_programs_a_warehouse(monkeypatch) -> None:
    with pytest.raises(paimon.InvalidRequest, match="No warehouse is given"):
        paimon.connect()
    monkeypatch.setenv("PAIMON_WAREHOUSE", "memory://settings")
    monkeypatch.setenv("PAIMON_CATALOG", "threads=2")
    assert paimon.connect().options == {"threads": "2"}


def test_a_profile_without_a_warehouse_fits_each_one_also_with_the_variable(monkeypatch, folder: Path) -> None:
    (folder / "paimon.toml").write_text("[profiles.small]\nthreads = 2")
    monkeypatch.setenv("PAIMON_WAREHOUSE", "memory://settings")
    catalog = paimon.connect("dev-lake", config="paimon.toml", profile="small")
    assert (catalog.warehouse, catalog.options) == (str(folder / "dev-lake"), {"threads": "2"})


def test_an_empty_variable_is_as_none(monkeypatch) -> None:
    for name in ("PAIMON_CONFIG", "PAIMON_PROFILE", "PAIMON_CATALOG", "PAIMON_WAREHOUSE"):
        monkeypatch.setenv(name, "")
    with pytest.raises(paimon.InvalidRequest, match="No warehouse is given"):
        paimon.connect()


def test_neither_settings_nor_the_traceback_of_a_bad_file_show_a_secret(folder: Path) -> None:
    assert "hunter22" not in repr(read_settings("paimon.toml", "prod"))
    Path("bad.yaml").write_text('warehouse: lake\njdbc.password: "hunter22\nx: [')
    with pytest.raises(paimon.InvalidRequest) as caught:
        paimon.connect(config="bad.yaml")
    assert "hunter22" not in "".join(traceback.format_exception(caught.value))


def test_options_of_other_doors_name_no_file(folder: Path) -> None:
    sql = "CREATE CATALOG other WITH ('type' = 'paimon', 'warehouse' = 'dev-lake', 'config' = 'paimon.toml')"
    with pytest.raises(paimon.InvalidRequest, match="'config' is not known"):
        paimon.connect("memory://settings-sql").sql(sql)
