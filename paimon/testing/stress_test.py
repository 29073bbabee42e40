"""Let several real processes write one table concurrently, then count every row.

Invariant: an acknowledged row is in the table exactly once. A refused row, or one whose storage failed, is not in it.
An uncertain row is in it once or not at all, and no other rows are. An append table shows a duplicate as two rows, and
a table with a primary key as a sum that is not 1. With dynamic buckets, writers share keys, whose sums count the
commits of all writers. There a key in two buckets shows as two rows. Readers see every row that was acknowledged before
their scan started.

Run it on your own storage with `python -m paimon.testing.stress_test LOCATION`.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from itertools import product
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Barrier, Event
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
from attrs import asdict, evolve, frozen

import paimon
from paimon.domain.errors import CommitConflict, CommitUncertain, StorageError
from paimon.domain.paths import TablePaths
from paimon.domain.snapshot.snapshot import CommitKind, Snapshot
from paimon.ports.snapshots import PublishOutcome, SnapshotCommit
from paimon.testing.stress_test_rounds import RoundResult, StressTest, summarize

COLUMNS = "writer INT NOT NULL, number INT NOT NULL, times INT NOT NULL"
PRIMARY_KEYS = ("writer", "number")
SHARED = -1
"""The column `writer` of the rows that all writers of a table with dynamic buckets share."""
_DATABASE = "stress_test"
_LOADED_ON_FIRST_USE = (
    "paimon.engines", "paimon.table", "paimon.operations.write.writer", "paimon.operations.compact.compact",
    "paimon.operations.commit.commit", "paimon.adapters.formats.parquet", "paimon.adapters.formats.avro", "pandas",
)  # fmt: skip
"""What a write loads, a second of CPU in each new process; Arrow loads pandas if it is installed."""
StorageOptions = Mapping[str, object]
Row = tuple[int, int]


@frozen(eq=False)
class UnlockedSnapshotCommit:
    """A SnapshotCommit that publishes like another one, but without its lock."""

    other: SnapshotCommit

    def lock(self, paths: TablePaths) -> AbstractContextManager[None]:
        """Return a context that locks nothing."""
        return nullcontext()

    def publish(self, paths: TablePaths, snapshot: Snapshot, base: Snapshot | None) -> PublishOutcome:
        """Publish a snapshot as the other SnapshotCommit does.

        Parameters
        ----------
        paths : TablePaths
            The paths of the table.
        snapshot : Snapshot
            The new snapshot.
        base : Snapshot, optional
            The snapshot that it follows.

        Returns
        -------
        PublishOutcome
            The outcome of the other SnapshotCommit.
        """
        return self.other.publish(paths, snapshot, base)


def get_process_context() -> BaseContext:
    """Return a context that starts new processes; where the system can, the imports are done once for all of them."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, *_LOADED_ON_FIRST_USE])
    return context


def run_round(
    warehouse: str,
    stress_test: StressTest,
    writer_storage: StorageOptions | None = None,
    checker_storage: StorageOptions | None = None,
) -> RoundResult:
    """Run a stress test on a new table, then count its rows and check its files.

    Parameters
    ----------
    warehouse : str
        The directory or URL in which the table is created. The table is dropped if the result is correct.
    stress_test : StressTest
        What the processes do.
    writer_storage : mapping, optional
        Storage options of the writers and readers.
    checker_storage : mapping, optional
        Storage options of this process, which creates, reads and checks the table.

    Returns
    -------
    RoundResult
        The counts of the round.
    """
    table_name = f"{_DATABASE}.t{uuid.uuid4().hex}"
    catalog = paimon.connect(warehouse, storage=checker_storage)
    catalog.create_database(_DATABASE, exist_ok=True)
    keys = PRIMARY_KEYS if stress_test.has_primary_key else ()
    table = catalog.create_table(table_name, COLUMNS, primary_keys=keys, options=stress_test.options)
    start = time.monotonic()
    with TemporaryDirectory() as folder:
        crashed = _run_processes(table.location, stress_test, writer_storage, Path(folder))
        logs = sorted(Path(folder).iterdir())
        commits = [line.split(" ", 5) for f in logs if not f.name.startswith("reader") for line in _read_lines(f)]
        scans = [line for f in logs if f.name.startswith("reader") for line in _read_lines(f)]
    seconds = round(time.monotonic() - start, 2)
    result = evolve(
        _check_rows(table, stress_test, commits),
        crashed_processes=crashed,
        seconds=seconds,
        scans=len(scans),
        incomplete_scans=_count_incomplete_scans(commits, scans),
    )
    if result.is_correct:
        catalog.drop_table(table_name)
    return result


def _read_lines(file: Path) -> list[str]:
    return file.read_text().splitlines()


def _run_processes(location: str, stress_test: StressTest, storage: StorageOptions | None, folder: Path) -> int:
    """Run the writers, and the readers until the writers end; return how many processes crashed."""
    context = get_process_context()
    steps = [compact_table, expire_snapshots] if stress_test.has_dynamic_buckets else []
    steps += [repair_table] if stress_test.is_repaired else []
    all_ready = context.Barrier(stress_test.writers + stress_test.readers + len(steps))
    writers_ended = context.Event()
    writers: list[BaseProcess] = []
    for number in range(stress_test.writers):
        values: tuple[object, ...] = (location, storage, stress_test, number, str(folder / str(number)), all_ready)
        writers.append(context.Process(target=run_writer, args=values))  # type: ignore[attr-defined]
    readers: list[BaseProcess] = []
    for number in range(stress_test.readers):
        values = (location, storage, str(folder / f"reader-{number}"), all_ready, writers_ended)
        readers.append(context.Process(target=run_reader, args=values))  # type: ignore[attr-defined]
    for step in steps:
        arguments = (step, location, storage, all_ready, writers_ended)
        readers.append(context.Process(target=run_maintenance, args=arguments))  # type: ignore[attr-defined]
    for process in (*writers, *readers):
        process.start()
    for process in writers:
        process.join()
    writers_ended.set()
    for process in readers:
        process.join()
    return sum(process.exitcode != 0 for process in (*writers, *readers))


def run_reader(
    location: str, storage: StorageOptions | None, log_path: str, all_ready: Barrier, writers_ended: Event
) -> None:
    """Scan the table in one process until the writers end, and log the start and the rows of each scan.

    The last scan starts after the last row was written. All processes of a machine have the same monotonic clock.

    Parameters
    ----------
    location : str
        The location of the table.
    storage : mapping, optional
        Storage options.
    log_path : str
        The file for one line per scan.
    all_ready : Barrier
        Lets all processes start at the same time.
    writers_ended : Event
        Is set when all writers have ended.
    """
    all_ready.wait()
    with open(log_path, "a", buffering=1) as log:
        is_last = False
        while not is_last:
            is_last = writers_ended.is_set()
            start_nanos = time.monotonic_ns()
            rows = paimon.open_table(location, storage=storage).scan(["writer", "number"]).to_arrow().to_pylist()
            log.write(f"{start_nanos} {','.join('{writer}.{number}'.format(**row) for row in rows)}\n")


def run_writer(
    location: str,
    storage: StorageOptions | None,
    stress_test: StressTest,
    writer: int,
    log_path: str,
    all_ready: Barrier,
) -> None:
    """Commit the rows of one writer, and log the outcome of each commit before the next one.

    Parameters
    ----------
    location : str
        The location of the table.
    storage : mapping, optional
        Storage options.
    stress_test : StressTest
        The number of commits, and whether the commit lock is used.
    writer : int
        The number of the writer, from 0.
    log_path : str
        The file for one line per commit: writer, number, outcome, duration in milliseconds, end in nanoseconds, error.
    all_ready : Barrier
        Lets all processes start at the same time.
    """
    table = paimon.open_table(location, storage=storage)
    assert isinstance(table, paimon.Table)
    if not stress_test.uses_lock:
        table = table.with_engine(evolve(table.engine, snapshots=UnlockedSnapshotCommit(table.engine.snapshots)))
    all_ready.wait()
    with open(log_path, "a", buffering=1) as log:
        for number in range(stress_test.commits):
            rows = build_rows(stress_test, writer, number)
            start = time.monotonic()
            outcome, reason = "acknowledged", ""
            try:
                table.write(rows)
            except CommitConflict as error:
                outcome, reason = "refused", " ".join(str(error).splitlines())
            except StorageError as error:
                outcome, reason = "failed", " ".join(str(error).splitlines())
            except CommitUncertain as error:
                outcome, reason = "uncertain", " ".join(str(error).splitlines())
            times = f"{1000 * (time.monotonic() - start):.0f} {time.monotonic_ns()}"
            log.write(f"{writer} {number} {outcome} {times} {reason}\n")


def build_rows(stress_test: StressTest, writer: int, number: int) -> pa.Table:
    """Return the rows of a commit: one of the writer, and with dynamic buckets one that all writers share.

    Parameters
    ----------
    stress_test : StressTest
        The kind of the table.
    writer : int
        The number of the writer.
    number : int
        The number of the commit.

    Returns
    -------
    pyarrow.Table
        One or two rows, each with one in `times`.
    """
    writers = [writer, SHARED] if stress_test.has_dynamic_buckets else [writer]
    rows = {"writer": writers, "number": [number] * len(writers), "times": [1] * len(writers)}
    return pa.table(rows, pa.schema(dict.fromkeys(rows, pa.int32())))


def run_maintenance(
    step: Callable[[paimon.Table, int], object],
    location: str,
    storage: StorageOptions | None,
    all_ready: Barrier,
    writers_ended: Event,
) -> None:
    """Repeat a step of maintenance until all writers have ended.

    Parameters
    ----------
    step : callable
        Takes the table and the number of the step.
    location : str
        The location of the table.
    storage : mapping, optional
        Storage options.
    all_ready : Barrier
        Lets all processes start at the same time.
    writers_ended : Event
        Is set when all writers have ended.
    """
    table = paimon.open_table(location, storage=storage)
    assert isinstance(table, paimon.Table)
    all_ready.wait()
    number = 0
    while not writers_ended.wait(0.05):
        with suppress(CommitConflict):  # a writer compacted the same files
            step(table, number)
        number += 1


def compact_table(table: paimon.Table, number: int) -> None:
    """Compact the table, every other time fully."""
    table.compact(full=number % 2 == 0)


def expire_snapshots(table: paimon.Table, number: int) -> None:
    """Expire all snapshots except the newest one to five."""
    table.maintain.expire_snapshots(retain_min=1, retain_max=1 + number % 5)


def repair_table(table: paimon.Table, number: int) -> None:
    """Find what makes the table slow or large, and repair it.

    Parameters
    ----------
    table : Table
        The table.
    number : int
        The number of the step.

    Raises
    ------
    RuntimeError
        A repair failed.
    """
    for finding in table.maintain.health(fix=True).findings:
        if finding.has_failed:
            raise RuntimeError(f"Repair {number} of {finding.kind.value} {finding.outcome}")


def _count_incomplete_scans(commits: Sequence[Sequence[str]], scans: Sequence[str]) -> int:
    """Count the scans that lack a row which was acknowledged before they started."""
    acknowledged = [(int(line[4]), f"{line[0]}.{line[1]}") for line in commits if line[2] == "acknowledged"]
    count = 0
    for line in scans:
        start_nanos, _, rows = line.partition(" ")
        expected = {row for end_nanos, row in acknowledged if end_nanos < int(start_nanos)}
        count += not expected <= set(rows.split(","))
    return count


def _check_rows(table: paimon.Table, stress_test: StressTest, commits: Sequence[Sequence[str]]) -> RoundResult:
    """Compare the rows of the table with the logged outcomes of the commits."""
    outcomes = {(int(line[0]), int(line[1])): line[2] for line in commits}
    rows = table.scan().to_arrow()
    found: Counter[Row] = Counter()
    for writer, number, times in zip(*(rows[name].to_pylist() for name in ("writer", "number", "times")), strict=True):
        found[writer, number] += times
    acknowledged = {row for row, outcome in outcomes.items() if outcome == "acknowledged"}
    uncertain = {row for row, outcome in outcomes.items() if outcome == "uncertain"}
    lost_shared = duplicated_shared = split_keys = 0
    if stress_test.has_dynamic_buckets:
        split_keys = rows.num_rows - len(found)
        lost_shared, duplicated_shared = _compare_shared_rows(found, acknowledged, uncertain)
    return RoundResult(
        stress_test=str(stress_test),
        acknowledged=len(acknowledged),
        lost=len(acknowledged - found.keys()) + lost_shared,
        duplicated=sum(times > 1 for times in found.values()) + duplicated_shared + split_keys,
        phantom=len(found.keys() - acknowledged - uncertain),
        uncertain=len(uncertain),
        crashed_processes=0,
        refused=tuple(line[5] for line in commits if line[2] == "refused"),
        faults=tuple(str(fault) for fault in table.maintain.check(deep=True).faults),
        slowest_millis=max((int(line[3]) for line in commits), default=0),
        seconds=0.0,
        failed=tuple(line[5] for line in commits if line[2] == "failed"),
        compactions=sum(s.commit_kind is CommitKind.COMPACT for s in table.snapshots()),
    )


def _compare_shared_rows(found: Counter[Row], acknowledged: set[Row], uncertain: set[Row]) -> tuple[int, int]:
    """Remove the rows that all writers share; return how many commits their sums lack, and how many are too many."""
    lost = duplicated = 0
    for number in {number for _, number in acknowledged | uncertain | found.keys()}:
        times = found.pop((SHARED, number), 0)
        least = sum(n == number for _, n in acknowledged)
        most = least + sum(n == number for _, n in uncertain)
        lost, duplicated = lost + max(0, least - times), duplicated + max(0, times - most)
    return lost, duplicated


def run_rounds(
    stress_tests: Sequence[StressTest], count: int, log: Path, run: Callable[[StressTest], RoundResult]
) -> Iterator[RoundResult]:
    """Run each stress test `count` times, alternately, without the rounds that the log already contains.

    Parameters
    ----------
    stress_tests : sequence of StressTest
        The stress tests; the same ones for the same log.
    count : int
        The number of rounds of each stress test.
    log : Path
        The file for one JSON object per round; created if it does not exist.
    run : callable
        Runs one round.

    Yields
    ------
    RoundResult
        The result of every round, first those in the log.
    """
    known = [RoundResult(**json.loads(line)) for line in log.read_text().splitlines()] if log.exists() else []
    yield from known
    with log.open("a") as out:
        for _, stress_test in list(product(range(count), stress_tests))[len(known) :]:
            result = run(stress_test)
            out.write(json.dumps(asdict(result)) + "\n")
            out.flush()
            yield result


_DESCRIPTION = """\
Let several processes write one new table at the same time, then count every row.

Each round creates a table in LOCATION, starts the writers, and compares the rows of the
table with the outcome of each commit. A round is correct if
  - each acknowledged row is in the table exactly once,
  - no commit was refused, and no other row is in the table,
  - each scan saw every row that was acknowledged before it started,
  - the check of all files and references of the table finds no fault.
The table of a correct round is dropped; a table with a violation is kept for analysis.
Rounds alternate between an append table and a table with a primary key."""
_EPILOG = """\
examples:
  one short round of each kind in a directory
    python -m paimon.testing.stress_test /tmp/stress
  100 rounds of each kind on a store; the same command continues a stopped run
    python -m paimon.testing.stress_test s3://bucket/stress --writers 8 --commits 25 \\
        --rounds 100 --log rounds.jsonl --storage endpoint=http://localhost:9000
  reads during writes, on a table whose reads skip level 0
    python -m paimon.testing.stress_test /tmp/stress --deletion-vectors --readers 2
  writers and readers, and a process that examines and repairs the table
    python -m paimon.testing.stress_test /tmp/stress --readers 2 --repair
  writers that share keys in one partition with dynamic buckets
    python -m paimon.testing.stress_test /tmp/stress --dynamic-buckets --writers 2

output: one line per round, then one line of sums per kind:
  acknowledged, lost, duplicated, phantom (never acknowledged) and uncertain rows;
  crashed processes; scans and incomplete scans of the readers; refused commits,
  failed commits (storage errors) and faults (of the check)

exit status: 0 if all rounds are correct, 1 if one is not."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status: 1 if a round is not correct."""
    options = _build_parser().parse_args(arguments)
    storage = dict(option.partition("=")[::2] for option in options.storage) or None
    stress_tests = [
        StressTest(
            options.writers,
            options.commits,
            has_primary_key,
            uses_lock=not options.no_lock,
            readers=options.readers,
            has_deletion_vectors=options.deletion_vectors,
            has_dynamic_buckets=options.dynamic_buckets,
            is_repaired=options.repair,
        )
        for has_primary_key in ((True,) if options.deletion_vectors or options.dynamic_buckets else (False, True))
    ]
    results = []
    with TemporaryDirectory() as folder:
        log = options.log or Path(folder) / "rounds"
        rounds = run_rounds(
            stress_tests, options.rounds, log, lambda test: run_round(options.location, test, storage, storage)
        )
        for result in rounds:
            results.append(result)
            verdict = "correct" if result.is_correct else f"NOT CORRECT: {result}"
            print(f"{result.stress_test}: {verdict}", flush=True)
    print(summarize(results))
    return 0 if all(r.is_correct for r in results) else 1


def _build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m paimon.testing.stress_test",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("location", metavar="LOCATION", help="directory or URL in which the tables are created")
    parser.add_argument("--writers", metavar="N", type=int, default=6, help="processes that write (6)")
    parser.add_argument("--commits", metavar="N", type=int, default=10, help="commits of each writer (10)")
    parser.add_argument("--rounds", metavar="N", type=int, default=1, help="rounds of each kind of table (1)")
    parser.add_argument("--readers", metavar="N", type=int, default=0, help="processes that scan during the writes (0)")
    parser.add_argument(
        "--no-lock", action="store_true", help="publish without the commit lock, with up to 1000 retries per commit"
    )
    parser.add_argument(
        "--deletion-vectors", action="store_true", help="only the table with a primary key, with deletion vectors"
    )
    parser.add_argument(
        "--dynamic-buckets",
        action="store_true",
        help="only a table with dynamic buckets, in which the writers share keys; with compaction and expiry",
    )
    parser.add_argument(
        "--repair", action="store_true", help="writers leave maintenance to a process that repairs what it finds"
    )
    parser.add_argument(
        "--log", metavar="FILE", type=Path, help="file for the result of each round, to continue a stopped run"
    )
    parser.add_argument(
        "--storage", action="append", default=[], metavar="KEY=VALUE", help="a storage option; may be repeated"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
