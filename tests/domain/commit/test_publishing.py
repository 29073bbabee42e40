"""The decisions of publishing as tables: what follows a put, and whether a snapshot is in the history."""

from __future__ import annotations

from itertools import product

import pytest

from paimon.domain.commit.publishing import Place, Seen, Step, decide_next_step, decide_place, is_built_on
from paimon.domain.manifest.entries import DataFileMeta, FileKind, ManifestEntry


def entry(name: str, kind: FileKind = FileKind.ADD) -> ManifestEntry:
    return ManifestEntry(kind, bytes(12), 0, 1, DataFileMeta(name, 100, 10))


def identities(*names: str) -> set[tuple[object, ...]]:
    return {entry(name).identity for name in names}


@pytest.mark.parametrize(
    ("created", "seen", "base_exists", "step"),
    [
        (True, Seen.MINE, True, Step.CONFIRM),
        (False, Seen.MINE, False, Step.CONFIRM),  # the reply is lost
        (False, Seen.OTHER, True, Step.CHECK_AGAIN),
        (False, Seen.NOTHING, True, Step.PUT_AGAIN),
        (False, Seen.NOTHING, False, Step.GIVE_UP),
        (False, Seen.UNREADABLE, False, Step.PUT_AGAIN),  # the next put decides
    ],
)
def test_after_a_put(created: bool, seen: Seen, base_exists: bool, step: Step) -> None:
    assert decide_next_step(created, seen, base_exists) is step


@pytest.mark.parametrize(
    ("descends", "is_oldest", "is_newest", "next_exists", "exists", "outcome"),
    [
        (None, True, True, None, True, Place.IN_HISTORY),
        (True, True, False, True, True, Place.IN_HISTORY),
        (True, True, False, False, False, Place.IN_HISTORY),  # expired since, as all before it
        (False, True, False, True, True, Place.DETACHED),
        (None, True, False, True, True, Place.UNKNOWN),
        (None, True, False, False, True, Place.DETACHED),  # the next expired before it
        (None, True, False, False, False, Place.UNKNOWN),  # it expired itself
        (True, False, False, False, True, Place.UNKNOWN),
        (None, False, True, None, True, Place.UNKNOWN),
    ],
)
def test_where_a_snapshot_belongs(
    descends: bool | None, is_oldest: bool, is_newest: bool, next_exists: bool | None, exists: bool, outcome: Place
) -> None:
    assert decide_place(descends, is_oldest, is_newest, next_exists, exists) is outcome


def test_a_snapshot_is_detached_only_on_evidence() -> None:
    for descends, is_oldest, is_newest, following, exists in product(
        (True, False, None), (True, False), (True, False), (True, False, None), (True, False)
    ):
        if decide_place(descends, is_oldest, is_newest, following, exists) is Place.DETACHED:
            assert descends is not True
            assert descends is False if following else exists


@pytest.mark.parametrize(
    ("delta", "latest", "index", "later", "outcome"),
    [
        ([entry("a"), entry("b")], identities("a", "b", "x"), (None, None), None, True),
        ([entry("a"), entry("b")], identities("x"), (None, None), None, False),
        ([entry("a"), entry("b")], identities("a"), (None, None), None, None),
        ([entry("a", FileKind.DELETE)], identities("a"), (None, None), None, False),
        ([entry("a", FileKind.DELETE)], identities("x"), (None, None), None, True),
        ([entry("a"), entry("a", FileKind.DELETE)], identities(), (None, None), None, True),
        ([], identities(), ("i1", "i2"), "i2", True),
        ([], identities(), ("i1", "i2"), "i1", False),
        ([], identities(), ("i1", "i2"), "i3", None),
        ([], identities("x"), ("i1", "i1"), "i3", True),
    ],
)
def test_a_later_snapshot_is_recognized_by_its_files(
    delta: list[ManifestEntry],
    latest: set[tuple[object, ...]],
    index: tuple[str | None, str | None],
    later: str | None,
    outcome: bool | None,
) -> None:
    assert is_built_on(delta, latest, index, later) is outcome
