"""The way of a call through the operations: how many modules run, and which.

Each budget is the number of modules under ``paimon/operations`` whose functions run. The calls of each walk, in their
order, as numbered lists: ``python tests/architecture/test_walks.py``.
"""

from __future__ import annotations

import inspect
import re
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa
import pytest

import paimon
from paimon.domain.commit.message import CommitMessage

PACKAGE = Path(paimon.__file__).parent
OPERATIONS = f"{PACKAGE / 'operations'}/"
BUDGETS: Mapping[str, int] = {
    "commit": 13,
    "write and prepare": 12,
    "Table.write": 28,
    "Table.write that compacts": 31,
    "compact": 26,
    "read": 12,
    "merge": 40,
}
"""The most modules of operations on each walk."""
DRAWN = {"Read": "read", "Write": "Table.write", "Commit": "commit", "Compact": "compact"}
"""The walks of ARCHITECTURE.md, by their titles there."""
IN_OTHER_CASES = {"evolve.py", "commit/group.py", "write/row_visibility.py", "write/resolve_commit.py"}
"""What ARCHITECTURE.md names of a walk for other tables, new columns, or unknown outcomes."""
DEEPEST = 2
"""Calls are printed if at most so many modules lie between them and the caller."""


class Walk:
    """The functions of the operations that ran, in the order of their first call, with their depth among themselves."""

    def __init__(self) -> None:
        self.calls: dict[tuple[str, str], int] = {}

    @property
    def modules(self) -> list[str]:
        """The modules, by name."""
        return sorted({module for module, _ in self.calls})

    def note_call(self, frame: FrameType, event: str, _: Any) -> None:
        """Note a call of a function, as a profile function; modules and classes run their bodies at import."""
        module = find_module(frame)
        if event == "call" and module and frame.f_code.co_flags & inspect.CO_OPTIMIZED:
            self.calls.setdefault((module, frame.f_code.co_qualname), measure_depth(frame))


def find_module(frame: FrameType) -> str:
    """The module of operations that a frame runs in; empty for others."""
    name = frame.f_code.co_filename
    return name.removeprefix(OPERATIONS) if name.startswith(OPERATIONS) else ""


def measure_depth(frame: FrameType) -> int:
    """How often callers of a frame went from one module of operations to another."""
    depth, inner, caller = 0, find_module(frame), frame.f_back
    while caller is not None:
        outer = find_module(caller)
        if outer and outer != inner:
            depth, inner = depth + 1, outer
        caller = caller.f_back
    return depth


@contextmanager
def trace_walk() -> Iterator[Walk]:
    """Note the calls of the body, in all threads that it starts."""
    walk, before = Walk(), sys.getprofile()
    threading.setprofile(walk.note_call)
    sys.setprofile(walk.note_call)
    try:
        yield walk
    finally:
        sys.setprofile(before)
        threading.setprofile(None)


def make_rows(first: int = 0) -> pa.Table:
    ids = range(first, first + 10)
    return pa.table({"id": pa.array(ids, pa.int64()), "v": [str(i) for i in ids]})


def create_table(home: str) -> paimon.Table:
    """A primary-key table with three sorted runs."""
    catalog = paimon.connect(home)
    catalog.create_database("d")
    columns = "id BIGINT NOT NULL, v STRING"
    table = catalog.create_table("d.t", columns, primary_keys=["id"], options={"bucket": 1})
    for _ in range(3):
        without_compaction(table).write(make_rows())
    return table


def without_compaction(table: paimon.Table) -> paimon.Table:
    return table.with_options({"write-only": True})


def prepare(table: paimon.Table) -> list[CommitMessage]:
    with without_compaction(table).new_batch_write_builder().new_write() as writer:
        writer.write_arrow(make_rows())
        return list(writer.prepare_commit())


def read(table: paimon.Table) -> None:
    assert table.scan(where="id > 3").to_arrow().num_rows == 6


def merge(table: paimon.Table) -> None:
    merging = table.merge(make_rows(5), on=["id"]).when_matched_update(set={"v": "source.v"})
    merging.when_not_matched_insert({"id": "source.id", "v": "source.v"}).execute()


def prepare_walk(name: str, table: paimon.Table) -> Callable[[], object]:
    """Bring a table into the state that a walk needs, and return the call to trace."""
    if name == "commit":
        committer = without_compaction(table).new_batch_write_builder().new_commit()
        return partial(committer.commit, prepare(table))
    if name == "Table.write that compacts":
        for _ in range(3):
            without_compaction(table).write(make_rows())
    calls: Mapping[str, Callable[[], object]] = {
        "write and prepare": partial(prepare, table),
        "Table.write": partial(table.write, make_rows()),
        "Table.write that compacts": partial(table.write, make_rows()),
        "compact": partial(table.compact, full=True),
        "read": partial(read, table),
        "merge": partial(merge, table),
    }
    return calls[name]


def trace_named_walk(name: str, home: str) -> Walk:
    call = prepare_walk(name, create_table(home))
    with trace_walk() as walk:
        call()
    return walk


@pytest.mark.parametrize("name", BUDGETS)
def test_a_walk_crosses_few_modules(name: str, tmp_path: Path) -> None:
    modules = trace_named_walk(name, str(tmp_path)).modules
    assert len(modules) <= BUDGETS[name], modules


def test_only_the_walk_that_compacts_reads_files(tmp_path: Path) -> None:
    """So the budget of the other one is not that of a write that found nothing to do by accident."""
    homes = [str(tmp_path / name) for name in ("a", "b")]
    plain, compacting = map(trace_named_walk, ("Table.write", "Table.write that compacts"), homes)
    assert "compact/compact_bucket.py" not in plain.modules
    assert "compact/compact_bucket.py" in compacting.modules


def find_named_modules(title: str) -> set[str]:
    """The modules of operations that a walk of ARCHITECTURE.md names, also in the steps that follow it."""
    page = (PACKAGE.parent / "ARCHITECTURE.md").read_text("utf8")
    (paragraph,) = re.findall(rf"^\*\*{title}\.\*\* .*?(?:\n\n|\Z)", page, re.MULTILINE | re.DOTALL)
    return set(re.findall(r"paimon/operations/([\w/]+\.py)", paragraph))


@pytest.mark.parametrize("title", DRAWN)
def test_the_map_names_modules_that_the_walk_crosses(title: str, tmp_path: Path) -> None:
    named = find_named_modules(title)
    assert named
    assert named <= {*trace_named_walk(DRAWN[title], str(tmp_path)).modules, *IN_OTHER_CASES}


def list_walks(walks: Mapping[str, Walk]) -> str:
    """The public calls of walks that enter a module, as numbered lists."""
    lines: list[str] = []
    for name, walk in walks.items():
        lines += ["", f"{name}: {len(walk.modules)} modules"]
        public = ((*call, depth) for call, depth in walk.calls.items() if not re.search(r"(^|\.)_|<", call[1]))
        shown = [call for call in public if call[0] != "table_context.py" and call[2] <= DEEPEST]
        for number, (module, function, depth) in enumerate(shown, 1):
            lines.append(f"{number:3}. {'  ' * depth}{function} ({module})")
    return "\n".join(lines)


if __name__ == "__main__":
    made: dict[str, Walk] = {}
    for given in BUDGETS:
        with tempfile.TemporaryDirectory() as folder:
            made[given] = trace_named_walk(given, folder)
    print(list_walks(made))
