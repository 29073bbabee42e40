"""Whether a batch of a stream is committed, for all that a table can show."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from paimon.domain.commit.stream_batches import PLAN_HASH, StreamBatch, is_batch_committed
from paimon.domain.commit.stream_target import StreamTarget
from paimon.domain.errors import InvalidRequest
from paimon.domain.json_text import load_object
from paimon.domain.snapshot.snapshot import CommitKind, Snapshot

PLANNED = 1_000_000
MINUTE = 60_000


def first_snapshot(snapshot_id: int, time_millis: int = 0) -> Snapshot:
    return Snapshot(snapshot_id, 0, "base", "delta", "other", 0, CommitKind.APPEND, time_millis)


def commit_of_batch(number: int, properties: Mapping[str, str] | None = None) -> Snapshot:
    return Snapshot(7, 0, "base", "delta", "me", number, CommitKind.APPEND, 0, properties=properties or {})


@pytest.mark.parametrize(
    ("number", "newest", "first", "wanted"),
    [
        (0, None, None, False),
        (0, None, first_snapshot(1), False),
        (0, 0, None, True),
        (4, 3, None, False),
        (4, 4, None, True),
        (4, None, first_snapshot(9, PLANNED - MINUTE), False),
        (4, 5, None, "older than batch 5"),
        (4, 2, None, "up to 2, and 4 is the next"),
        (4, None, None, "belongs to another table"),
        (4, None, first_snapshot(1, PLANNED - MINUTE), "belongs to another table"),
        (0, None, first_snapshot(9, PLANNED - MINUTE + 1), "may be in table 'db.t': its snapshots begin with 9"),
    ],
)
def test_a_batch_is_committed_once_or_refused(
    number: int, newest: int | None, first: Snapshot | None, wanted: bool | str
) -> None:
    batch = StreamBatch(number, PLANNED)
    last = None if newest is None else commit_of_batch(newest)
    if isinstance(wanted, bool):
        assert is_batch_committed("db.t", batch, last, first) is wanted
        return
    with pytest.raises(InvalidRequest, match=wanted) as caught:
        is_batch_committed("db.t", batch, last, first)
    assert caught.value.subject == "checkpointLocation" and caught.value.hint


def test_without_the_time_of_its_plan_a_batch_before_the_history_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="may be in table"):
        is_batch_committed("db.t", StreamBatch(4), None, first_snapshot(9))


def test_the_first_attempt_of_a_stream_needs_no_history() -> None:
    first_attempt = StreamBatch(0, PLANNED, is_first_attempt=True)
    assert not is_batch_committed("db.t", first_attempt, None, first_snapshot(9, PLANNED + MINUTE))
    with pytest.raises(InvalidRequest, match="older than batch 5"):
        is_batch_committed("db.t", first_attempt, commit_of_batch(5), None)


def test_a_batch_with_another_plan_is_refused_and_one_without_a_recorded_plan_is_accepted() -> None:
    batch = StreamBatch(4, PLANNED, plan_hash="a")
    assert is_batch_committed("db.t", batch, commit_of_batch(4, batch.properties), None)
    assert is_batch_committed("db.t", batch, commit_of_batch(4), None)  # by an earlier version
    assert not is_batch_committed("db.t", batch, commit_of_batch(3, {PLAN_HASH: "b"}), None)
    with pytest.raises(InvalidRequest, match="Batch 4 of the stream has another plan"):
        is_batch_committed("db.t", batch, commit_of_batch(4, {PLAN_HASH: "b"}), None)


def test_a_target_is_recorded_and_compared() -> None:
    target = StreamTarget("/lake/db.db/t", "main", 5, ("id",))
    assert StreamTarget.parse(load_object(target.to_json(), "table.json")) == target
    target.check_unchanged(StreamTarget("/lake/db.db/t", "main", 5, ("id",)))
    for other, message in (
        (StreamTarget("/lake/db.db/u", "main", 5, ("id",)), "into /lake/db.db/t, not into /lake/db.db/u"),
        (StreamTarget("/lake/db.db/t", "b", 5, ("id",)), r"not into /lake/db.db/t\$branch_b"),
        (StreamTarget("/lake/db.db/t", "main", 6, ("id",)), "created again"),
        (StreamTarget("/lake/db.db/t", "main", 5, ("id", "day")), r"from \(id\) to \(id, day\)"),
    ):
        with pytest.raises(InvalidRequest, match=message):
            target.check_unchanged(other)
