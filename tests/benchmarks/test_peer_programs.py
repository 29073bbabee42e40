"""The programs of the comparison with pypaimon run under the alias and under this library, and print the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.mark.slow("starts an interpreter for each program, twice")
@pytest.mark.nightly
def test_programs_print_the_same_under_the_alias_and_here() -> None:
    command = [sys.executable, str(BENCHMARKS / "peer_programs.py"), "--rows=2000", "--repeat=1"]
    done = subprocess.run([*command, "--only=paimon.compat,paimon"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    head, _, *lines = done.stdout.splitlines()
    assert head == "| Program | Package | Seconds | CPU seconds | Peak MiB |"
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert [row[:2] for row in rows] == [
        [name, way] for name in ("append", "upsert", "follow") for way in ("paimon.compat", "paimon")
    ]
    assert all(float(figure) > 0 for row in rows for figure in row[2:])
