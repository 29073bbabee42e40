"""A fast-forward that dies at any operation leaves the old state or the new one, and the repeated call finishes it."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from support.case_lists import mark_nightly
from support.simulated_engines import assemble

import paimon
from paimon.domain.identifier import Identifier
from paimon.domain.paths import TablePaths
from paimon.domain.types.ddl import parse_columns
from paimon.operations.evolve import TableDeclaration, create_table
from paimon.ports.engine import Engine
from paimon.table import open_at
from paimon.testing.faulty_files import Fault, FaultyFiles, ProcessDied, plan_numbered_faults
from paimon.testing.interleaving import ConstantRandom, Interleaving, SequentialIds, SimulatedClock
from paimon.testing.memory_files import MemoryFiles

ROOT = "/lake/d.db/t"
SHAPES = {
    "longer": (1, 4),
    "longer by one": (2, 3),
    "equal": (3, 3),
    "shorter": (4, 1),
    "shorter by one": (3, 2),
    "nothing of its own": (0, 2),
}
"""How many snapshots the main branch and the other one have after the common one."""


VARIANTS = [("longer", "no hint"), ("shorter", "no hint"), ("longer", "expired"), ("shorter", "expired")]
WRITES = ("put_if_absent", "replace", "close", "delete")
IDS = SequentialIds()
HINT = f"{ROOT}/snapshot/LATEST"


def open_table(engine: Engine, branch: str = "main") -> Any:
    return open_at(engine, ROOT, Identifier("d", "t", branch), {})


def engine_on(files: Any) -> Engine:
    return assemble(files, SimulatedClock(Interleaving()), IDS, ConstantRandom())


def copy(files: MemoryFiles) -> MemoryFiles:
    copied = MemoryFiles()
    copied.contents = dict(files.contents)
    return copied


def create_branches(own: int, other: int, *, expired: bool = False) -> MemoryFiles:
    files = MemoryFiles()
    engine = engine_on(files)
    options = {"bucket": "1", "file.format": "avro", "write-only": "true"}
    declaration = TableDeclaration(parse_columns("id INT NOT NULL, v INT"), ("id",), options=options)
    create_table(engine, TablePaths(ROOT), declaration)
    table = open_table(engine)
    table.write({"id": [1], "v": [1]})
    table.write({"id": [2], "v": [1]})
    table.tags.create("base")
    table.branches.create("side", "base")
    for number in range(own):
        table.write({"id": [10 + number], "v": [1]})
        table.tags.create(f"own-{number}")
    if expired:
        table.maintain.expire_snapshots(retain_min=1, retain_max=1)
    side = open_table(engine, "side")
    if other > 1:
        side = side.add_column("w", "INT")
    for number in range(other):
        side.write({"id": [20 + number, 2], "v": [2, number]}, missing_columns="null")
        side.tags.create(f"side-{number}")
    return files


def read(files: MemoryFiles) -> tuple[tuple[int, int], ...]:
    rows = open_table(engine_on(files)).scan(["id", "v"]).to_arrow().to_pylist()
    return tuple(sorted((row["id"], row["v"]) for row in rows))


def read_everything(files: MemoryFiles) -> dict[str, object]:
    table = open_table(engine_on(files))
    assert not [f for f in table.maintain.check(deep=True).faults if not f.kind.is_harmless]
    found: dict[str, object] = {s.id: s.identity for s in table.snapshots()} | {
        n: t.snapshot.id for n, t in table.tags.items()
    }
    return found | {"columns": table.schema.names, "rows": read(files)}


@pytest.mark.parametrize(("shape", "variant"), mark_nightly([*((name, "") for name in SHAPES), *VARIANTS],
    always=[("longer", ""), ("equal", ""), ("shorter", ""), ("shorter", "expired")]))  # fmt: skip
def test_a_killed_fast_forward_leaves_the_old_or_the_new_state(shape: str, variant: str) -> None:
    start = create_branches(*SHAPES[shape], expired=variant == "expired")
    if variant == "no hint":
        start.contents.pop(HINT)
    done, operations, count = copy(start), list[str](), SHAPES[shape][1]
    counted = FaultyFiles(done, lambda operation, path: operations.append(operation))
    open_table(engine_on(counted)).branches.fast_forward("side")
    old, new, wanted = read(start), read(done), read_everything(done)
    assert new == ((1, 1), (2, count - 1), *((20 + n, 2) for n in range(count)))
    states, earlier = set(), None
    for number in [n for n, operation in enumerate(operations) if operation in WRITES] + [len(operations)]:
        left, fault = copy(start), plan_numbered_faults({number: Fault.DIE_BEFORE})
        with contextlib.suppress(ProcessDied):
            open_table(engine_on(FaultyFiles(left, fault))).branches.fast_forward("side")
        if left.contents == earlier:
            continue
        earlier = dict(left.contents)
        states.add(read(left))
        unhinted = copy(left)
        unhinted.contents.pop(HINT, None)
        assert {read(left), read(unhinted)} <= {old, new}, (number, operations[number:])
        open_table(engine_on(left)).branches.fast_forward("side")
        assert read_everything(left) == wanted
    assert states == {old, new}


def test_a_commit_during_a_fast_forward_is_not_replaced() -> None:
    files = create_branches(0, 1)
    table = open_table(engine_on(files))

    def commit(operation: str, path: str) -> None:
        if operation == "put_if_absent" and path.endswith("/snapshot-3"):
            table.write({"id": [99], "v": [9]}, missing_columns="null")

    with pytest.raises(paimon.CommitConflict, match="published snapshot 3"):
        open_table(engine_on(FaultyFiles(files, commit))).branches.fast_forward("side")
    assert (99, 9) in read(files)
    assert table.snapshot().id == 3
