"""Processes that write one table at the same time, on local disk, on a store that loses replies to writes, and on one
that cuts replies of every kind: every row that was acknowledged is there once, none is refused.

On the disk they take turns, or race; on a store they race, with as many retries as it takes: with the ten of the
default about one of a thousand commits was refused there. One small round each in CI; a hundred of 6 x 10 and of 8 x 25
commits, half of them with a key, by `--long`. With `--progress DIR` each round is noted there, and a run that was
stopped goes on where it was.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from attrs import evolve
from s3_server import BUCKET, cutting_replies, losing_replies, s3_server, storage_of

import paimon
from paimon.testing.crowd import Crowd, Outcome, _unseen, one_round, rounds, summary

LOSSES = 0.3
Play = Callable[[Crowd], Outcome]


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Play]]:
    """How a round is played on each storage."""
    disk = str(tmp_path_factory.mktemp("crowds"))
    with (
        s3_server() as endpoint,
        losing_replies(endpoint, LOSSES) as lossy,
        cutting_replies(endpoint, LOSSES) as cutting,
    ):
        store, whole, broken = f"s3://{BUCKET}/{uuid.uuid4()}", storage_of(endpoint), storage_of(lossy)
        cut = storage_of(cutting)
        yield {
            "disk": lambda crowd: one_round(disk, crowd),
            "racing": lambda crowd: one_round(disk, evolve(crowd, races=True)),
            "store": lambda crowd: one_round(store, evolve(crowd, races=True), writers=broken, judge=whole),
            "cutting store": lambda crowd: one_round(store, evolve(crowd, races=True), writers=cut, judge=cut),
        }


@pytest.mark.parametrize("keyed", [False, True], ids=["append", "keyed"])
@pytest.mark.parametrize("place", ["disk", "racing", "store", "cutting store"])
def test_some_processes_write_one_table(places: dict[str, Play], place: str, keyed: bool) -> None:
    outcome = places[place](Crowd(3, 3, keyed))
    assert outcome.acknowledged == 9
    assert outcome.is_well, outcome


@pytest.mark.parametrize("place", ["disk", "racing", "store"])
def test_readers_see_what_was_acknowledged_where_level_0_is_hidden(places: dict[str, Play], place: str) -> None:
    """With deletion vectors each row must be compacted before it is acknowledged, against the compactions of others."""
    outcome = places[place](Crowd(4, 4, keyed=True, readers=1, vectors=True))
    assert outcome.acknowledged == 16 and outcome.reads
    assert outcome.is_well, outcome


def test_a_reader_that_lacks_an_acknowledged_row_is_counted() -> None:
    told = [["0", "0", "acknowledged", "5", "100", ""], ["0", "1", "refused", "5", "110", "why"]]
    assert [_unseen(told, [line]) for line in ("99 ", "101 0.0", "101 1.0,0.1", "101 ")] == [0, 0, 1, 1]


@pytest.mark.long
@pytest.mark.parametrize("place", ["disk", "racing", "store"])
def test_eight_processes_and_two_readers_of_a_table_with_vectors(
    places: dict[str, Play], progress: Path, place: str
) -> None:
    log = progress / f"crowds-vectors-{place}.jsonl"
    outcomes = list(rounds([Crowd(8, 25, keyed=True, readers=2, vectors=True)], 20, log, places[place]))
    print(summary(outcomes))
    assert [o for o in outcomes if not o.is_well] == []
    assert {o.acknowledged for o in outcomes} == {200}


@pytest.mark.parametrize("keyed", [False, True], ids=["append", "keyed"])
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


def test_a_storage_that_fails_is_told_apart() -> None:
    """Where every reply is lost, nobody is refused, nothing is acknowledged, and nothing is there."""
    with s3_server() as endpoint, losing_replies(endpoint, 1.0) as lossy:
        crowd = Crowd(2, 1, keyed=False)
        writers = {**storage_of(lossy), "max_retries": 1}
        outcome = one_round(f"s3://{BUCKET}/failing", crowd, writers, storage_of(endpoint))
    assert (outcome.acknowledged, outcome.died, len(outcome.failed)) == (0, 0, 2)
    assert (outcome.lost, outcome.doubled, outcome.phantom, outcome.refused, outcome.faults) == (0, 0, 0, (), ())
    assert not outcome.is_well
    assert all("s3://" in why for why in outcome.failed)


@pytest.mark.long
@pytest.mark.parametrize(("writers", "commits"), [(6, 10), (8, 25)])
@pytest.mark.parametrize("place", ["disk", "racing", "store", "cutting store"])
def test_many_processes_write_one_table_a_hundred_times(
    places: dict[str, Play], progress: Path, place: str, writers: int, commits: int
) -> None:
    crowds = [Crowd(writers, commits, keyed) for keyed in (False, True)]
    log = progress / f"crowds-{place}-{writers}-{commits}.jsonl"
    outcomes = list(rounds(crowds, 50, log, places[place]))
    assert len(outcomes) == 100
    print(summary(outcomes))
    assert [o for o in outcomes if not o.is_well] == []
    assert {o.acknowledged for o in outcomes} == {writers * commits}
