"""How often, how long and with which waits a commit is retried, measured with a simulated clock."""

from __future__ import annotations

from collections.abc import Collection

import pytest
from support.commit_tables import create, data_file, engine_on, live_names, message, table_at

from paimon.domain.commit.message import CompactIncrement
from paimon.domain.commit.request import CommitRequest, CommitResult
from paimon.domain.errors import CommitConflict
from paimon.domain.schema.table_definition import TableDefinition
from paimon.operations.commit.commit import commit
from paimon.operations.table_context import TableContext
from paimon.ports.engine import Engine
from paimon.testing.faulty_files import Fault, FaultyFiles
from paimon.testing.memory_files import MemoryFiles

ATTEMPT_MILLIS = 3
"""What each attempt takes by the clock of the test."""


class HandClock:
    """A clock that advances by sleeps and by the test only."""

    def __init__(self) -> None:
        self.now = 1_700_000_000_000
        self.slept: list[float] = []

    def now_millis(self) -> int:
        return int(self.now)

    def local_offset_millis(self, at_millis: int) -> int:
        return 0

    def sleep_millis(self, millis: float) -> None:
        self.slept.append(round(millis, 6))
        self.now += millis  # type: ignore[assignment]


class Half:
    """Randomness that always returns the middle of the range."""

    def uniform(self) -> float:
        return 0.5


def create_losing_engine(
    times: int | Collection[int], options: dict[str, str], keyed: bool = False
) -> tuple[Engine, TableDefinition, HandClock]:
    """An engine whose first puts (or the puts of these numbers) fail: another commit publishes the id before."""
    memory = MemoryFiles()
    table = table_at("/lake/t", options=options, keyed=keyed)
    late = range(1, times + 1) if isinstance(times, int) else times
    faultless = engine_on(memory)
    create(faultless, table)
    clock = HandClock()
    puts: list[str] = []

    def publish_first(operation: str, path: str) -> Fault | None:
        if operation == "put_if_absent":
            puts.append(path)
            if len(puts) in late:
                clock.now += ATTEMPT_MILLIS
                commit(TableContext(faultless, table), CommitRequest((message(table, [f"other{len(puts)}"]),), "other"))
        return None

    return engine_on(FaultyFiles(memory, publish_first), clock, random=Half()), table, clock


def mine(engine: Engine, table: TableDefinition) -> CommitResult:
    return commit(TableContext(engine, table), CommitRequest((message(table, ["mine"]),), "me"))


def test_waits_double_between_the_limits_with_random_fifths() -> None:
    options = {"commit.min-retry-wait": "10 ms", "commit.max-retry-wait": "50 ms"}
    engine, table, clock = create_losing_engine(5, options)
    done = mine(engine, table)
    assert clock.slept == [11.0, 22.0, 44.0, 55.0, 55.0]
    assert (done.retries, done.snapshot_ids) == (5, (6,))


def test_by_default_ten_retries_without_a_bound_in_time() -> None:
    engine, table, clock = create_losing_engine(10**6, {})
    with pytest.raises(CommitConflict, match="11 concurrent commits were published first"):
        mine(engine, table)
    assert clock.slept == [11.0 * 2**i for i in range(10)]
    engine, table, _ = create_losing_engine(10, {})
    assert mine(engine, table).retries == 10


@pytest.mark.parametrize(("retries", "waits"), [("0", []), ("1", [11.0]), ("3", [11.0, 22.0, 44.0])])
def test_the_option_limits_the_retries(retries: str, waits: list[float]) -> None:
    engine, table, clock = create_losing_engine(10**6, {"commit.max-retries": retries})
    with pytest.raises(CommitConflict, match=f"{len(waits) + 1} concurrent"):
        mine(engine, table)
    assert clock.slept == waits
    assert "mine" not in live_names(engine, table)


def test_no_retry_begins_after_the_timeout() -> None:
    options = {"commit.timeout": "100 ms", "commit.max-retries": "1000"}
    engine, table, clock = create_losing_engine(10**6, options)
    with pytest.raises(CommitConflict, match=r"5 concurrent commits were published first \(180 ms\)"):
        mine(engine, table)
    assert clock.slept == [11.0, 22.0, 44.0, 88.0]  # lost at 3, 17, 42, 89 and 180 ms


def test_each_part_of_a_commit_has_its_own_retries() -> None:
    """As in Java: the COMPACT snapshot of a commit has its own count of retries."""
    engine, table, clock = create_losing_engine({1, 3}, {"commit.max-retries": "1"}, keyed=True)
    compacted = CompactIncrement((data_file("mine"),), (data_file("mine", 5),))
    done = commit(TableContext(engine, table), CommitRequest((message(table, ["mine"], compact=compacted),), "me"))
    assert (done.retries, done.snapshot_ids, done.lost_compaction) == (2, (2, 4), None)
    assert clock.slept == [11.0, 11.0]
