"""Real processes that write one table at the same time, and what became of their rows.

Law: a row that was acknowledged is there once; a row that was refused, or whose storage failed again and again, is not;
one that is uncertain is there once or not at all; no other row is there. Append tables show a doubled row as two, keyed
ones by a sum that is not 1.

    python -m paimon.testing.crowd LOCATION --writers 8 --commits 25 --rounds 100 --log rounds.jsonl

proves a storage of one's own so; a run that was stopped goes on behind the rounds that its log holds.
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
from contextlib import AbstractContextManager, nullcontext
from itertools import product
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Barrier
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
from attrs import asdict, evolve, frozen

import paimon
from paimon.domain.errors import CommitConflict, CommitUncertain, StorageError
from paimon.domain.paths import TablePaths
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.ports.snapshots import PublishOutcome, SnapshotCommit

COLUMNS = "writer INT NOT NULL, number INT NOT NULL, times INT NOT NULL"
KEYS = ("writer", "number")
KEYED = {"bucket": "1", "merge-engine": "aggregation", "fields.times.aggregate-function": "sum"}
PATIENT = {"commit.max-retries": "1000"}
_NUMBERS = ("acknowledged", "lost", "doubled", "phantom", "uncertain", "died")
Storage = Mapping[str, object]
Row = tuple[int, int]


@frozen
class Crowd:
    """So many processes, each of which commits so many rows one by one, to a table with a key or without.

    With `races` nobody takes turns, and whoever loses tries again as often as it takes.
    """

    writers: int
    commits: int
    keyed: bool
    races: bool = False

    def __str__(self) -> str:
        kind = "keyed" if self.keyed else "append"
        return f"{self.writers} x {self.commits} {kind}{', racing' if self.races else ''}"

    @property
    def options(self) -> Mapping[str, str]:
        """The table's."""
        return {**(KEYED if self.keyed else {}), **(PATIENT if self.races else {})}


@frozen(eq=False)
class Heedless:
    """Publishes as another does, and takes no turns."""

    other: SnapshotCommit

    def turn(self, paths: TablePaths) -> AbstractContextManager[None]:
        """Nobody waits."""
        return nullcontext()

    def publish(self, paths: TablePaths, snapshot: Snapshot, base: Snapshot | None) -> PublishOutcome:
        """As the other does."""
        return self.other.publish(paths, snapshot, base)


@frozen
class Outcome:
    """What became of the rows of one round; `refused`, `failed` (by the storage) and `faults` say why."""

    crowd: str
    acknowledged: int
    lost: int
    doubled: int
    phantom: int
    uncertain: int
    died: int
    refused: tuple[str, ...]
    faults: tuple[str, ...]
    slowest_millis: int
    seconds: float
    failed: tuple[str, ...] = ()

    @property
    def is_well(self) -> bool:
        """Whether nothing was lost, doubled, made up, refused, failed or broken."""
        bad = self.lost + self.doubled + self.phantom + self.died
        return not (bad or self.refused or self.failed or self.faults)


def processes() -> BaseContext:
    """How processes are started: each is fresh; where the system can, the imports are done once for all of them."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, "paimon.engines"])
    return context


def one_round(warehouse: str, crowd: Crowd, writers: Storage | None = None, judge: Storage | None = None) -> Outcome:
    """Let the crowd write a new table of the warehouse, then read it.

    Parameters
    ----------
    warehouse : str
        Where the table is made; it is dropped again if the round went well.
    crowd : Crowd
        Who writes.
    writers, judge : mapping, optional
        Storage options of the processes that write, and of the one that makes, reads and checks the table.
    """
    name = f"crowd.t{uuid.uuid4().hex}"
    catalog = paimon.connect(warehouse, storage=judge)
    catalog.create_database("crowd", exist_ok=True)
    keys = KEYS if crowd.keyed else ()
    table = catalog.create_table(name, COLUMNS, primary_keys=keys, options=crowd.options)
    start = time.monotonic()
    with TemporaryDirectory() as folder:
        died = _let_write(table.location, crowd, writers, Path(folder))
        told = [line.split(" ", 4) for file in sorted(Path(folder).iterdir()) for line in file.read_text().splitlines()]
    outcome = _judged(table, crowd, told, died, time.monotonic() - start)
    if outcome.is_well:
        catalog.drop_table(name)
    return outcome


def _let_write(location: str, crowd: Crowd, storage: Storage | None, folder: Path) -> int:
    """Runs the writers; answers how many of them ended badly."""
    context = processes()
    ready = context.Barrier(crowd.writers)
    started: list[BaseProcess] = []
    for writer in range(crowd.writers):
        told = str(folder / str(writer))
        process = context.Process(  # type: ignore[attr-defined]
            target=write, args=(location, storage, crowd, writer, told, ready)
        )
        process.start()
        started.append(process)
    for process in started:
        process.join()
    return sum(process.exitcode != 0 for process in started)


def write(location: str, storage: Storage | None, crowd: Crowd, writer: int, told: str, ready: Barrier) -> None:
    """One process: what it is told of each commit goes to a file before it goes on."""
    table = paimon.open_table(location, storage=storage)
    assert isinstance(table, paimon.Table)
    if crowd.races:
        table = evolve(table, engine=evolve(table.engine, snapshots=Heedless(table.engine.snapshots)))
    ready.wait()
    with open(told, "a", buffering=1) as log:
        for number in range(crowd.commits):
            rows = {"writer": [writer], "number": [number], "times": [1]}
            begun = time.monotonic()
            answer, why = "acknowledged", ""
            try:
                table.write(pa.table(rows, pa.schema(dict.fromkeys(rows, pa.int32()))))
            except CommitConflict as error:
                answer, why = "refused", " ".join(str(error).splitlines())
            except StorageError as error:
                answer, why = "failed", " ".join(str(error).splitlines())
            except CommitUncertain as error:
                answer, why = "uncertain", " ".join(str(error).splitlines())
            log.write(f"{writer} {number} {answer} {1000 * (time.monotonic() - begun):.0f} {why}\n")


def _judged(table: paimon.Table, crowd: Crowd, told: Sequence[Sequence[str]], died: int, seconds: float) -> Outcome:
    answers = {(int(line[0]), int(line[1])): line[2] for line in told}
    rows = table.scan().to_arrow()
    found: Counter[Row] = Counter()
    for writer, number, times in zip(*(rows[name].to_pylist() for name in ("writer", "number", "times")), strict=True):
        found[writer, number] += times
    acknowledged = {row for row, answer in answers.items() if answer == "acknowledged"}
    uncertain = {row for row, answer in answers.items() if answer == "uncertain"}
    return Outcome(
        crowd=str(crowd),
        acknowledged=len(acknowledged),
        lost=len(acknowledged - found.keys()),
        doubled=sum(times > 1 for times in found.values()),
        phantom=len(found.keys() - acknowledged - uncertain),
        uncertain=len(uncertain),
        died=died,
        refused=tuple(line[4] for line in told if line[2] == "refused"),
        faults=tuple(str(fault) for fault in table.maintain.check(deep=True).faults),
        slowest_millis=max((int(line[3]) for line in told), default=0),
        seconds=round(seconds, 2),
        failed=tuple(line[4] for line in told if line[2] == "failed"),
    )


def rounds(crowds: Sequence[Crowd], count: int, log: Path, play: Callable[[Crowd], Outcome]) -> Iterator[Outcome]:
    """So many rounds of each crowd, the crowds in turn; those that the log holds are not played again.

    Yields
    ------
    Outcome
        Of every round, also of those in the log.
    """
    known = [Outcome(**json.loads(line)) for line in log.read_text().splitlines()] if log.exists() else []
    yield from known
    with log.open("a") as noted:
        for _, crowd in list(product(range(count), crowds))[len(known) :]:
            outcome = play(crowd)
            noted.write(json.dumps(asdict(outcome)) + "\n")
            noted.flush()
            yield outcome


def summary(outcomes: Sequence[Outcome]) -> str:
    """One line for each crowd."""
    lines = []
    for crowd in dict.fromkeys(o.crowd for o in outcomes):
        mine = [o for o in outcomes if o.crowd == crowd]
        counted = {name: sum(getattr(o, name) for o in mine) for name in _NUMBERS}
        counted |= {name: sum(len(getattr(o, name)) for o in mine) for name in ("refused", "failed", "faults")}
        figures = ", ".join(f"{number} {name}" for name, number in counted.items())
        speed = counted["acknowledged"] / max(sum(o.seconds for o in mine), 0.001)
        slowest = max(o.slowest_millis for o in mine)
        lines.append(f"{crowd}, {len(mine)} rounds: {figures}; slowest {slowest} ms, {speed:.1f} commits/s")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; answers 1 if a round did not go well."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("location", help="a directory, or the URL of a place in a store, for the tables")
    parser.add_argument("--writers", type=int, default=6)
    parser.add_argument("--commits", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--races", action="store_true", help="nobody takes turns; retries as often as it takes")
    parser.add_argument("--log", type=Path, help="where each round is noted (default: nowhere)")
    parser.add_argument("--storage", action="append", default=[], metavar="KEY=VALUE", help="a storage option")
    given = parser.parse_args(arguments)
    storage = dict(option.partition("=")[::2] for option in given.storage) or None
    crowds = [Crowd(given.writers, given.commits, keyed, given.races) for keyed in (False, True)]
    outcomes = []
    with TemporaryDirectory() as folder:
        log = given.log or Path(folder) / "rounds"
        for outcome in rounds(crowds, given.rounds, log, lambda c: one_round(given.location, c, storage, storage)):
            outcomes.append(outcome)
            print(f"{outcome.crowd}: {'well' if outcome.is_well else outcome}", flush=True)
    print(summary(outcomes))
    return 0 if all(o.is_well for o in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
