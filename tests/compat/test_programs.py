"""Programs for pypaimon run unchanged, and print what they print with pypaimon 2.1.0.

The expected outputs were printed by pypaimon 2.1.0. With ``--long``, the test installs it and compares again.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.warm_processes import run_code

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = sorted((ROOT / "examples" / "pypaimon").glob("*.py"))
EXPECTED = Path(__file__).parent / "expected"
PEER = "pypaimon==2.1.0"
AS_MODULE = """
import os, runpy, sys
os.chdir(sys.argv.pop(1))
runpy.run_module("paimon.compat", run_name="__main__", alter_sys=True)
"""
"""What `python -m paimon.compat` does, in a directory."""


def run_program(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.parametrize("program", [program if program.stem in ("quick_start", "upserts") else pytest.param(program,
    marks=pytest.mark.nightly) for program in PROGRAMS], ids=lambda path: path.stem)  # fmt: skip
def test_a_program_prints_what_it_prints_with_pypaimon(program: Path) -> None:
    done = run_code(AS_MODULE, str(ROOT), str(program))
    assert done.code == 0, done.errors[-2000:]
    assert done.output.decode() == (EXPECTED / f"{program.stem}.txt").read_text("utf8")


def test_there_are_five_programs() -> None:
    assert len(PROGRAMS) == 5


def test_a_program_gets_its_arguments_and_its_directory(tmp_path: Path) -> None:
    (tmp_path / "neighbour.py").write_text("NAME = 'neighbour'\n")
    program = tmp_path / "program.py"
    program.write_text("import sys, neighbour, pypaimon\nprint(__name__, sys.argv[1:], neighbour.NAME)\n")
    printed = run_program(sys.executable, "-m", "paimon.compat", str(program), "--where", "a=1")
    assert printed == "__main__ ['--where', 'a=1'] neighbour\n"


@pytest.mark.long
def test_pypaimon_prints_the_expected_output(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "peer")], check=True)
    python = str(tmp_path / "peer" / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "-q", PEER, "duckdb"], check=True)
    for program in PROGRAMS:
        assert run_program(python, str(program)) == (EXPECTED / f"{program.stem}.txt").read_text("utf8")
