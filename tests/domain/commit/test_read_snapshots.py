"""Whether a change still fits the table from which it was computed."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
from attrs import evolve

from paimon.domain.commit.conflicts.other_commits import check_read_state
from paimon.domain.commit.message import ReadState
from paimon.domain.errors import ReadConflict
from paimon.domain.snapshot.snapshot import CommitKind, Snapshot

READ = Snapshot(5, 0, "base-5", "delta-5", "u", 1, CommitKind.APPEND, 0)
OTHER = evolve(READ, base_manifest_list="base-x", delta_manifest_list="delta-x")
APPEND, COMPACT = evolve(READ, id=6, commit_user="v"), evolve(READ, id=6, commit_kind=CommitKind.COMPACT)
ANALYZE, MINE = evolve(COMPACT, commit_kind=CommitKind.ANALYZE), evolve(APPEND, commit_user="me")


@pytest.mark.parametrize(
    ("read", "history", "reason"),
    [
        (READ, [READ], None),
        (READ, [evolve(READ, uuid="u"), COMPACT, evolve(ANALYZE, id=7)], None),
        (READ, [READ, MINE], None),
        (READ, [OTHER], "expired or was rolled back"),
        (READ, [OTHER, COMPACT], "expired or was rolled back"),
        (READ, [None, COMPACT], "expired or was rolled back"),
        (READ, [], "expired or was rolled back"),
        (READ, [READ, APPEND], "snapshot 6 changed rows after snapshot 5"),
        (READ, [READ, evolve(APPEND, commit_kind=CommitKind.OVERWRITE)], "snapshot 6 changed rows"),
        (READ, [READ, None, evolve(COMPACT, id=7)], "snapshot 6 changed rows"),
        (None, [], None),
        (None, [evolve(COMPACT, id=1)], None),
        (None, [evolve(APPEND, id=1)], "snapshot 1 changed rows after the read of the empty table"),
    ],
)
def test_rows_must_be_those_that_were_read(
    read: Snapshot | None, history: list[Snapshot | None], reason: str | None
) -> None:
    state = ReadState.of(read)
    numbered = list(enumerate(history, max(1, state.snapshot_id)))
    with nullcontext() if reason is None else pytest.raises(ReadConflict, match=reason):
        check_read_state(state, numbered, "me", "t")


def test_a_replaced_snapshot_is_found_before_later_ones_are_read() -> None:
    history = iter([(5, OTHER), (6, COMPACT)])
    with pytest.raises(ReadConflict):
        check_read_state(ReadState.of(READ), history, "me", "t")
    assert next(history) == (6, COMPACT)
