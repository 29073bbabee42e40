"""Writers, an expirer, a tagger and a cleaner as processes on one table, killed at random: no acknowledged row is lost.

`FULL_RACES=1` lets them run for minutes.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import random
import time
from datetime import timedelta
from multiprocessing.process import BaseProcess
from pathlib import Path

import pyarrow as pa

import paimon
from paimon.domain.errors import CommitConflict, NotFound

SECONDS = 180 if os.environ.get("FULL_RACES") else 12
KILL_EVERY = 3
ROLES = ("write", "write", "expire", "tag", "clean")
OPTIONS = {
    "bucket": "1", "snapshot.num-retained.min": "2", "snapshot.num-retained.max": "6", "changelog-producer": "input",
    "num-sorted-run.compaction-trigger": "3",
}  # fmt: skip


def opened(root: str) -> paimon.Table:
    table = paimon.open_table(root)
    assert isinstance(table, paimon.Table)
    return table


def work(role: str, root: str, number: int, until: float) -> None:
    """One process in its role; what a writer was told of goes to a file."""
    table, chance, turn = opened(root), random.Random(number), 0
    with open(f"{root}.{number}.acknowledged", "a") as told:
        while time.time() < until:
            turn += 1
            if role == "write":
                key = number * 1_000_000 + turn
                with contextlib.suppress(CommitConflict):
                    table.write(pa.table({"k": pa.array([key], pa.int64())}))
                    told.write(f"{key}\n")
                    told.flush()
            elif role == "expire":
                table.maintain.expire_snapshots(retain_min=1, retain_max=chance.choice([1, 2, 5]))
            elif role == "clean":
                table.maintain.remove_orphans(timedelta(seconds=60), allow_young=True)
            else:
                tag_and_branch(table, f"{number}-{turn}", turn)


def tag_and_branch(table: paimon.Table, name: str, turn: int) -> None:
    with contextlib.suppress(NotFound):  # the snapshot expired just now
        table.tags.create(name)
        assert table.scan(tag=name).count() >= 1
        if turn % 3 == 0:
            table.branches.create(f"b{name}", name)
        if turn % 2 == 0:
            table.tags.delete(name)
        if turn % 9 == 0:
            table.branches.delete(f"b{name}")


def test_processes_that_die_lose_nothing(tmp_path: Path) -> None:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("db")
    table = catalog.create_table("db.t", "k BIGINT NOT NULL", primary_keys=["k"], options=OPTIONS)
    table.write(pa.table({"k": pa.array([0], pa.int64())}))
    spawn, root, until = multiprocessing.get_context("spawn"), table.location, time.time() + SECONDS
    numbers = iter(range(1, 10_000))

    def started(role: str) -> BaseProcess:
        process = spawn.Process(target=work, args=(role, root, next(numbers), until))
        process.start()
        return process

    running = [started(role) for role in ROLES]
    while time.time() < until - KILL_EVERY:
        time.sleep(KILL_EVERY)
        place = random.randrange(len(ROLES))
        running[place].kill()
        running[place].join()
        running[place] = started(ROLES[place])
    for process in running:
        process.join()
        assert process.exitcode == 0
    told = {int(line) for file in tmp_path.glob("db.db/t.*.acknowledged") for line in file.read_text().splitlines()}
    assert told <= set(table.scan().to_arrow()["k"].to_pylist())
    assert table.maintain.check(deep=True).faults == ()
    for name in table.tags:
        assert table.scan(tag=name).count() >= 1
    for name in table.branches:
        assert opened(f"{root}$branch_{name}").scan().count() >= 1
    table.maintain.remove_orphans(timedelta(0), allow_young=True)
    assert table.maintain.check().faults == ()
    assert table.maintain.remove_orphans(timedelta(0), dry_run=True).num_rows == 0
