"""Writers, a compactor, an expirer, a tagger and a cleaner as processes on one table, killed at random: no
acknowledged row is lost, duplicated or refused.

It takes seconds in CI and half an hour with `--long`, which records its result in `--progress DIR`.
"""

from __future__ import annotations

import contextlib
import random
import time
import traceback
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from itertools import count
from multiprocessing.process import BaseProcess
from pathlib import Path

import pyarrow as pa
import pytest

import paimon
from paimon.domain.errors import CommitConflict, CommitUncertain, NotFound
from paimon.testing.stress_test import get_process_context

KILL_EVERY = 2
SLOW_SECONDS = 180
"""How much longer the test waits for the first written row and the first killed writer."""
ROLES = ("write", "write", "compact", "expire", "tag", "clean")
OPTIONS = {
    "bucket": "1", "snapshot.num-retained.min": "2", "snapshot.num-retained.max": "6", "changelog-producer": "input",
    "num-sorted-run.compaction-trigger": "3", "merge-engine": "aggregation", "fields.times.aggregate-function": "sum",
}  # fmt: skip


def open_table(root: str) -> paimon.Table:
    table = paimon.open_table(root)
    assert isinstance(table, paimon.Table)
    return table


def run_process(role: str, root: str, number: int) -> None:
    """Run one process, and keep the traceback of an error for the report of the test."""
    try:
        work(role, root, number)
    except Exception:
        Path(f"{root}.{number}.error").write_text(f"{role}: {traceback.format_exc()}")
        raise


def work(role: str, root: str, number: int) -> None:
    """Run one process in its role until the test creates the stop file. The result of each write goes to a file."""
    table, chance, step, stop = open_table(root), random.Random(number), 0, find_stop_file(root)
    if role == "threads":  # which share snapshots
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(partial(write_rows, table), [f"{number}.{thread}" for thread in range(4)]))
        return
    with open(f"{root}.{number}.log", "a", buffering=1) as log:
        while not stop.exists():
            step += 1
            if role == "write":
                key = number * 1_000_000 + step
                log.write(f"{key} started\n")
                log.write(f"{key} {write_row(table, key)}\n")
            elif role == "compact":
                with contextlib.suppress(CommitConflict):  # the writers compact too
                    table.compact(full=chance.random() < 0.3)
                time.sleep(0.2)
            elif role == "expire":
                table.maintain.expire_snapshots(retain_min=1, retain_max=chance.choice([1, 2, 5]))
            elif role == "clean":
                table.maintain.remove_orphans(timedelta(seconds=60), allow_young=True, dry_run=False)
            else:
                tag_and_branch(table, f"{number}-{step}", step)
                time.sleep(0.2)  # each tag is checked at the end


def write_rows(table: paimon.Table, name: str) -> None:
    """Write rows until the test creates the stop file, as one of several threads of a process."""
    number, thread = map(int, name.split("."))
    with open(f"{table.location}.{name}.log", "a", buffering=1) as log:
        for step in count(1):
            if find_stop_file(table.location).exists():
                return
            key = number * 1_000_000 + thread * 200_000 + step
            log.write(f"{key} started\n")
            log.write(f"{key} {write_row(table, key)}\n")


def find_stop_file(root: str) -> Path:
    return Path(f"{root}.stop")


def read_events(root: str) -> list[list[str]]:
    """Return what the writers logged: a key, what happened, and details."""
    logs = Path(root).parent.glob(f"{Path(root).name}.*.log")
    return [line.split(" ", 2) for file in logs for line in file.read_text().splitlines()]


def write_row(table: paimon.Table, key: int) -> str:
    """Write one row; return its result."""
    try:
        table.write(pa.table({"k": [key], "times": [1]}))
    except CommitConflict as error:
        return f"refused {error}".replace("\n", " ")
    except CommitUncertain:
        return "uncertain"
    return "acknowledged"


def tag_and_branch(table: paimon.Table, name: str, step: int) -> None:
    with contextlib.suppress(NotFound):  # the snapshot expired just now
        table.tags.create(name)
        assert table.scan(tag=name).count() >= 1
        if step % 3 == 0:
            table.branches.create(f"b{name}", name)
        if step % 2 == 0:
            table.tags.delete(name)
        if step % 9 == 0:
            table.branches.delete(f"b{name}")


@pytest.mark.slow("six processes run for four seconds")
@pytest.mark.parametrize(
    ("seconds", "writer"),
    [
        (4, "write"),
        pytest.param(20, "threads", marks=pytest.mark.nightly),
        pytest.param(1800, "write", marks=pytest.mark.long),
        pytest.param(1800, "threads", marks=pytest.mark.long),
    ],
)
def test_killed_processes_lose_no_rows(tmp_path: Path, progress: Path, seconds: int, writer: str) -> None:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("db")
    columns = "k BIGINT NOT NULL, times BIGINT"
    table = catalog.create_table("db.t", columns, primary_keys=["k"], options=OPTIONS)
    table.write(pa.table({"k": [0], "times": [1]}))
    context, root, numbers = get_process_context(), table.location, iter(range(1, 10_000))

    def start_process(role: str) -> BaseProcess:
        process = context.Process(target=run_process, args=(role, root, next(numbers)))  # type: ignore[attr-defined]
        process.start()
        return process

    roles = [writer if role == "write" else role for role in ROLES]
    running = [start_process(role) for role in roles]
    killed: Counter[str] = Counter()
    until = time.time() + seconds
    while time.time() < until or (not killed[writer] and time.time() < until + SLOW_SECONDS):
        time.sleep(KILL_EVERY)
        if not any(what == "acknowledged" for _, what, *_ in read_events(root)) and time.time() < until + SLOW_SECONDS:
            continue  # a slow machine: no process has written yet
        place = random.randrange(len(roles))
        running[place].kill()
        running[place].join()
        running[place] = start_process(roles[place])
        killed[roles[place]] += 1
    find_stop_file(root).touch()
    for process in running:
        process.join()
    assert [file.read_text() for file in tmp_path.glob("db.db/t.*.error")] == []
    assert {process.exitcode for process in running} == {0}
    events = read_events(root)
    started, acknowledged = (
        {int(key) for key, what, *_ in events if what == event} for event in ("started", "acknowledged")
    )
    rows = table.scan().to_arrow().to_pydict()
    found = dict(zip(rows["k"], rows["times"], strict=True))
    counts = f"{len(started)} rows started, {len(acknowledged)} acknowledged, {len(found) - 1} found"
    summary = f"killed {dict(killed)}; {counts}"
    (progress / f"killed-{writer}-{seconds}.txt").write_text(summary)
    print(summary)
    assert acknowledged
    assert acknowledged <= found.keys() <= started | {0}
    assert set(found.values()) == {1}
    assert [line for line in events if line[1] in ("refused", "uncertain")] == []
    assert_whole(table)


def assert_whole(table: paimon.Table) -> None:
    """The table has no faults, every named state can be read, also after orphan removal."""
    assert table.maintain.check(deep=True).faults == ()
    for name in table.tags:
        assert table.scan(tag=name).count() >= 1
    for name in table.branches:
        if not list(Path(table.location, "branch", f"branch-{name}", "snapshot").glob("snapshot-*")):
            continue  # left by a tagger that was killed while it created or deleted the branch: it has no state
        assert open_table(f"{table.location}$branch_{name}").scan().count() >= 1
    table.maintain.remove_orphans(timedelta(0), allow_young=True, dry_run=False)
    assert table.maintain.check().faults == ()
    assert table.maintain.remove_orphans(timedelta(0), dry_run=True).num_rows == 0
