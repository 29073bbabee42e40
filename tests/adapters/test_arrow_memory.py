"""Which memory Arrow uses once a table is opened, in processes of their own: the pool is one for all."""

from __future__ import annotations

import os
import subprocess
import sys

import pyarrow as pa

OPENED = """
import pyarrow as pa
{before}
import paimon
paimon.connect({folder!r})
print(pa.default_memory_pool().backend_name)
"""
USUAL = """
import pyarrow as pa
print(pa.default_memory_pool().backend_name)
"""


def answer(program: str, **environment: str) -> str:
    kept = {key: value for key, value in os.environ.items() if key != "ARROW_DEFAULT_MEMORY_POOL"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=kept | environment, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_arrow_allocates_with_the_leanest_that_it_has(tmp_path: object) -> None:
    usual = answer(USUAL)
    preferred = "jemalloc" if "jemalloc" in pa.supported_memory_backends() else "system"
    expected = preferred if usual == "mimalloc" else usual  # what Arrow chooses elsewhere stands
    assert answer(OPENED.format(before="", folder=str(tmp_path))) == expected


def test_an_arrow_without_it_allocates_as_the_process_does(tmp_path: object) -> None:
    if answer(USUAL) == "mimalloc":
        lacking = "pa.supported_memory_backends = lambda: ['mimalloc', 'system']"
        assert answer(OPENED.format(before=lacking, folder=str(tmp_path))) == "system"


def test_a_choice_stands(tmp_path: object) -> None:
    program = OPENED.format(before="", folder=str(tmp_path))
    usual = answer(USUAL)
    assert answer(program, ARROW_DEFAULT_MEMORY_POOL=usual) == usual
    if usual == "mimalloc":
        chosen = OPENED.format(before="pa.set_memory_pool(pa.system_memory_pool())", folder=str(tmp_path))
        assert answer(chosen) == "system"
