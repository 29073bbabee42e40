"""The memory pool that Arrow uses after a table is opened; each test runs in its own process, because the pool is
global.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

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
HUGE = """
import os
{first}
{second}
pa = __import__("pyarrow")
paimon.connect({folder!r})
buffer = pa.allocate_buffer(8 << 20)
flags, here = "", False
for line in open("/proc/self/smaps"):
    words = line.split()
    if "-" in words[0] and not words[0].endswith(":"):
        low, high = (int(at, 16) for at in words[0].split("-"))
        here = low <= buffer.address < high
    elif here and words[0] == "VmFlags:":
        flags = words
print("hg" in flags)
"""


def run_and_read(program: str, **environment: str) -> str:
    chosen = ("ARROW_DEFAULT_MEMORY_POOL", "JE_ARROW_MALLOC_CONF", "PAIMON_PROCESS_EFFECTS")
    inherited = {key: value for key, value in os.environ.items() if key not in chosen}
    done = subprocess.run(
        [sys.executable, "-c", program], env=inherited | environment, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_arrow_allocates_with_the_leanest_that_it_has(tmp_path: object) -> None:
    usual = run_and_read(USUAL)
    preferred = "jemalloc" if "jemalloc" in pa.supported_memory_backends() else "system"
    expected = preferred if usual == "mimalloc" else usual  # otherwise Arrow chooses
    assert run_and_read(OPENED.format(before="", folder=str(tmp_path))) == expected


def test_an_arrow_without_it_allocates_as_the_process_does(tmp_path: object) -> None:
    if run_and_read(USUAL) == "mimalloc":
        lacking = "pa.supported_memory_backends = lambda: ['mimalloc', 'system']"
        assert run_and_read(OPENED.format(before=lacking, folder=str(tmp_path))) == "system"


def test_an_explicit_choice_is_respected(tmp_path: object) -> None:
    program = OPENED.format(before="", folder=str(tmp_path))
    usual = run_and_read(USUAL)
    assert run_and_read(program, ARROW_DEFAULT_MEMORY_POOL=usual) == usual
    if usual == "mimalloc":
        chosen = OPENED.format(before="pa.set_memory_pool(pa.system_memory_pool())", folder=str(tmp_path))
        assert run_and_read(chosen) == "system"


def test_tables_ask_for_huge_pages_where_arrow_is_loaded_after_the_library(tmp_path: object) -> None:
    possible = "jemalloc" in pa.supported_memory_backends() and run_and_read(USUAL) == "mimalloc"
    if possible and Path("/sys/kernel/mm/transparent_hugepage/enabled").exists():
        first = HUGE.format(first="import paimon", second="import pyarrow", folder=str(tmp_path))
        late = HUGE.format(first="import pyarrow", second="import paimon", folder=str(tmp_path))
        assert run_and_read(first) == "True"
        assert run_and_read(first, JE_ARROW_MALLOC_CONF="thp:never") == "False"
        assert run_and_read(late) == "False"


def test_the_library_before_arrow_chooses_the_pool_of_the_whole_process() -> None:
    """Also of the Parquet reader and writer, which keep the pool that the process began with."""
    if "jemalloc" in pa.supported_memory_backends() and platform.libc_ver()[0] == "glibc":
        first = f"import paimon\n{USUAL}"
        assert run_and_read(first) == "jemalloc"
        assert run_and_read(first, ARROW_DEFAULT_MEMORY_POOL="system") == "system"
        assert run_and_read(first, PAIMON_PROCESS_EFFECTS="off") == run_and_read(USUAL)


def test_effects_that_are_turned_off_change_neither_allocator_nor_environment(tmp_path: object) -> None:
    program = OPENED.format(before="", folder=str(tmp_path))
    assert run_and_read(program, PAIMON_PROCESS_EFFECTS="off") == run_and_read(USUAL)
    variables = "import os; before = dict(os.environ); import paimon; print(before == dict(os.environ))"
    assert run_and_read(variables) == "False"
    assert run_and_read(variables, PAIMON_PROCESS_EFFECTS="off") == "True"


def test_the_environment_does_not_change_if_arrow_is_already_loaded() -> None:
    program = "import os, pyarrow, paimon; print(os.environ.get('JE_ARROW_MALLOC_CONF'))"
    assert run_and_read(program) == "None"
    assert run_and_read(program, JE_ARROW_MALLOC_CONF="thp:default") == "thp:default"
