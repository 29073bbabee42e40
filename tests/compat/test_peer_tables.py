"""Tables that Java 1.4.2 does not open are exchanged with pypaimon 2.1.0, which ``--long`` installs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import paimon

PEER = "pypaimon==2.1.0"
PROGRAM = """
import json, sys
import pyarrow as pa
from pypaimon import CatalogFactory, Schema

catalog = CatalogFactory.create({"warehouse": sys.argv[1]})
if sys.argv[2] == "write":
    columns = pa.schema([("a", pa.int64()), ("b", pa.string())])
    keys = ("row-tracking.enabled", "data-evolution.enabled", "deletion-vectors.enabled")
    catalog.create_database("d", True)
    catalog.create_table("d.t", Schema.from_pyarrow_schema(columns, options=dict.fromkeys(keys, "true")), False)
table = catalog.get_table("d.t")
if sys.argv[2] == "write":
    for ids in ([1, 2, 3], [4, 5]):
        builder = table.new_batch_write_builder()
        writer = builder.new_write()
        writer.write_arrow(pa.table({"a": ids, "b": [f"x{i}" for i in ids]}, schema=columns))
        builder.new_commit().commit(writer.prepare_commit())
    for change in (
        lambda update: update.update_by_arrow_with_row_id(pa.table({"_ROW_ID": [1], "b": ["peer"]})),
        lambda update: update.delete_by_row_id([0, 4]),
    ):
        builder = table.new_batch_write_builder()
        builder.new_commit().commit(change(builder.new_update()))
builder = table.new_read_builder().with_projection(["_ROW_ID", "a", "b"])
rows = builder.new_read().to_arrow(builder.new_scan().plan().splits())
print(json.dumps(sorted(map(list, zip(*rows.to_pydict().values())))))
"""


def find_peer(tmp_path: Path) -> str:
    """Return the Python of an environment with pypaimon; PYPAIMON_PYTHON names one that is there already."""
    given = os.environ.get("PYPAIMON_PYTHON")
    if given:
        return given
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "peer")], check=True)
    python = str(tmp_path / "peer" / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "-q", PEER], check=True)
    return python


def run_peer(python: str, *arguments: str) -> Any:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    command = [python, "-c", PROGRAM, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


@pytest.mark.long
def test_rows_are_deleted_and_updated_in_turns(tmp_path: Path) -> None:
    python, lake = find_peer(tmp_path), str(tmp_path / "lake")
    written = run_peer(python, lake, "write")
    assert written == [[1, 2, "peer"], [2, 3, "x3"], [3, 4, "x4"]]
    table = paimon.connect(lake).table("d.t")

    def read() -> list[list[Any]]:
        return sorted(list(row.values()) for row in table.scan(columns=["_ROW_ID", "a", "b"]).to_arrow().to_pylist())

    assert read() == written
    table.delete("a = 2")
    table.update({"b": "'own'"}, "a = 3")
    table.merge(
        {"a": [4, 9], "b": ["gone", "new"]}, on="a"
    ).when_matched_delete().when_not_matched_insert_all().execute()
    assert read() == run_peer(python, lake, "read") == [[2, 3, "own"], [5, 9, "new"]]
