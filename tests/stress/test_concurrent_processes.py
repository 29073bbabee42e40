"""Processes that write one table at the same time, on local disk, on a store that loses replies to writes, and on one
that cuts replies of every kind. Every acknowledged row exists once, and no write is refused.

On the disk they use the lock, or race. On a store they race, with as many retries as needed: with the default of
ten retries about one of a thousand commits was refused. CI runs one small round of each; `--long` runs a hundred of
6 x 10 and of 8 x 25 commits, half of them with a key. With `--progress DIR` each round is recorded there, and a later
run continues after the recorded rounds.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from attrs import evolve
from support.case_lists import mark_nightly, mark_products
from support.s3_server import BUCKET, cutting_replies, losing_replies, s3_server, storage_of

import paimon
from paimon.testing.stress_test import SHARED, _compare_shared_rows, _count_incomplete_scans, run_round, run_rounds
from paimon.testing.stress_test_rounds import RoundResult, StressTest, summarize

LOSSES = 0.3
RunRound = Callable[[StressTest], RoundResult]


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, RunRound]]:
    """The function that runs a round on each storage."""
    disk = str(tmp_path_factory.mktemp("stress"))
    with (
        s3_server() as endpoint,
        losing_replies(endpoint, LOSSES) as lossy,
        cutting_replies(endpoint, LOSSES) as cutting,
    ):
        store, whole, broken = f"s3://{BUCKET}/{uuid.uuid4()}", storage_of(endpoint), storage_of(lossy)
        cut = storage_of(cutting)
        yield {
            "disk": lambda stress_test: run_round(disk, stress_test),
            "racing": lambda stress_test: run_round(disk, evolve(stress_test, uses_lock=False)),
            "store": lambda stress_test: run_round(
                store, evolve(stress_test, uses_lock=False), writer_storage=broken, checker_storage=whole
            ),
            "cutting store": lambda stress_test: run_round(
                store, evolve(stress_test, uses_lock=False), writer_storage=cut, checker_storage=cut
            ),
        }


@pytest.mark.parametrize(("place", "keyed"), mark_products(["disk", "racing", "store", "cutting store"], [False, True]))
def test_some_processes_write_one_table(places: dict[str, RunRound], place: str, keyed: bool) -> None:
    outcome = places[place](StressTest(3, 3, keyed))
    assert outcome.acknowledged == 9
    assert outcome.is_correct, outcome


@pytest.mark.slow("writers, readers and a compactor are processes")
@pytest.mark.parametrize("place", mark_nightly(["disk", "racing", "store"], always=["store"]))
def test_readers_see_acknowledged_rows_in_tables_that_hide_level_0(places: dict[str, RunRound], place: str) -> None:
    """With deletion vectors each row must be compacted before it is acknowledged. Compactions run concurrently."""
    outcome = places[place](StressTest(2, 3, has_primary_key=True, readers=1, has_deletion_vectors=True))
    assert outcome.acknowledged == 6 and outcome.scans
    assert outcome.is_correct, outcome


@pytest.mark.slow("writers, a reader and a repairing process")
@pytest.mark.parametrize(
    ("place", "keyed"),
    [
        ("store", True),
        *(
            pytest.param(*case, marks=pytest.mark.nightly)
            for case in [("disk", True), ("disk", False), ("store", False)]
        ),
    ],
)
def test_a_table_is_repaired_while_it_is_written_and_read(places: dict[str, RunRound], place: str, keyed: bool) -> None:
    outcome = places[place](StressTest(2, 5, keyed, readers=1, is_repaired=True))
    assert outcome.acknowledged == 10 and outcome.scans
    assert outcome.is_correct, outcome


@pytest.mark.long
@pytest.mark.parametrize("place", ["disk", "racing", "store"])
def test_tables_are_repaired_while_they_are_written_and_read_for_long(
    places: dict[str, RunRound], progress: Path, place: str
) -> None:
    stress_tests = [StressTest(6, 40, keyed, readers=2, is_repaired=True) for keyed in (False, True)]
    outcomes = list(run_rounds(stress_tests, 20, progress / f"repaired-{place}.jsonl", places[place]))
    print(summarize(outcomes))
    assert [o for o in outcomes if not o.is_correct] == []
    assert {o.acknowledged for o in outcomes} == {240}


def test_two_writers_share_keys_in_dynamic_buckets(places: dict[str, RunRound]) -> None:
    """A compactor and an expirer run concurrently. Each commit adds a row of its own and one to a shared row."""
    outcome = places["disk"](StressTest(2, 6, has_primary_key=True, has_dynamic_buckets=True))
    assert outcome.acknowledged == 12
    assert outcome.is_correct, outcome


def test_lost_and_doubled_commits_of_shared_rows_are_counted() -> None:
    acknowledged, uncertain = {(0, 0), (1, 0), (0, 1)}, {(1, 1)}
    for times, expected in (((2, 1), (0, 0)), ((2, 2), (0, 0)), ((1, 1), (1, 0)), ((3, 3), (0, 2)), ((0, 0), (3, 0))):
        found = Counter({(SHARED, number): count for number, count in enumerate(times)} | {(0, 0): 1})
        assert _compare_shared_rows(found, acknowledged, uncertain) == expected
        assert found == {(0, 0): 1}


def test_a_reader_that_lacks_an_acknowledged_row_is_counted() -> None:
    commits = [["0", "0", "acknowledged", "5", "100", ""], ["0", "1", "refused", "5", "110", "why"]]
    assert [_count_incomplete_scans(commits, [line]) for line in ("99 ", "101 0.0", "101 1.0,0.1", "101 ")] == [
        0,
        0,
        1,
        1,
    ]


@pytest.mark.long
@pytest.mark.parametrize("place", ["disk", "racing", "store"])
def test_eight_processes_and_two_readers_of_a_table_with_vectors(
    places: dict[str, RunRound], progress: Path, place: str
) -> None:
    log = progress / f"stress-vectors-{place}.jsonl"
    outcomes = list(
        run_rounds(
            [StressTest(8, 25, has_primary_key=True, readers=2, has_deletion_vectors=True)], 20, log, places[place]
        )
    )
    print(summarize(outcomes))
    assert [o for o in outcomes if not o.is_correct] == []
    assert {o.acknowledged for o in outcomes} == {200}


@pytest.mark.long
@pytest.mark.parametrize("place", ["disk", "racing"])
def test_two_writers_share_keys_in_dynamic_buckets_for_long(
    places: dict[str, RunRound], progress: Path, place: str
) -> None:
    stress_test = StressTest(2, 60, has_primary_key=True, has_dynamic_buckets=True)
    outcomes = list(run_rounds([stress_test], 20, progress / f"dynamic-buckets-{place}.jsonl", places[place]))
    print(summarize(outcomes))
    assert [o for o in outcomes if not o.is_correct] == []
    assert {o.acknowledged for o in outcomes} == {120}


@pytest.mark.parametrize("keyed", mark_nightly([False, True], always=[True]))
def test_maintenance_succeeds_on_a_store_that_cuts_replies(keyed: bool) -> None:
    """Writes, compaction, a renamed tag, expiry, a check of all files, the removal of orphans; 3 of 10 are cut."""
    with s3_server() as endpoint, cutting_replies(endpoint, LOSSES) as cutting:
        catalog = paimon.connect(f"s3://{BUCKET}/{uuid.uuid4()}", storage=storage_of(cutting))
        catalog.create_database("d")
        keys, options = (["k"], {"bucket": "1"}) if keyed else ([], {})
        table = catalog.create_table("d.t", "k INT NOT NULL, v INT", primary_keys=keys, options=options)
        for k in range(6):
            table.write({"k": [k], "v": [k]})
        table.compact(full=True)
        table.tags.create("t")
        table.tags.rename("t", "u")
        table.maintain.expire_snapshots(retain_min=1, retain_max=2)
        table.maintain.remove_orphans(timedelta(0), dry_run=False, allow_young=True)
        assert [str(fault) for fault in table.maintain.check(deep=True).faults] == []
        assert sorted(table.scan().to_arrow()["k"].to_pylist()) == list(range(6))


def test_a_storage_failure_is_counted_separately() -> None:
    """If every reply is lost, no write is refused or acknowledged, and the table has no rows."""
    with s3_server() as endpoint, losing_replies(endpoint, 1.0) as lossy:
        stress_test = StressTest(2, 1, has_primary_key=False)
        writers = {**storage_of(lossy), "max_retries": 1}
        outcome = run_round(f"s3://{BUCKET}/failing", stress_test, writers, storage_of(endpoint))
    assert (outcome.acknowledged, outcome.crashed_processes, len(outcome.failed)) == (0, 0, 2)
    assert (outcome.lost, outcome.duplicated, outcome.phantom, outcome.refused, outcome.faults) == (0, 0, 0, (), ())
    assert not outcome.is_correct
    assert all("s3://" in why for why in outcome.failed)


@pytest.mark.long
@pytest.mark.parametrize(("writers", "commits"), [(6, 10), (8, 25)])
@pytest.mark.parametrize("place", ["disk", "racing", "store", "cutting store"])
def test_many_processes_write_one_table_a_hundred_times(
    places: dict[str, RunRound], progress: Path, place: str, writers: int, commits: int
) -> None:
    stress_tests = [StressTest(writers, commits, keyed) for keyed in (False, True)]
    log = progress / f"stress-{place}-{writers}-{commits}.jsonl"
    outcomes = list(run_rounds(stress_tests, 50, log, places[place]))
    assert len(outcomes) == 100
    print(summarize(outcomes))
    assert [o for o in outcomes if not o.is_correct] == []
    assert {o.acknowledged for o in outcomes} == {writers * commits}
