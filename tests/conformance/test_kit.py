"""The kit that tests other implementations: against this library, wrong implementations, and adapters at fault."""

from __future__ import annotations

import importlib
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import time
import tomllib
import zipfile
from pathlib import Path

import pandas  # noqa: F401  (an interrupt inside of its import would break it for other tests)
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.case_lists import mark_nightly
from support.golden_package import build_wheel, pack_golden
from support.golden_tables import ARCHIVE, golden_directory

from paimon.domain.extras import MissingExtra
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.types.data_types import BinaryType, VarBinaryType
from paimon.testing.conformance import Capabilities, Refused, TableUnderTest, run_cases
from paimon.testing.conformance.__main__ import main
from paimon.testing.conformance.own import PaimonForPython
from paimon.testing.conformance.run_cases import Runner, run_feature
from paimon.testing.strategies import schemas

SOME = ("--feature", "engine:aggregation", "--feature", "combined")
OWN = "paimon.testing.conformance.own:PaimonForPython"


def run(*arguments: str, adapter: str = "", examples: int = 3) -> int:
    chosen = adapter or f"{__name__}:IgnoresDeletes"
    return main(["--adapter", chosen, "--examples", str(examples), "--seconds", "3600", *arguments])


@pytest.fixture(autouse=True)
def short_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer cases in which a wrong one is made smaller."""
    monkeypatch.setattr(run_cases, "_SHRINK_CASES", 8)


class Reads(PaimonForPython):
    capabilities = Capabilities(types=("INT",), key_types=("INT",), features=("deletion-vectors",))


class IgnoresDeletes(PaimonForPython):
    capabilities = Capabilities(features=("write", "row-kinds"))

    def write(self, table: TableUnderTest, rows: pa.Table) -> None:
        if "op" in rows.column_names:
            rows = rows.filter(pc.not_equal(rows["op"], "-D"))
        super().write(table, rows)


class Empty(Reads):
    def read(self, table: TableUnderTest, snapshot: int | None) -> pa.Table:
        return table.schema.empty_table()


class Raises(Reads):
    def read(self, table: TableUnderTest, snapshot: int | None) -> pa.Table:
        raise RuntimeError("no such codec\nand many more lines")


class Refuses(Reads):
    def read(self, table: TableUnderTest, snapshot: int | None) -> pa.Table:
        raise Refused("merge engine 'first-row'")


class Undecodable(Reads):
    capabilities = Capabilities(types=("VARCHAR",), bucket_modes=("unaware",), features=())

    def read(self, table: TableUnderTest, snapshot: int | None) -> pa.Table:
        rows = super().read(table, snapshot)
        raw = pa.array([b"\xff"] * rows.num_rows, pa.binary())
        return pa.table({"v": pa.Array.from_buffers(pa.string(), len(raw), raw.buffers())})


class SeesOneTable(Reads):
    def read(self, table: TableUnderTest, snapshot: int | None) -> pa.Table:
        assert [path.name for path in Path(table.location).parent.glob("t*")] == [table.name]
        return super().read(table, snapshot)


class Stopped(Reads):
    warehouse = ""

    def read(self, table: TableUnderTest, snapshot: int | None) -> pa.Table:
        Stopped.warehouse = table.warehouse
        assert signal.getsignal(signal.SIGTERM) is signal.default_int_handler
        os.kill(os.getpid(), signal.SIGTERM)
        return super().read(table, snapshot)


@pytest.mark.parametrize("features", mark_nightly([[*SOME], []], always=[[*SOME]]))
def test_the_library_is_right(features: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    status = run("--quiet", *features, adapter=OWN, examples=2 if features else 100)
    shown = capsys.readouterr().out
    assert status == 0 and "wrong" not in shown and "refused" not in shown, shown


@pytest.mark.slow("searches for the smallest example twice")
def test_ignored_deletes_are_found_in_the_smallest_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--feature", "row-kinds", examples=6) == 1
    shown, progress = capsys.readouterr()
    table = shown[shown.index("feature ") :].splitlines()[2].split()
    assert table == ["row-kinds", "right", "wrong", "[1]", "wrong", "[2]"]
    lines = [" ".join(line.split()) for line in shown[shown.index("[1] row-kinds, write") :].splitlines()]
    assert lines[1].startswith("table (k INT NOT NULL, op STRING, v INT, PRIMARY KEY (k)) rowkind.field=op bucket=")
    assert any(line.startswith("IgnoresDeletes writes") and "'-D'" in line for line in lines[2:5]), shown
    assert "3/3 row-kinds, in turns: wrong" in progress


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Empty", "Empty reads no rows"),
        ("Raises", "Raises read: RuntimeError: no such codec"),
        ("Undecodable", "Undecodable not rows of the table: UnicodeDecodeError"),
    ],
)
def test_wrong_reads_are_shown(name: str, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--quiet", "--feature", "buckets:unaware", adapter=f"{__name__}:{name}") == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert text in shown and re.search(r"expected (\(.*\)) paimon reads \1", shown) and "more lines" not in shown


def test_reports_have_three_forms(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    adapter, file = f"{__name__}:Refuses", tmp_path / "page.html"
    assert run("--quiet", "--feature", "engine:first-row", "--format", "json", adapter=adapter) == 0
    (cell,) = json.loads(capsys.readouterr().out)["results"]
    assert cell == {
        "feature": "engine:first-row", "writer": "read ours", "status": "refused", "examples": 3, "refused": 3,
        "reason": "read: merge engine 'first-row'", "example": None,
    }  # fmt: skip
    arguments = ("--feature", "buckets:unaware", "--format", "html", "--output", str(file))
    assert run("--quiet", *arguments, adapter=f"{__name__}:Empty") == 1
    page = file.read_text("utf8")
    assert page.startswith("<!doctype html>") and "wrong [1]" in page and "Empty reads" in page


def test_time_ends_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--seconds", "0", adapter=f"{__name__}:Reads") == 1
    assert "Not run, because the time ended: engine:deduplicate" in capsys.readouterr().out


def test_tables_are_deleted_after_each_case_and_by_a_signal(capsys: pytest.CaptureFixture[str]) -> None:
    unaware = ("--quiet", "--feature", "buckets:unaware")
    assert run(*unaware, adapter=f"{__name__}:SeesOneTable") == 0
    before = signal.getsignal(signal.SIGTERM)
    assert run(*unaware, adapter=f"{__name__}:Stopped") == 130
    assert Stopped.warehouse and not Path(Stopped.warehouse).exists() and signal.getsignal(signal.SIGTERM) is before
    shown, error = capsys.readouterr()
    assert error == "error: The run was stopped.\n" and "stopped   by a signal" in shown


class Hangs(Reads):
    """Returns no rows of compacted tables, and does not return from reads of deletion vectors."""

    def read(self, table: TableUnderTest, snapshot: int | None) -> pa.Table:
        while "deletion-vectors.enabled" in table.options:
            time.sleep(0.01)
        return table.schema.empty_table() if table.primary_keys else super().read(table, snapshot)


@pytest.mark.parametrize("form", mark_nightly(["text", "json", "html"], always=["text", "json"]))
def test_a_timeout_prints_what_is_known(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    features = ("buckets:unaware", "deletion-vectors:append-table", "type:INT")
    chosen = [argument for name in features for argument in ("--feature", name)]
    alarm = signal.getsignal(signal.SIGALRM)
    # type:INT comes last, so it is not run
    assert run("--timeout", "0.3", "--format", form, "--quiet", *chosen, adapter=f"{__name__}:Hangs", examples=1) == 124
    shown = capsys.readouterr().out
    assert signal.getsignal(signal.SIGALRM) is alarm and signal.getitimer(signal.ITIMER_REAL)[0] == 0
    if form == "json":
        report = json.loads(shown)
        assert report["stopped"] == "by --timeout"
        assert {cell["feature"]: cell["status"] for cell in report["results"]} == {
            "deletion-vectors:append-table": "stopped", "buckets:unaware": "not run", "type:INT": "not run",
        }  # fmt: skip
    else:
        assert "Not run, because the run was stopped: buckets:unaware, type:INT" in shown


class WrongThenStopped(Reads):
    """Loses large values, and is stopped in the call after the first loss."""

    was_wrong = False

    def read(self, table: TableUnderTest, snapshot: int | None) -> pa.Table:
        rows = super().read(table, snapshot)
        if WrongThenStopped.was_wrong:
            signal.raise_signal(signal.SIGTERM)  # SIGINT is ignored by a process that a script started with "&"
        WrongThenStopped.was_wrong = (pc.max(rows["v"]).as_py() or 0) > 10
        return rows.filter(pc.less_equal(rows["v"], 10)) if WrongThenStopped.was_wrong else rows


def test_a_wrong_example_is_known_after_a_signal(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--quiet", "--feature", "type:INT", adapter=f"{__name__}:WrongThenStopped", examples=20) == 130
    shown = capsys.readouterr().out
    assert "stopped   by a signal" in shown and "wrong [1]" in shown and "WrongThenStopped reads" in shown


class Lookup(PaimonForPython):
    """Loses a row of tables with a sequence field."""

    def read(self, table: TableUnderTest, snapshot: int | None) -> pa.Table:
        if "json" in table.name:
            raise Refused("json")
        rows = super().read(table, snapshot)
        return rows.slice(1) if "sequence.field" in table.options else rows


def test_golden_tables_are_cells(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    golden = ("--quiet", "--golden", str(golden_directory()))
    some = ("--feature", "golden:pk_dedup_avro", "--feature", "golden:seq_one", "--feature", "golden:evo_pk")
    assert run(*golden, *some, adapter=OWN) == 0
    shown = capsys.readouterr().out
    assert shown.count(" right") == 4 and "read Java's" in shown
    assert run(*golden, *some[:4], "--format", "json", adapter=f"{__name__}:Lookup") == 1
    right, wrong = json.loads(capsys.readouterr().out)["results"]
    assert right["status"] == "right" and right["examples"] > 1
    assert wrong["status"] == "wrong" and wrong["example"]["only_differences"] and wrong["example"]["snapshot"] is None
    assert len(wrong["example"]["expected"]) == 1 and wrong["example"]["reads"] == {"Lookup": []}
    assert run(*golden, *some[2:4], adapter=f"{__name__}:Lookup") == 1
    assert "Lookup adds  no rows" in capsys.readouterr().out


def test_golden_tables_need_declared_capabilities_only(capsys: pytest.CaptureFixture[str]) -> None:
    golden = ("--list", "--golden", str(golden_directory()), "--feature", "golden")
    assert run(*golden, adapter=OWN) == 0
    every = capsys.readouterr().out.split()
    assert len(every) > 150 and "golden:format_json" not in every and "golden:blob" not in every
    assert run(*golden, adapter=f"{__name__}:OnlyInts") == 0
    few = capsys.readouterr().out.split()
    assert 0 < len(few) < 40 and "golden:tags" in few and "golden:cl_full_pu" not in few


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ([], "error: Package 'paimon-golden' is not installed. Install packages/golden of this repository"),
        (["absent.tar.xz"], "error: Golden set 'absent.tar.xz' cannot be read"),
        (["."], "error: '.' has no golden tables"),
    ],
)
def test_a_golden_set_at_fault_is_named(
    path: list[str], text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "paimon_golden", None)
    assert run("--quiet", "--golden", *path, adapter=OWN) == 2
    assert text in capsys.readouterr().err


def test_the_loader_of_the_package_unpacks_the_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = ARCHIVE.parents[2] / "packages" / "golden"
    monkeypatch.syspath_prepend(source / "src")
    loader = importlib.import_module("paimon_golden")
    monkeypatch.setattr(loader, "ARCHIVE", pack_golden(golden_directory() / "tags", tmp_path / "tags.tar.xz"))
    assert (loader.unpack(tmp_path / "out") / "expected" / "latest.jsonl").is_file()
    monkeypatch.delitem(sys.modules, "paimon_golden")
    included = tomllib.loads((source / "pyproject.toml").read_text("utf8"))["tool"]["hatch"]["build"]["targets"][
        "wheel"
    ]
    (path,) = included["force-include"]
    assert (source / path).resolve() == ARCHIVE


@pytest.mark.nightly
def test_the_library_is_right_by_the_installed_package(tmp_path: Path) -> None:
    wheel = build_wheel(ARCHIVE, tmp_path)
    home = tmp_path / "home"
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(home)
    command = [sys.executable, "-m", "paimon.testing.conformance", "--adapter", OWN, "--golden", "--feature", "golden"]
    done = subprocess.run(
        [*command, "--quiet", "--seconds", "3600"], env=os.environ | {"PYTHONPATH": str(home)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_warehouse_keeps_the_tables_of_several_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for count in (2, 4):
        arguments = ("--quiet", "--feature", "buckets:unaware", "--warehouse", "kept")
        assert run(*arguments, adapter=f"{__name__}:Reads", examples=2) == 0
        assert len(list((tmp_path / "kept" / "kit.db").glob("t*"))) == count


def test_a_report_that_cannot_be_written_is_refused_before_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--output", str(tmp_path / "absent" / "page"), adapter=f"{__name__}:Stopped") == 2
    shown, error = capsys.readouterr()
    assert not shown and error.endswith("absent/page' cannot be written: No such file or directory\n")


def test_a_cell_without_an_example_is_not_right(tmp_path: Path) -> None:
    runner = Runner("Reads", Reads(), str(tmp_path), itertools.count())
    assert run_feature(runner, "none", st.nothing(), "read ours", (1, 0, 1.0)).status == "not run"


class Creates:
    capabilities = Capabilities(features=("create", "write"))

    def write(self, table: TableUnderTest, rows: pa.Table) -> None: ...

    def read(self, table: TableUnderTest, snapshot: int | None) -> pa.Table: ...


class Undeclared:
    def read(self, table: TableUnderTest, snapshot: int | None) -> pa.Table: ...


class Unknown(Undeclared):
    capabilities = Capabilities(merge_engines=("deduplicat",))


class Nothing(Undeclared):
    capabilities = Capabilities(file_formats=())


class NeedsTypes(Undeclared):
    capabilities = Capabilities(types=("BIGINT",), features=("row-kinds",))


class OnlyBigints(Undeclared):
    capabilities = Capabilities(types=("BIGINT",), key_types=("BIGINT",), features=("deletion-vectors",))


class OnlyInts(Undeclared):
    capabilities = Capabilities(types=("INT", "VARCHAR"), merge_engines=("deduplicate",), features=("added-columns",))


class OnlyPostponed(Undeclared):
    capabilities = Capabilities(bucket_modes=("postponed",), features=())


class NeedsKeys(Undeclared):
    capabilities = Capabilities(merge_engines=())


class Broken:
    def __init__(self) -> None:
        raise OSError("no server")


AT_FAULT = {
    "nowhere:Class": "does not exist: no module 'nowhere'. Set PYTHONPATH to its folder.",
    "no colon": "is not of the form MODULE:CLASS",
    "raising_adapter:Class": "cannot be imported: ImportError: libmissing.so",
    "importing_adapter:Class": "cannot be imported: ModuleNotFoundError: No module named 'nowhere'",
    f"{__name__}:Absent": f"does not exist: {__name__} has no Absent",
    f"{__name__}:Broken": "cannot be created: OSError: no server",
    f"{__name__}:Undeclared": "has no attribute 'capabilities' of type Capabilities",
    f"{__name__}:Creates": "declares 'create', and has no method 'create'",
    f"{__name__}:Unknown": "declares the unknown capability 'deduplicat' in 'merge_engines'. Did you mean",
    f"{__name__}:Nothing": "declares nothing in 'file_formats'",
    f"{__name__}:NeedsTypes": "declares 'row-kinds' without the type 'VARCHAR'",
    f"{__name__}:NeedsKeys": "declares buckets for primary keys without 'merge_engines' or 'key_types'",
}


@pytest.mark.parametrize("adapter", AT_FAULT)
def test_an_adapter_at_fault_is_named_in_one_line(
    adapter: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "raising_adapter.py").write_text("raise ImportError('libmissing.so')\n")
    (tmp_path / "importing_adapter.py").write_text("import nowhere\n")
    assert run(adapter=adapter) == 2
    shown, error = capsys.readouterr()
    assert not shown and error.count("\n") == 1
    assert error.startswith(f"error: Adapter {adapter!r} {AT_FAULT[adapter]}")


def test_features_are_chosen_by_name_group_and_pattern(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--list", "--feature", "engine", "--feature", "*:key-table", adapter=f"{__name__}:Reads") == 0
    listed = capsys.readouterr().out.split()
    assert listed[:2] == ["engine:deduplicate", "engine:partial-update"] and "deletion-vectors:key-table" in listed
    assert run("--list", adapter=f"{__name__}:OnlyBigints") == 0
    listed = capsys.readouterr().out.split()
    assert "compacted:append-table" in listed and not [name for name in listed if name.startswith("delete:")]
    assert "deletion-vectors:key-table" in listed and "deletion-vectors:append-table" not in listed
    assert run("--list", adapter=f"{__name__}:OnlyPostponed") == 0
    assert "delete:key-table" not in capsys.readouterr().out.split()
    assert run("--feature", "engin", adapter=f"{__name__}:Reads") == 2
    assert capsys.readouterr().err == "error: No declared feature matches 'engin'. Did you mean 'engine'?\n"


def test_hypothesis_is_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("paimon.testing.strategies")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    with pytest.raises(MissingExtra, match=r"'hypothesis', which is not installed.*extra 'testing'"):
        importlib.import_module("paimon.testing.strategies")


@given(schemas())
def test_no_drawn_table_has_partitions_that_are_refused(schema: TableSchema) -> None:
    is_binary = any(isinstance(f.type, BinaryType | VarBinaryType) for f in schema.partition_fields)
    assert is_binary == (schema.options.get("partition.legacy-name") == "false")
