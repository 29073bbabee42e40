"""The pages about Spark run as they are printed, one after another, in one session."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.document_pages import read_blocks

import paimon

pytestmark = pytest.mark.spark
HOW_TO = Path(__file__).resolve().parents[2] / "docs" / "how-to"
PAGES = ("run-on-spark.md", "stream-on-spark.md", "compact.md", "rescale.md")
NOT_RUN = {"connect"}
"""Blocks that need a server."""
NEXT = """
if "query" in globals() and query.isActive:
    query.processAllAvailable()
    query.stop()
"""


def read_page(name: str) -> list[str]:
    """Return the blocks for Spark; the others run without it, in the tests of the documents."""
    found = [b for b in read_blocks(HOW_TO / name) if b.language == "python" and b.marker and b.marker not in NOT_RUN]
    return [block.code for block in found]


def test_the_pages_run_as_they_are_printed(tmp_path: Path) -> None:
    (tmp_path / "incoming").mkdir()
    (tmp_path / "incoming" / "a.json").write_text("\n".join(json.dumps({"id": n, "amount": n}) for n in range(3)))
    start = next(block.code for block in read_blocks(HOW_TO / "index.md") if block.language == "python")
    program = NEXT.join([start, *(code for page in PAGES for code in read_page(page)), ""])
    (tmp_path / "program.py").write_text(program)
    environment = {**os.environ, "PYTHONPATH": str(HOW_TO.parents[1])}
    done = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    catalog = paimon.connect(tmp_path / "lake")
    counts = {name: catalog.table(f"shop.{name}").scan().count() for name in ("sales", "readings", "copy", "orders")}
    assert counts == {"sales": 3, "readings": 3, "copy": 3, "orders": 3}
