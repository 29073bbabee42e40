"""Missing optional packages: each is reported by the same sentence, which names the extra to install."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from support.case_lists import mark_nightly
from support.terminal_commands import HOME, block_packages

import paimon
from paimon.domain.extras import EXTRAS, format_install_hint, missing_extra

PROJECT = tomllib.loads((Path(HOME) / "pyproject.toml").read_text())["project"]

SCAN = """
import paimon
lake = paimon.connect({path!r})
lake.create_database("db")
table = lake.create_table("db.t", "id INT")
table.write([{{"id": 1}}])
table.scan().{method}()
"""
SKETCHES = """
import paimon
lake = paimon.connect({path!r})
lake.create_database("db")
table = lake.create_table("db.t", "id INT NOT NULL, s BYTES", primary_keys=["id"],
    options={{"bucket": 1, "merge-engine": "aggregation", "fields.s.aggregate-function": "theta_sketch"}})
for _ in range(2):
    table.write([{{"id": 1, "s": b"x"}}])
print(table.scan().to_arrow())
"""
CASES = {
    "to_pandas": (["pandas"], SCAN, "pandas"),
    "to_polars": (["polars"], SCAN, "polars"),
    "to_duckdb": (["duckdb"], SCAN, "duckdb"),
    "SQL expression 'ABS(id) = 1'": (
        ["duckdb"],
        SCAN.replace("scan().{method}()", "scan(where='abs(id) = 1').count()"),
        "sql",
    ),
    "paimon.spark": (["pyspark"], "import paimon.spark", "spark"),
    "paimon.spark without pandas": (["pandas"], "import paimon.spark", "spark"),
    "a module of paimon.spark": (["pyspark"], "import paimon.spark.session", "spark"),
    "a union of sketches": (["datasketches"], SKETCHES, "sketches"),
    "a location s3://": (["obstore", "s3fs"], 'import paimon; paimon.connect("s3://bucket/lake")', "stores"),
    "a location gs://": (["obstore", "gcsfs"], 'import paimon; paimon.connect("gs://bucket/lake")', "stores"),
    "a location abfs://": (["obstore", "adlfs"], 'import paimon; paimon.connect("abfs://box@account/lake")', "stores"),
    "A SQL query": (["duckdb"], "import paimon; paimon.connect({path!r}).sql('SELECT 1')", "sql"),
    "A frame of Daft": (["daft"], SCAN.replace("table.scan().{method}()", "paimon.scan_daft(table)"), "daft"),
    "A catalog of DataFusion": (
        ["datafusion"],
        "import paimon; paimon.attach_datafusion(None, 'lake', paimon.connect({path!r}))",
        "datafusion",
    ),
    "An observer of OpenTelemetry": (
        ["opentelemetry"],
        "from paimon.embed import make_opentelemetry_observer; make_opentelemetry_observer()",
        "opentelemetry",
    ),
    "a JDBC catalog": (["sqlalchemy"], "import paimon; paimon.connect({path!r}, metastore='jdbc')", "catalog"),
    "a catalog in postgresql": (
        ["psycopg"],
        "import paimon; paimon.connect({path!r}, metastore='jdbc', uri='postgresql://host/lake').databases()",
        "postgres",
    ),
}


@pytest.mark.parametrize("name", mark_nightly(sorted(CASES), always=sorted(CASES)[::3]))
def test_a_missing_package_is_reported_with_the_extra_that_brings_it(tmp_path: Path, name: str) -> None:
    packages, code, extra = CASES[name]
    feature = "paimon.spark" if "paimon.spark" in name else name
    program = (
        block_packages(*packages)
        + "import traceback, sys\ntry:\n"
        + "\n".join("    " + line for line in code.format(path=str(tmp_path), method=name).strip().splitlines())
        + "\nexcept ImportError as error:\n    print(type(error).__name__, error, sep='|')\n"
    )
    surrounding = os.environ | {"PYTHONPATH": HOME}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=surrounding)
    assert done.returncode == 0, done.stderr
    kind, _, text = done.stdout.strip().rpartition("\n")[2].partition("|")
    assert kind == "MissingExtra"
    assert text == str(missing_extra(feature, packages[0], extra)), "one sentence for all"
    assert format_install_hint(extra) in text


def test_the_extras_are_those_of_the_project() -> None:
    declared = PROJECT["optional-dependencies"]
    for package, extra in EXTRAS.items():
        if package == "py4j":  # PySpark brings it
            continue
        assert any(requirement.startswith(package) for requirement in declared[extra]), package


def test_no_hint_names_a_package_index_that_has_no_such_package() -> None:
    hint = format_install_hint("polars")
    assert '".[polars]"' in hint
    assert "git+URL" in hint
    sources = list(Path(paimon.__file__).parent.rglob("*.py"))
    assert not [f for f in sources if "pip install 'paimon-lake" in f.read_text("utf8")]


def test_the_error_is_an_import_error_that_travels() -> None:
    error = missing_extra("to_polars", "polars")
    assert isinstance(error, ImportError)
    assert isinstance(error, paimon.PaimonError)
    back = pickle.loads(pickle.dumps(error))
    assert (str(back), back.hint, back.extra) == (str(error), error.hint, "polars")
