"""Scripts in the manner of sqllogictest: statements with the rows or the errors that they must have.

statement ok            the statement runs
statement error TEXT    it fails, and its message contains TEXT
query [rowsort]         its rows follow after ----, values separated by a bar, NULL as NULL

Each script runs twice: DuckDB evaluates its queries, or Spark; most of those on Spark are nightly. `$LAKE` is a
directory for warehouses.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from support.sql_engines import open_engine

import paimon

SCRIPTS = sorted((Path(__file__).parent / "scripts").glob("*.test"))
ON_SPARK = ("defaults",)
"""Scripts that run on Spark at every level."""
NIGHTLY = {False: (), True: (pytest.mark.nightly,)}
FRAMES = {"df": pa.table({"id": [1, 2, 9], "word": ["one", "two", "nine"]})}


def read_records(path: Path) -> list[tuple[int, str, str, list[str]]]:
    """The records of a file: line, head, statement, expected lines."""
    records = []
    lines = path.read_text("utf8").splitlines()
    number = 0
    while number < len(lines):
        if not lines[number].strip() or lines[number].startswith("#"):
            number += 1
            continue
        start = number
        while number < len(lines) and lines[number].strip():
            number += 1
        head, *body = lines[start:number]
        cut = body.index("----") if "----" in body else len(body)
        records.append((start + 1, head, "\n".join(body[:cut]), body[cut + 1 :]))
    return records


def format_rows(rows: pa.Table) -> list[str]:
    columns = [column.to_pylist() for column in rows.columns]
    lines = (" | ".join("NULL" if v is None else str(v) for v in row) for row in zip(*columns, strict=True))
    return [part for line in lines for part in line.split("\n")]


RUNS = [pytest.param(path, "embedded", id=f"{path.stem}-embedded") for path in SCRIPTS] + [
    pytest.param(path, "spark", id=f"{path.stem}-spark", marks=[pytest.mark.spark, *NIGHTLY[path.stem not in ON_SPARK]])
    for path in SCRIPTS
]


@pytest.mark.slow("the first case starts Spark")
@pytest.mark.parametrize(("path", "engine"), RUNS)
def test_a_script_has_its_results(path: Path, engine: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    session = open_engine(engine, tmp_path / "lake", request)
    records = read_records(path)
    assert len(records) > 3
    for line, head, text, expected in records:
        statement = text.replace("$LAKE", str(tmp_path))
        where = f"{path.name}:{line}: {statement}"
        if head == "statement ok":
            session.sql(statement, **FRAMES)
        elif head.startswith("statement error "):
            wanted = head.removeprefix("statement error ")
            try:
                session.sql(statement, **FRAMES)
            except paimon.PaimonError as error:
                assert wanted.lower() in str(error).lower(), f"{where}\n{error}"
            else:
                raise AssertionError(f"{where}\ndid not fail")
        else:
            found = format_rows(session.sql(statement, **FRAMES))
            if head == "query rowsort":
                found, expected = sorted(found), sorted(expected)
            else:
                assert head == "query", where
            assert found == expected, where
