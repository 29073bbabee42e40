"""Real processes that write one table at the same time, and what became of their rows.

Law: a row that was acknowledged is there once; a row that was refused, or whose storage failed again and again, is not;
one that is uncertain is there once or not at all; no other row is there. Append tables show a doubled row as two, keyed
ones by a sum that is not 1. Readers, where there are some, see every row that was acknowledged before they began.

    python -m paimon.testing.crowd LOCATION --writers 8 --commits 25 --rounds 100 --log rounds.jsonl

proves a storage of one's own so (``--vectors --readers 2``: with readers of a table whose reads skip level 0); a run
that was stopped goes on behind the rounds that its log holds.
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
from multiprocessing.synchronize import Barrier, Event
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
VECTORS = {"deletion-vectors.enabled": "true"}
PATIENT = {"commit.max-retries": "1000"}
_NUMBERS = ("acknowledged", "lost", "doubled", "phantom", "uncertain", "died", "reads", "unseen")
Storage = Mapping[str, object]
Row = tuple[int, int]


@frozen
class Crowd:
    """So many processes, each of which commits so many rows one by one, to a table with a key or without.

    With `races` nobody takes turns, and whoever loses tries again as often as it takes. `readers` are processes that
    scan the table until the writers end; with `vectors` the keyed table has deletion vectors.
    """

    writers: int
    commits: int
    keyed: bool
    races: bool = False
    readers: int = 0
    vectors: bool = False

    def __str__(self) -> str:
        kind = ("vectors" if self.vectors else "keyed") if self.keyed else "append"
        readers = f", {self.readers} readers" if self.readers else ""
        return f"{self.writers} x {self.commits} {kind}{', racing' if self.races else ''}{readers}"

    @property
    def options(self) -> Mapping[str, str]:
        """The table's."""
        vectors = VECTORS if self.keyed and self.vectors else {}
        return {**(KEYED if self.keyed else {}), **vectors, **(PATIENT if self.races else {})}


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
    """What became of the rows of one round; `refused`, `failed` (by the storage) and `faults` say why.

    `unseen` counts the scans that did not show a row which was acknowledged before they began.
    """

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
    reads: int = 0
    unseen: int = 0

    @property
    def is_well(self) -> bool:
        """Whether nothing was lost, doubled, made up, refused, failed or broken, and every reader saw what it must."""
        bad = self.lost + self.doubled + self.phantom + self.died + self.unseen
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
        died = _let_act(table.location, crowd, writers, Path(folder))
        files = sorted(Path(folder).iterdir())
        told = [line.split(" ", 5) for f in files if not f.name.startswith("reader") for line in _lines(f)]
        read = [line for f in files if f.name.startswith("reader") for line in _lines(f)]
    outcome = _judged(table, crowd, told, died, time.monotonic() - start)
    outcome = evolve(outcome, reads=len(read), unseen=_unseen(told, read))
    if outcome.is_well:
        catalog.drop_table(name)
    return outcome


def _lines(file: Path) -> list[str]:
    return file.read_text().splitlines()


def _let_act(location: str, crowd: Crowd, storage: Storage | None, folder: Path) -> int:
    """Runs the writers, and the readers until these end; answers how many of them all ended badly."""
    context = processes()
    ready, ended = context.Barrier(crowd.writers + crowd.readers), context.Event()
    writers: list[BaseProcess] = []
    for number in range(crowd.writers):
        given: tuple[object, ...] = (location, storage, crowd, number, str(folder / str(number)), ready)
        writers.append(context.Process(target=write, args=given))  # type: ignore[attr-defined]
    readers: list[BaseProcess] = []
    for number in range(crowd.readers):
        given = (location, storage, str(folder / f"reader-{number}"), ready, ended)
        readers.append(context.Process(target=read_on, args=given))  # type: ignore[attr-defined]
    for process in (*writers, *readers):
        process.start()
    for process in writers:
        process.join()
    ended.set()
    for process in readers:
        process.join()
    return sum(process.exitcode != 0 for process in (*writers, *readers))


def read_on(location: str, storage: Storage | None, told: str, ready: Barrier, ended: Event) -> None:
    """One process: when each of its scans began, and what it saw, goes to a file; the last scan follows the last row.

    All processes of a machine have one monotonic clock.
    """
    ready.wait()
    with open(told, "a", buffering=1) as log:
        is_last = False
        while not is_last:
            is_last = ended.is_set()
            begun = time.monotonic_ns()
            seen = paimon.open_table(location, storage=storage).scan(["writer", "number"]).to_arrow().to_pylist()
            log.write(f"{begun} {','.join('{writer}.{number}'.format(**row) for row in seen)}\n")


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
            took = f"{1000 * (time.monotonic() - begun):.0f} {time.monotonic_ns()}"
            log.write(f"{writer} {number} {answer} {took} {why}\n")


def _unseen(told: Sequence[Sequence[str]], read: Sequence[str]) -> int:
    """How many scans lack a row that was acknowledged before they began."""
    acknowledged = [(int(line[4]), f"{line[0]}.{line[1]}") for line in told if line[2] == "acknowledged"]
    found = 0
    for line in read:
        begun, _, seen = line.partition(" ")
        due = {row for moment, row in acknowledged if moment < int(begun)}
        found += not due <= set(seen.split(","))
    return found


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
        refused=tuple(line[5] for line in told if line[2] == "refused"),
        faults=tuple(str(fault) for fault in table.maintain.check(deep=True).faults),
        slowest_millis=max((int(line[3]) for line in told), default=0),
        seconds=round(seconds, 2),
        failed=tuple(line[5] for line in told if line[2] == "failed"),
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
    parser.add_argument("--readers", type=int, default=0, help="processes that scan meanwhile")
    parser.add_argument("--vectors", action="store_true", help="only the keyed table, with deletion vectors")
    parser.add_argument("--log", type=Path, help="where each round is noted (default: nowhere)")
    parser.add_argument("--storage", action="append", default=[], metavar="KEY=VALUE", help="a storage option")
    given = parser.parse_args(arguments)
    storage = dict(option.partition("=")[::2] for option in given.storage) or None
    kinds = (True,) if given.vectors else (False, True)
    crowds = [Crowd(given.writers, given.commits, k, given.races, given.readers, given.vectors) for k in kinds]
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
