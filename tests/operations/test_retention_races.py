"""Writers, a compactor, an expirer, a tagger and a cleaner as processes on one table, killed at random: no
acknowledged row is lost, none is doubled, none is refused.

Seconds in CI, half an hour by `--long`, which notes in `--progress DIR` how it went.
"""

from __future__ import annotations

import contextlib
import random
import time
from collections import Counter
from datetime import timedelta
from multiprocessing.process import BaseProcess
from pathlib import Path

import pyarrow as pa
import pytest

import paimon
from paimon.domain.errors import CommitConflict, CommitUncertain, NotFound
from paimon.testing.crowd import processes

KILL_EVERY = 3
ROLES = ("write", "write", "compact", "expire", "tag", "clean")
OPTIONS = {
    "bucket": "1", "snapshot.num-retained.min": "2", "snapshot.num-retained.max": "6", "changelog-producer": "input",
    "num-sorted-run.compaction-trigger": "3", "merge-engine": "aggregation", "fields.times.aggregate-function": "sum",
}  # fmt: skip


def opened(root: str) -> paimon.Table:
    table = paimon.open_table(root)
    assert isinstance(table, paimon.Table)
    return table


def work(role: str, root: str, number: int, until: float) -> None:
    """One process in its role; what a writer is told of each row goes to a file."""
    table, chance, turn = opened(root), random.Random(number), 0
    with open(f"{root}.{number}.told", "a", buffering=1) as told:
        while time.time() < until:
            turn += 1
            if role == "write":
                key = number * 1_000_000 + turn
                told.write(f"{key} begun\n")
                told.write(f"{key} {written(table, key)}\n")
            elif role == "compact":
                with contextlib.suppress(CommitConflict):  # the writers compact too
                    table.compact(full=chance.random() < 0.3)
                time.sleep(0.2)
            elif role == "expire":
                table.maintain.expire_snapshots(retain_min=1, retain_max=chance.choice([1, 2, 5]))
            elif role == "clean":
                table.maintain.remove_orphans(timedelta(seconds=60), allow_young=True, dry_run=False)
            else:
                tag_and_branch(table, f"{number}-{turn}", turn)


def written(table: paimon.Table, key: int) -> str:
    """Write one row; what became of it."""
    try:
        table.write(pa.table({"k": [key], "times": [1]}))
    except CommitConflict as error:
        return f"refused {error}".replace("\n", " ")
    except CommitUncertain:
        return "uncertain"
    return "acknowledged"


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


@pytest.mark.parametrize("seconds", [12, pytest.param(1800, marks=pytest.mark.long)])
def test_processes_that_die_lose_nothing(tmp_path: Path, progress: Path, seconds: int) -> None:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("db")
    columns = "k BIGINT NOT NULL, times BIGINT"
    table = catalog.create_table("db.t", columns, primary_keys=["k"], options=OPTIONS)
    table.write(pa.table({"k": [0], "times": [1]}))
    context, root, numbers = processes(), table.location, iter(range(1, 10_000))

    def started(role: str, until: float) -> BaseProcess:
        process = context.Process(target=work, args=(role, root, next(numbers), until))  # type: ignore[attr-defined]
        process.start()
        return process

    started("write", time.time()).join()  # where processes are forked, the imports are done now
    until = time.time() + seconds
    running = [started(role, until) for role in ROLES]
    killed: Counter[str] = Counter()
    while time.time() < until - KILL_EVERY:
        time.sleep(KILL_EVERY)
        place = random.randrange(len(ROLES))
        running[place].kill()
        running[place].join()
        running[place] = started(ROLES[place], until)
        killed[ROLES[place]] += 1
    for process in running:
        process.join()
        assert process.exitcode == 0
    told = [line.split(" ", 2) for file in tmp_path.glob("db.db/t.*.told") for line in file.read_text().splitlines()]
    begun, acknowledged = ({int(key) for key, what, *_ in told if what == said} for said in ("begun", "acknowledged"))
    rows = table.scan().to_arrow().to_pydict()
    found = dict(zip(rows["k"], rows["times"], strict=True))
    story = f"killed {dict(killed)}; {len(begun)} rows begun, {len(acknowledged)} acknowledged, {len(found) - 1} found"
    (progress / f"killed-{seconds}.txt").write_text(story)
    print(story)
    assert acknowledged
    assert acknowledged <= found.keys() <= begun | {0}
    assert set(found.values()) == {1}
    assert [line for line in told if line[1] in ("refused", "uncertain")] == []
    assert_whole(table)


def assert_whole(table: paimon.Table) -> None:
    """Nothing is at fault, all that has a name can be read, and the cleaner leaves it so."""
    assert table.maintain.check(deep=True).faults == ()
    for name in table.tags:
        assert table.scan(tag=name).count() >= 1
    for name in table.branches:
        if not list(Path(table.location, "branch", f"branch-{name}", "snapshot").glob("snapshot-*")):
            continue  # what a tagger left that was killed while it made or deleted the branch: no state of anything
        assert opened(f"{table.location}$branch_{name}").scan().count() >= 1
    table.maintain.remove_orphans(timedelta(0), allow_young=True, dry_run=False)
    assert table.maintain.check().faults == ()
    assert table.maintain.remove_orphans(timedelta(0), dry_run=True).num_rows == 0
