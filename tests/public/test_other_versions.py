"""The wheel works with other versions of Python, PySpark and its packages, each in an environment of its own.

By night only. Without such a Python, or packages for it, a test is skipped, and its reason names what is missing.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from support.java_options import SHORT_RUN

ROOT = Path(__file__).resolve().parents[2]
OLDEST_PYSPARK = "4.1.*"
"""The oldest one that pyproject.toml allows."""
CREATE = """
import json, sys
import paimon
catalog = paimon.connect(sys.argv[1])
catalog.create_database("d")
table = catalog.create_table("d.t", "id BIGINT NOT NULL, word STRING", primary_keys=["id"], options={"bucket": "2"})
table.write({"id": [1, 2], "word": ["a", "b"]})
table.write({"id": [2, 3], "word": ["B", "c"]})
"""
EMBEDDED = (
    CREATE
    + """
source = {"id": [3, 4], "word": ["C", "d"]}
table.merge(source, "id").when_matched_update_all().when_not_matched_insert_all().execute()
table.compact(full=True)
assert table.maintain.check(deep=True).is_whole
read = table.scan(where="id > 1").to_arrow().sort_by("id").to_pylist()
selected = catalog.sql("SELECT count(*) AS n, max(word) AS word FROM d.t").to_arrow().to_pylist()
print(json.dumps([sys.version_info[:2], read, selected]))
"""
)
ON_SPARK = (
    CREATE
    + """
import paimon.spark, pyspark
spark = paimon.spark.register(paimon.spark.session("local[2]"), catalog)
rows = spark.createDataFrame([(3, "C"), (4, "d")], "id BIGINT, word STRING")
paimon.spark.write(rows, "d.t")
paimon.spark.merge(spark.createDataFrame([(4, "D")], "id BIGINT, word STRING"), "d.t", "id") \\
    .when_matched_update_all().execute()
paimon.spark.compact(table, spark=spark)
read = [row.asDict() for row in paimon.spark.read(spark, "d.t", where="id > 1").orderBy("id").collect()]
assert table.maintain.check(deep=True).is_whole
print(json.dumps([pyspark.__version__, read]))
"""
)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout."""
    home = tmp_path_factory.mktemp("wheel")
    run_or_skip("the packages that build the wheel", sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w",
                str(home), str(ROOT))  # fmt: skip
    (built,) = home.glob("*.whl")
    return built


def run_or_skip(what: str, *command: str) -> None:
    """Run a command that installs something; if it fails, skip the test, and name what is missing."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
        pytest.skip(f"not tested: {what} cannot be installed here ({' '.join(last)})")


def find_python(version: str) -> str | None:
    """Return a Python of this version: from the PATH, of pyenv, or one that uv has or can install."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    candidates = [f"python{version}", *map(str, sorted(pyenv.glob(f"versions/{version}.*/bin/python")))]
    if shutil.which("uv"):
        subprocess.run(["uv", "python", "install", "-q", version], capture_output=True, check=False)
        found = subprocess.run(["uv", "python", "find", version], capture_output=True, text=True, check=False)
        candidates.append(found.stdout.strip())
    return next((path for path in candidates if is_python(path, version)), None)


def is_python(path: str, version: str) -> bool:
    if not shutil.which(path):
        return False
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    return subprocess.run([path, "-c", code], capture_output=True, text=True, check=False).stdout.strip() == version


def install(python: str, home: Path, wheel: Path, extras: str, *packages: str) -> str:
    """Install the wheel and packages into a new environment, and return its Python; only the wheel must be possible."""
    run_or_skip(f"an environment of {python}", python, "-m", "venv", str(home))
    found = str(home / "bin" / "python")
    command = (found, "-m", "pip", "install", "-q", "--disable-pip-version-check")
    run(*command, "--no-index", "--no-deps", str(wheel))
    run_or_skip(f"the packages of [{extras}]", *command, f"{wheel}[{extras}]", *packages)
    return found


def run(*command: str, **variables: str) -> str:
    surrounding = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYSPARK_PYTHON")}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=surrounding | variables, cwd="/")
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.nightly
@pytest.mark.slow("installs the wheel into a new environment")
@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13", "3.14"])
def test_the_wheel_works_on_a_python(wheel: Path, tmp_path: Path, version: str) -> None:
    found = find_python(version)
    if found is None:
        pytest.skip(f"not tested: no Python {version} on the PATH, in pyenv or by uv")
    python = install(found, tmp_path / "environment", wheel, "sql,cli")
    running, read, selected = json.loads(run(python, "-c", EMBEDDED, str(tmp_path / "lake")))
    assert ".".join(map(str, running)) == version
    assert read == [{"id": 2, "word": "B"}, {"id": 3, "word": "C"}, {"id": 4, "word": "d"}]
    assert selected == [{"n": 4, "word": "d"}]
    command = str(Path(python).with_name("paimon"))
    shown = run(command, "cat", str(tmp_path / "lake" / "d.db" / "t"), "--where", "id = 3", "--output", "json")
    assert json.loads(shown) == {"id": 3, "word": "C"}


def list_lowest_versions(*extras: str) -> list[str]:
    """Return the packages of the wheel and of extras, each in the lowest version that pyproject.toml allows."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))["project"]
    needed = [*project["dependencies"], *(need for extra in extras for need in project["optional-dependencies"][extra])]
    found = [re.match(r"([\w-]+)>=([\d.]+)", need) for need in needed]
    assert all(found), "each package has a lowest version"
    return [f"{match[1]}=={match[2]}" for match in found if match]


@pytest.mark.nightly
@pytest.mark.slow("installs the wheel into a new environment")
def test_the_wheel_works_with_the_lowest_versions_of_its_packages(wheel: Path, tmp_path: Path) -> None:
    found = find_python("3.11")
    if found is None:
        pytest.skip("not tested: no Python 3.11, the lowest one that the lowest versions are for")
    python = install(found, tmp_path / "environment", wheel, "sql,cli", *list_lowest_versions("sql", "cli"))
    _, read, selected = json.loads(run(python, "-c", EMBEDDED, str(tmp_path / "lake")))
    assert read == [{"id": 2, "word": "B"}, {"id": 3, "word": "C"}, {"id": 4, "word": "d"}]
    assert selected == [{"n": 4, "word": "d"}]


@pytest.mark.nightly
def test_the_wheel_describes_itself(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        [metadata] = [name for name in names if name.endswith("/METADATA")]
        text = archive.read(metadata).decode()
    package = [path for path in (ROOT / "paimon").rglob("*") if path.suffix in (".py", ".java", ".typed")]
    assert {str(path.relative_to(ROOT)) for path in package} <= set(names)
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert "Project-URL: Format, https" in text and "Classifier: Programming Language :: Python :: 3.14" in text


@pytest.mark.nightly
@pytest.mark.slow("installs another PySpark")
def test_the_wheel_works_with_the_oldest_pyspark(wheel: Path, tmp_path: Path) -> None:
    python = install(sys.executable, tmp_path / "environment", wheel, "spark", f"pyspark=={OLDEST_PYSPARK}")
    options = {"SPARK_SUBMIT_OPTS": " ".join(SHORT_RUN)}
    version, read = json.loads(run(python, "-c", ON_SPARK, str(tmp_path / "lake"), **options).splitlines()[-1])
    assert version.startswith(OLDEST_PYSPARK.removesuffix("*"))
    assert read == [{"id": 2, "word": "B"}, {"id": 3, "word": "C"}, {"id": 4, "word": "D"}]
